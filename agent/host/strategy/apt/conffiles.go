package apt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// parseConffiles reads the configuration files of packages from the output of
// dpkg-query with ${Conffiles}: " /etc/file hash", " /etc/old hash obsolete".
func parseConffiles(printed string) []string {
	var files []string
	for line := range strings.Lines(printed) {
		if file, _, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(file, "/") {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// besides are what dpkg leaves beside a configuration file that was changed here and
// by the package, and what that means.
var besides = []struct{ ending, means string }{
	{".dpkg-dist", "kept as it was; the new one is beside it"},
	{".dpkg-new", "kept as it was; the package is not configured"},
	{".dpkg-old", "replaced; the old one is beside it"},
}

// conffileNotes tells which configuration files dpkg kept or replaced.
func conffileNotes(files []string, exists func(string) bool) []string {
	var notes []string
	for _, file := range files {
		for _, beside := range besides {
			if exists(file + beside.ending) {
				notes = append(notes, fmt.Sprintf("%s was %s (%s)", file, beside.means, file+beside.ending))
			}
		}
	}
	return notes
}

// tellConffiles tells which configuration files of a plan's packages were kept or
// replaced. Nobody is asked, so somebody must be told.
func (s *call) tellConffiles(ctx context.Context, changes []message.Change) error {
	args := []string{"-W", "-f", `${Conffiles}\n`}
	for _, c := range changes {
		if c.To != "" {
			args = append(args, c.Name)
		}
	}
	if len(args) == 3 {
		return nil
	}
	printed, err := s.read(ctx, "dpkg-query", args...)
	if err != nil {
		return err
	}
	for _, note := range conffileNotes(parseConffiles(printed), s.host.Exists) {
		s.progress(96, message.CleanText("configuration file "+note))
	}
	return nil
}
