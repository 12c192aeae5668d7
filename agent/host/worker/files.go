package worker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The files in the state directory. Each has one writer: an operator writes what is accepted,
// and the worker the others.
const (
	journalFile  = "journal.json"
	bootsFile    = "boots.json"
	planFile     = "plan.json"
	keptFile     = "kept.json"
	identityFile = "identity.json"
	acceptedFile = "accepted.json"
)

// WriteFile replaces a file durably, as durable.WriteFile does.
type WriteFile func(path string, data []byte, mode fs.FileMode) error

// ReadJournal reads a journal file. A file that does not exist is os.ErrNotExist; a damaged
// one is an error, and so is one of a newer format, which is never called damaged.
func ReadJournal(path string) (decide.Journal, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return decide.Journal{}, fmt.Errorf("cannot read journal: %w", err)
	}
	journal, err := decide.DecodeJournal(body)
	switch {
	case format.IsUnsupported(err):
		return decide.Journal{}, fmt.Errorf("cannot read journal %s: %w; start a version that reads it", path, err)
	case err != nil:
		return decide.Journal{}, fmt.Errorf("journal %s is damaged: %w; what this host was doing is unknown: look at it, then remove the file", path, err)
	}
	return journal, nil
}

// writeJournal makes a journal durable.
func writeJournal(path string, j decide.Journal, write WriteFile) error {
	body, err := j.Encode()
	if err != nil {
		return err
	}
	if err := write(path, body, 0o600); err != nil {
		return fmt.Errorf("cannot write journal entry for run %d: %w", j.Run, err)
	}
	return nil
}

// readBoots reads what a worker remembers of the starts of its machine.
func readBoots(dir string) (decide.Boots, error) {
	return readFile(filepath.Join(dir, bootsFile), decide.DecodeBoots, "versions that were rolled back are offered again")
}

// readAccepted reads what an operator accepts.
func readAccepted(dir string) (decide.AcceptedVersions, error) {
	return readFile(filepath.Join(dir, acceptedFile), decide.DecodeAccepted, "versions that were rolled back are offered again")
}

// readKept reads what a host keeps of the runs that have touched it; nil if there is none.
func readKept(dir string) (*decide.Kept, error) {
	kept, err := readFile(filepath.Join(dir, keptFile), decide.DecodeKept, "no run until now can be rolled back on this host")
	if err != nil || len(kept.Runs) == 0 {
		return nil, err
	}
	return &kept, nil
}

// readFile reads a file that may be removed when it is damaged, and lost says what that comes to. One
// that does not exist is the zero value.
func readFile[V any](path string, decode func([]byte) (V, error), lost string) (value V, err error) {
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return value, nil
	}
	if err != nil {
		return value, err
	}
	value, err = decode(body)
	switch {
	case format.IsUnsupported(err):
		err = fmt.Errorf("%s was %w; start a version that reads it", path, err)
	case err != nil:
		err = fmt.Errorf("%s is damaged: %w; remove it, and %s", path, err, lost)
	}
	return value, err
}

// readPlan reads the plan of a journal's run. An error is for operators, who need not know where
// the state directory is. Without an error it is whole, and the one
// that prepare has returned in this run.
func readPlan(path string, j decide.Journal) (message.ChangeSet, error) {
	kept, err := readKeptPlan(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return message.ChangeSet{}, fmt.Errorf("%s does not exist", filepath.Base(path))
	case err != nil:
		return message.ChangeSet{}, err
	case !kept.IsOf(j):
		return message.ChangeSet{}, fmt.Errorf("%s is of run %d", filepath.Base(path), kept.Run)
	}
	return kept.Plan, nil
}

// readKeptPlan reads the plan file, of whatever run.
func readKeptPlan(path string) (kept decide.KeptPlan, err error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return kept, err
	}
	kept, err = decide.DecodePlan(body)
	switch {
	case format.IsUnsupported(err):
		return kept, fmt.Errorf("%s was %w; start a version that reads it", filepath.Base(path), err)
	case err != nil:
		return kept, fmt.Errorf("%s is damaged: %w", filepath.Base(path), err)
	}
	return kept, nil
}

// identityLetters and identityLength describe the result of rand.Text.
const (
	identityLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	identityLength  = 26
)

// readIdentity returns the name that distinguishes the worker of this state
// directory from other workers of the host; the first start creates it.
// The name must survive a restart, so that the worker still holds its lease.
func readIdentity(path string, write WriteFile) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeIdentity(path, write)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read this worker's name: %w", err)
	}
	var file identityContent
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

// identityContent is what the file holds.
type identityContent struct {
	Worker string `json:"worker"`
}

func makeIdentity(path string, write WriteFile) (string, error) {
	name := rand.Text()
	text, err := format.Identity.Encode(identityContent{Worker: name})
	if err != nil {
		return "", err
	}
	if err := write(path, append(text, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("cannot name this worker: %w", err)
	}
	return name, nil
}
