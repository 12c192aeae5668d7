package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// releases are the kinds of releases that this host carries out.
func (w *Worker) releases() []release.Kind {
	if r, ok := w.Strategy.(strategy.Releaser); ok {
		return r.Releases()
	}
	return nil
}

// getRelease asks the site for the release of the journal's run. An error with a class is final.
func (w *Worker) getRelease(ctx context.Context) error {
	pinned := *w.state.Release
	body, err := w.HostLog.Release(ctx, w.state.Run)
	switch {
	case errors.Is(err, log.ErrRefused):
		return strategy.Fail(message.Artifact, fmt.Errorf("cannot get release %s: %w", pinned.Name, err))
	case err != nil:
		return fmt.Errorf("cannot get release %s: %w", pinned.Name, err)
	}
	pinned.Text = body
	if _, err := pinned.Release(); err != nil {
		return strategy.Fail(message.Artifact, err)
	}
	w.gotten = &pinned
	return nil
}

// jobOfRun returns the job of an action of the journal's run, with the release in the journal.
func (w *Worker) jobOfRun() (strategy.Job, error) {
	job := w.job()
	err := setRelease(&job, w.state.Release)
	job.Rejected = w.rejectedFor(job)
	return job, err
}

// setRelease gives a job the release of a pin, if there is one.
func setRelease(job *strategy.Job, pinned *release.Pin) (err error) {
	if pinned != nil {
		job.ReleaseName = pinned.Name
	}
	job.Release, err = releaseOf(pinned)
	return err
}

// releaseOf returns the release of a pin; nil if there is none.
func releaseOf(pinned *release.Pin) (*release.Release, error) {
	if pinned == nil {
		return nil, nil
	}
	installs, err := pinned.Release()
	return &installs, strategy.Fail(message.Artifact, err)
}

// checkRelease returns an error unless the host may go to the release of a run: its strategy carries
// it out, and the versions that it has now fit. The site has compared those that it reported last.
func (w *Worker) checkRelease(ctx context.Context, job strategy.Job) error {
	if job.Release == nil {
		return nil
	}
	if err := strategy.CheckRelease(w.Strategy, job); err != nil {
		return err
	}
	versions, err := w.versionsNow(ctx)
	if err != nil {
		return err
	}
	if why := job.Release.Misfit(versions); why != "" {
		return strategy.Fail(message.Artifact, fmt.Errorf("release %s is not for this host: %s", job.ReleaseName, why))
	}
	return nil
}

// hasRelease returns an error unless the host reports each version that the release of its run
// installs. Of a release of packages Missing has told that: it knows all packages, and the host reports
// only some.
func (w *Worker) hasRelease(ctx context.Context, job strategy.Job) error {
	if job.Release == nil || len(job.Release.Installs) == 0 || job.Release.Kind() == release.OfPackages {
		return nil
	}
	versions, err := w.versionsNow(ctx)
	if err != nil {
		return err
	}
	return lackingRelease(job.ReleaseName, *job.Release, versions)
}

// lackingRelease returns an error if versions lack one that a release installs.
func lackingRelease(name string, installs release.Release, versions map[string]string) error {
	lacking := installs.Lacking(versions)
	if len(lacking) == 0 {
		return nil
	}
	const named = 5
	texts := make([]string, 0, named)
	for _, what := range lacking[:min(len(lacking), named)] {
		texts = append(texts, lack(message.Change{Name: what, From: versions[what], To: installs.Installs[what]}))
	}
	return strategy.Fail(message.Install, fmt.Errorf("the host lacks what release %s installs: %s; see what the upgrade printed, mend the host, then start another run",
		name, text.ListOf(texts, len(lacking), named)))
}

// versionsNow returns the versions that the host has now.
func (w *Worker) versionsNow(ctx context.Context) (map[string]string, error) {
	versions, err := within(ctx, w, "reading the versions", strategy.Job{}, func(ctx context.Context, _ strategy.Job) (map[string]string, error) {
		return w.Strategy.Versions(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the versions, by which a release is for this host or not: %w", err)
	}
	return versions, nil
}
