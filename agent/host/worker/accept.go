package worker

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Accept has a version offered again that the machine of a host gave up, or has one kept that
// is on trial: then there is no Rejected. dir is the state directory of the host's worker,
// which need not be stopped.
func Accept(dir, version string, now time.Time, write WriteFile) (*decide.Rejected, error) {
	path := filepath.Join(dir, acceptedFile)
	known, unknown := readBoots(dir)
	a, err := readAccepted(dir)
	if err := errors.Join(unknown, err); err != nil {
		return nil, err
	}
	a, rejected, err := known.Accept(a, version, now)
	if err != nil {
		return nil, err
	}
	body, err := a.Encode()
	if err != nil {
		return nil, err
	}
	if err := write(path, body, 0o600); err != nil {
		return nil, fmt.Errorf("cannot accept version %q: %w", version, err)
	}
	return rejected, nil
}

// toldRejected is what a heartbeat tells of the versions that the machine gave up.
func (w *Worker) toldRejected() []message.RolledBackVersion {
	var told []message.RolledBackVersion
	for _, r := range w.stillRejected() {
		told = append(told, message.RolledBackVersion{Version: r.Version, Running: r.Running, At: r.At})
	}
	return told
}

// stillRejected are the versions that the machine gave up and nobody has accepted since.
func (w *Worker) stillRejected() []decide.Rejected {
	known := w.written.Load().Boots
	if len(known.Rejected) == 0 {
		return nil
	}
	return known.Standing(w.accepted())
}

// rejectedFor are the versions that a plan holds back: those that the machine gave up and, without a
// release, those that a run has rolled back.
func (w *Worker) rejectedFor(job strategy.Job) message.Rejected {
	rejected := decide.ByName(w.stillRejected())
	if job.Release == nil {
		for name, versions := range w.written.Load().Kept.RolledBack() {
			rejected[name] = append(rejected[name], versions...)
		}
	}
	return rejected
}

// accepted are the versions that an operator accepts.
func (w *Worker) accepted() decide.AcceptedVersions {
	a, err := readAccepted(w.Dir)
	if err != nil {
		w.Log.Warn("cannot read which versions are accepted again, so none is", "host", w.Host, "error", err)
		return decide.AcceptedVersions{}
	}
	return a
}
