package apt

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Rollback implements strategy.Strategy: it installs the versions of before, when
// the repositories or the archives still have all of them.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	steps := s.steps(job)
	outcome, err := steps.rollback(ctx, reversed(job.Plan.Changes))
	if err != nil {
		err = fmt.Errorf("cannot go back: %w", err)
		job.Progress(-1, message.CleanText(err.Error())) // ErrNoRollback has no text for the worker.
		return 0, err
	}
	return outcome, nil
}

// reversed returns the changes that undo others.
func reversed(changes []message.Change) []message.Change {
	back := make([]message.Change, 0, len(changes))
	for _, c := range changes {
		back = append(back, message.Change{Name: c.Name, From: c.To, To: c.From})
	}
	return back
}

func (s *steps) rollback(ctx context.Context, back []message.Change) (strategy.Outcome, error) {
	if err := s.awaitLocks(ctx); err != nil {
		return 0, err
	}
	found, err := s.condition(ctx, back)
	if err != nil {
		return 0, err
	}
	if found.missing && s.Mode == Release {
		return 0, fmt.Errorf("%w: nothing leads back to the release before; restore a backup or install this host anew", strategy.ErrNoRollback)
	}
	if found.missing {
		if err := s.goBack(ctx, back, found); err != nil {
			return 0, err
		}
	}
	return s.finish(ctx, message.ChangeSet{Changes: back})
}

func (s *steps) goBack(ctx context.Context, back []message.Change, found condition) error {
	now, err := s.packages(ctx)
	if err != nil {
		return err
	}
	left := now.missing(back)
	args, lost, err := s.archivesOf(ctx, left)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return fmt.Errorf("%w to the versions of before: neither a repository of this host nor %s has %s; install them by hand or restore a backup",
			strategy.ErrNoRollback, archivesFolder, few(lost))
	}
	if found.interrupted || len(found.unfinished) > 0 {
		// It fails for what the upgrade broke, and that is replaced next.
		_ = s.dpkg(ctx, "--configure", "-a")
	}
	return s.apt(ctx, span{0, 95}, slices.Concat([]string{"--allow-downgrades", "-f", "install"}, args)...)
}

// archivesOf returns the arguments that install the versions of some changes: a
// version that a repository has, or else its archive; lost are those that neither has.
func (s *steps) archivesOf(ctx context.Context, changes []message.Change) (args, lost []string, err error) {
	var names []string
	for _, c := range changes {
		if c.To != "" {
			names = append(names, c.Name)
		}
	}
	offers, err := s.offers(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range changes {
		switch archive := s.archiveOf(c); {
		case c.To == "":
			args = append(args, c.Name+"-")
		case offers[c.Name].has(c.To):
			args = append(args, c.Name+"="+c.To)
		case archive != "":
			args = append(args, archive)
		default:
			lost = append(lost, c.Name+" "+c.To)
		}
	}
	return args, lost, nil
}

// has reports whether a repository has a version; that it is installed does not count.
func (o available) has(version string) bool {
	return slices.ContainsFunc(o.versions, func(v offer) bool {
		return v.version == version && slices.ContainsFunc(v.sources, func(source string) bool { return source != "/var/lib/dpkg/status" })
	})
}

// archiveOf returns the archive of a version among those that apt has kept; empty if
// there is none.
func (s *Strategy) archiveOf(c message.Change) string {
	name, _, _ := strings.Cut(c.Name, ":")
	file := name + "_" + strings.ReplaceAll(c.To, ":", "%3a") + "_*.deb"
	found, err := filepath.Glob(s.host.Path(filepath.Join(archivesFolder, file)))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}
