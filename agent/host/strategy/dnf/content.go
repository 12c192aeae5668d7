package dnf

import (
	"context"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// unlike reports whether a planned package that is in the database has other files: the names
// that they were given may be lost in a power cut, and the record is not. So Resume believes
// no record of an upgrade that was interrupted.
func (s *call) unlike(ctx context.Context, changes []message.Change, now database) (bool, error) {
	c := program.Command{Name: "rpm", Quiet: true, Args: []string{
		"--verify", "--nodeps", "--noscripts", "--nomtime", "--nomode", "--nouser", "--nogroup", "--nordev", "--nocaps",
	}}
	options := len(c.Args)
	for _, change := range changes {
		if change.To != "" && slices.Contains(now[change.Name], change.To) {
			_, version, epoch := strings.Cut(change.To, ":")
			if !epoch {
				version = change.To
			}
			c.Args = append(c.Args, nevra(change.Name, version))
		}
	}
	if len(c.Args) == options {
		return false, nil
	}
	ended, err := s.run(ctx, c)
	if err == nil && ended.Exit != 0 && strings.TrimSpace(ended.Stdout) == "" {
		err = s.failure("rpm --verify", ended)
	}
	return differs(ended.Stdout), err
}

// differs reads what rpm --verify prints about files that differ, such as
// "S.5......    /usr/bin/a", or are "missing". Configuration files ("c") are the operator's, and
// files that no package brings along ("g") those of programs.
func differs(printed string) bool {
	for line := range strings.Lines(printed) {
		result, _, ok := strings.Cut(line, "/")
		if fields := strings.Fields(result); ok && (len(fields) == 1 || len(fields) == 2 && fields[1] != "c" && fields[1] != "g") {
			return true
		}
	}
	return false
}
