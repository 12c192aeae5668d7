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

// restoreAutomatic marks packages as automatic that were, and those that a plan adds,
// unless they are in the list of packages.
func (s *call) restoreAutomatic(ctx context.Context, changes []message.Change) error {
	kept, err := os.ReadFile(s.automaticFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := automatic(changes, strings.Fields(string(kept)), s.what.Listed())
	if len(names) == 0 {
		return nil
	}
	_, err = s.read(ctx, "apt-mark", append([]string{"auto"}, names...)...)
	return err
}

// automatic returns the packages of a plan that nobody has asked for.
func automatic(changes []message.Change, before, wanted []string) []string {
	var names []string
	for _, c := range changes {
		asked := slices.ContainsFunc(wanted, func(word string) bool {
			name, _, _ := strings.Cut(word, "=")
			return name == c.Name
		})
		if c.To != "" && !asked && (c.From == "" || slices.Contains(before, c.Name)) {
			names = append(names, c.Name)
		}
	}
	return names
}
