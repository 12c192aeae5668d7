package apt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// apt takes each package that is named for one that an operator wants, and never
// removes it again by itself. A plan names all packages, so what was installed
// automatically before is marked as such again.

func (s *Strategy) automaticFile() string { return filepath.Join(s.StateDir, "automatic") }

// automaticBefore has those from before the last upgrade that has begun.
func (s *Strategy) automaticBefore() string { return filepath.Join(s.StateDir, "automatic.before") }

// keepAutomatic keeps on disk which packages are installed automatically.
func (s *Strategy) keepAutomatic(ctx context.Context) error {
	printed, err := s.read(ctx, "apt-mark", "showauto")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(s.automaticFile(), []byte(printed), 0o600)
}

// beginAutomatic keeps the list of the run that begins, until another one begins: a later run may only be
// prepared.
func (s *Strategy) beginAutomatic() error {
	kept, err := os.ReadFile(s.automaticFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return durable.WriteFile(s.automaticBefore(), kept, 0o600)
}

// keepAutomaticBefore keeps on disk which packages were installed automatically before the run that is
// rolled back, with those that are now: what the way back removes or installs again is among the
// one or the other.
func (s *Strategy) keepAutomaticBefore(ctx context.Context) error {
	if err := s.keepAutomatic(ctx); err != nil {
		return err
	}
	before, err := os.ReadFile(s.automaticBefore())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	now, nowErr := os.ReadFile(s.automaticFile())
	if err := errors.Join(err, nowErr); err != nil {
		return err
	}
	all := append(now, before...)
	if err := durable.WriteFile(s.automaticBefore(), all, 0o600); err != nil {
		return err
	}
	return durable.WriteFile(s.automaticFile(), all, 0o600)
}

// restoreAutomatic marks packages as automatic that were, and those that a plan adds,
// unless they are in the list of packages.
func (s *call) restoreAutomatic(ctx context.Context, changes []message.Change) error {
	kept, err := os.ReadFile(s.automaticFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := automatic(changes, strings.Fields(string(kept)), s.what.Listed(), !s.goesBack)
	if len(names) == 0 {
		return nil
	}
	_, err = s.read(ctx, "apt-mark", append([]string{"auto"}, names...)...)
	return err
}

// automatic returns the packages of a plan that nobody has asked for. added tells that those which are new
// were never there before; a way back installs again what was.
func automatic(changes []message.Change, before, wanted []string, added bool) []string {
	var names []string
	for _, c := range changes {
		asked := slices.ContainsFunc(wanted, func(word string) bool {
			name, _, _ := strings.Cut(word, "=")
			return name == c.Name
		})
		if c.To != "" && !asked && (c.From == "" && added || slices.Contains(before, c.Name)) {
			names = append(names, c.Name)
		}
	}
	return names
}
