package worker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
)

// identityLetters are those of rand.Text, identityLength is how many it gives.
const (
	identityLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	identityLength  = 26
)

// readIdentity returns the name that tells this state directory's worker from
// others of the host (AV-15), made at its first start. It must outlive the
// process: a worker that is started again still holds its lease.
func readIdentity(path string, write WriteFile) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeIdentity(path, write)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read this worker's name: %w", err)
	}
	var file identityFile
	err = format.Identity.Decode(text, &file)
	switch name := file.Worker; {
	case format.IsUnsupported(err):
		return "", fmt.Errorf("cannot read this worker's name from %s: %w; start a version that reads it", path, err)
	case err != nil || len(name) != identityLength || strings.Trim(name, identityLetters) != "":
		return "", fmt.Errorf("%s is damaged: its worker must be %d of A-Z and 2-7; remove it, and the worker makes itself a new name", path, identityLength)
	default:
		return name, nil
	}
}

// identityFile is what the file holds.
type identityFile struct {
	Worker string `json:"worker"`
}

func makeIdentity(path string, write WriteFile) (string, error) {
	name := rand.Text()
	text, err := format.Identity.Encode(identityFile{Worker: name})
	if err != nil {
		return "", err
	}
	if err := write(path, append(text, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("cannot name this worker: %w", err)
	}
	return name, nil
}
