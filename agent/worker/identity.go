package worker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
)

// identityLetters are those of rand.Text, identityLength is how many it gives.
const (
	identityLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	identityLength  = 26
)

// readIdentity returns the name that tells this state directory's worker from
// others of the host (AV-15), made at its first start. It must outlive the
// process: a worker that is started again has its seat still.
func readIdentity(path string, write WriteFile) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		made := rand.Text()
		if err := write(path, []byte(made+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("cannot name this worker: %w", err)
		}
		return made, nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read this worker's name: %w", err)
	}
	name := strings.TrimSuffix(string(text), "\n")
	if len(name) != identityLength || strings.Trim(name, identityLetters) != "" {
		return "", fmt.Errorf("%s is damaged: it must hold %d of A-Z and 2-7; remove it, and the worker makes itself a new name", path, identityLength)
	}
	return name, nil
}
