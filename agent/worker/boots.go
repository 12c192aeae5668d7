package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// boots is what a worker remembers of the starts of its machine, over runs: a host with
// more than one bootable system confirms the one that runs after each start, and does
// not go to a version again that its machine gave up.
type boots struct {
	// Judged is the id of the last boot whose system was confirmed, or was left
	// unconfirmed because it failed its verify. One that is on trial is not judged yet.
	Judged string `json:"judged,omitempty"`
	// Rejected are the versions that the machine gave up, oldest first.
	Rejected []Rejected `json:"rejected,omitempty"`
	// Trial is what waits for the checks of a rollout; nil when nothing does.
	Trial *trial `json:"trial,omitempty"`
}

// confirmation is what of the present boot is left to confirm outside of an upgrade.
type confirmation int

const (
	// nothing is left: the strategy confirms nothing, it was done, or it failed, which is
	// tried again with the next start of the worker.
	nothing confirmation = iota
	// wholeBoot is the system that runs, and what the machine gave up for it.
	wholeBoot
	// givenUp is what the machine gave up: it stays marked until the site says that this
	// worker is the one of its host.
	givenUp
)

// Rejected is a version that the machine of a host gave up by itself.
type Rejected struct {
	// Name is what the version is of, as the plan named it; empty when no plan did.
	Name    string `json:"name,omitempty"`
	Version string `json:"version"`
	// Running is the version that the machine went back to, At when that was noticed.
	Running string    `json:"running"`
	At      time.Time `json:"at"`
}

// maxRejected bounds the versions that are remembered: the newest.
const maxRejected = 20

// The files in the state directory: what the worker remembers, and what an operator
// accepts. Each has one writer.
const (
	bootsFile    = "boots.json"
	acceptedFile = "accepted.json"
)

// bootsMember is the member of both files that holds what is summed.
const bootsMember = "boots"

// accepted are the versions that an operator accepts although they were given up.
type accepted struct {
	Versions []acceptedVersion `json:"versions"`
}

type acceptedVersion struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

// readKept reads a summed file; one that does not exist leaves value as it is.
func readKept(path string, value any) error {
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = format.Boots.DecodeSummed(body, bootsMember, value)
	switch {
	case format.IsUnsupported(err):
		return fmt.Errorf("%s was %w; start a version that reads it", path, err)
	case err != nil:
		return fmt.Errorf("%s is damaged: %w; remove it, and versions that were rolled back are offered again", path, err)
	}
	return nil
}

func encodeKept(value any) ([]byte, error) { return format.Boots.EncodeSummed(bootsMember, value) }

// reject returns the boots after the machine gave up a version.
func (b boots) reject(r Rejected) boots {
	same := func(other Rejected) bool { return other.Name == r.Name && other.Version == r.Version }
	b.Rejected = append(slices.DeleteFunc(slices.Clone(b.Rejected), same), r)
	b.Rejected = b.Rejected[max(0, len(b.Rejected)-maxRejected):]
	return b.withoutTrialOf(r.Version)
}

// standing returns the versions that nobody has accepted since they were rejected.
func (b boots) standing(a accepted) []Rejected {
	return slices.DeleteFunc(slices.Clone(b.Rejected), func(r Rejected) bool { return a.has(r.Version, r.At) })
}

// has reports whether a version was accepted since a time.
func (a accepted) has(version string, since time.Time) bool {
	return slices.ContainsFunc(a.Versions, func(v acceptedVersion) bool { return v.Version == version && v.At.After(since) })
}

// Accept has a version offered again that the machine of a host gave up, or has one kept that
// is on trial: then there is no Rejected. dir is the state directory of the host's worker,
// which need not be stopped.
func Accept(dir, version string, now time.Time, write WriteFile) (*Rejected, error) {
	var known boots
	var a accepted
	path := filepath.Join(dir, acceptedFile)
	if err := errors.Join(readKept(filepath.Join(dir, bootsFile), &known), readKept(path, &a)); err != nil {
		return nil, err
	}
	standing := known.standing(a)
	i := slices.IndexFunc(standing, func(r Rejected) bool { return r.Version == version })
	waits := slices.DeleteFunc(slices.Clone(known.waits()), func(v string) bool { return a.has(v, known.Trial.Since) })
	if i < 0 && !slices.Contains(waits, version) {
		return nil, fmt.Errorf("no version %q is rejected or on trial on this host%s%s", version, listRejected(standing), listOnTrial(waits))
	}
	a.Versions = append(slices.DeleteFunc(a.Versions, func(v acceptedVersion) bool { return v.Version == version }), acceptedVersion{version, now.UTC().Round(0)})
	body, err := encodeKept(a)
	if err != nil {
		return nil, err
	}
	if err := write(path, body, 0o600); err != nil {
		return nil, fmt.Errorf("cannot accept version %q: %w", version, err)
	}
	if i < 0 {
		return nil, nil
	}
	return &standing[i], nil
}

func listRejected(standing []Rejected) string {
	versions := make([]string, 0, len(standing))
	for _, r := range standing {
		versions = append(versions, r.Version)
	}
	return listVersions("; rejected are ", versions)
}

func listOnTrial(versions []string) string { return listVersions("; on trial are ", versions) }

func listVersions(what string, versions []string) string {
	const named = 10
	if len(versions) == 0 {
		return ""
	}
	return what + text.ListOf(versions[:min(len(versions), named)], len(versions), named)
}

// fellBackError is the failure of an upgrade whose machine went back by itself.
type fellBackError struct{ boot strategy.Boot }

// Error names both versions.
func (e *fellBackError) Error() string {
	return fmt.Sprintf("the machine started %s, gave it up and went back to %s by itself", e.boot.Failed, e.boot.Running)
}

// bootIsDue reports whether the system that has started is to be looked at now: to be
// confirmed, unless it is on trial. In a run that is after verify, which does it itself:
// until the upgrade is over nobody knows whether the system is well. It is for the worker of the host alone: another worker on
// this machine may have the upgrade in hand, and could not find out any more that the
// machine gave it up.
func (w *Worker) bootIsDue(now leaseTerm) bool {
	if w.unconfirmed == nothing {
		return false
	}
	switch w.journal.Phase {
	case Upgrading, Verifying, RollingBack, Rebooting:
		return false
	}
	switch now.state {
	case held:
		return !w.away(now)
	case unanswered:
		return !w.away(now) && w.unconfirmed == wholeBoot
	default:
		return false
	}
}

// confirmBoot confirms the system that has started outside of an upgrade, or after one
// that failed. It is tried again with the next start of the worker if it fails, and holds
// nothing up: the host works, whatever its boot loader says.
func (w *Worker) confirmBoot(ctx context.Context, now leaseTerm) error {
	w.At("before confirm")
	boot, err := w.booted(ctx)
	if next, gone := w.journal.wentBack(boot); err == nil && gone {
		if err := w.save(ctx, next); err != nil { // It is on disk before the machine forgets it.
			return err
		}
	}
	switch {
	case err != nil:
	case w.boots.onTrial(boot, w.Now()):
		w.unconfirmed = nothing
		w.Log.Info("the system that has started is confirmed once the checks of the rollout have passed", "host", w.Host, "running", boot.Running, "boot", w.bootID)
	case now.state == unanswered && !w.mayForget(boot):
		w.unconfirmed = givenUp
		w.Log.Warn("what the machine gave up stays marked until the site is connected and says that this worker is the one of its host", "host", w.Host, "failed", boot.Failed, "running", boot.Running, "boot", w.bootID)
		err = w.markGood(ctx, strategy.Boot{Running: boot.Running})
	default:
		err = w.confirm(ctx, boot)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.Log.Warn("cannot confirm the system that has started; it is tried again when the worker starts again", "host", w.Host, "boot", w.bootID, "error", err)
		w.unconfirmed = nothing
	}
	w.At("after confirm")
	return nil
}

// wentBack returns the journal after a start of the machine that gave up what an upgrade has
// installed, while the reply still says that the upgrade takes a reboot, or is done.
func (j Journal) wentBack(boot strategy.Boot) (next Journal, is bool) {
	success := j.Result == message.RebootRequired || j.Result == message.Done
	if boot.Failed == "" || j.Phase != Answering || j.Action == message.Prepare || !success {
		return j, false
	}
	return j.afterFailure(strategy.Fail(message.Boot, &fellBackError{boot})), true
}

// mayForget reports whether a worker that cannot ask the site may have the machine forget
// what it gave up: there is nothing, or this worker itself installed it.
func (w *Worker) mayForget(boot strategy.Boot) bool {
	return boot.Failed == "" || w.journal.pastPrepare() && w.planned(boot.Failed) != ""
}

// booted asks which system has started, and remembers the version that the machine gave
// up.
func (w *Worker) booted(ctx context.Context) (strategy.Boot, error) {
	c, ok := w.Strategy.(strategy.Confirmer)
	if !ok {
		return strategy.Boot{}, nil
	}
	boot, err := within(ctx, w, "asking which system has started", strategy.Job{}, func(ctx context.Context, _ strategy.Job) (strategy.Boot, error) {
		return c.Booted(ctx)
	})
	if err != nil {
		return boot, fmt.Errorf("cannot find out which system has started: %w", err)
	}
	if boot.Failed == "" || w.boots.Judged == w.bootID {
		return boot, nil
	}
	r := Rejected{Name: w.planned(boot.Failed), Version: boot.Failed, Running: boot.Running, At: w.Now().UTC().Round(0)}
	w.Log.Warn("the machine went back by itself", "host", w.Host, "failed", r.Version, "running", r.Running, "boot", w.bootID)
	if err := w.keepBoots(ctx, w.boots.reject(r)); err != nil {
		return boot, err
	}
	w.sendAlive() // The site is told at once.
	return boot, nil
}

// confirm marks the system that runs as good, and remembers that, unless this boot is done
// with.
func (w *Worker) confirm(ctx context.Context, boot strategy.Boot) error {
	if w.boots.Judged == w.bootID {
		return nil
	}
	return w.confirmVerified(ctx, boot)
}

// confirmVerified is confirm for a system that was verified just now. It may have failed that
// before in this boot, so that it was left unconfirmed.
func (w *Worker) confirmVerified(ctx context.Context, boot strategy.Boot) error {
	if boot.Running == "" {
		return w.judged(ctx)
	}
	if err := w.markGood(ctx, boot); err != nil {
		return err
	}
	w.Log.Debug("confirmed the system that has started", "host", w.Host, "running", boot.Running, "failed", boot.Failed, "boot", w.bootID)
	return w.judged(ctx)
}

// markGood has the strategy mark the system that runs as good, and the failed one as bad.
func (w *Worker) markGood(ctx context.Context, boot strategy.Boot) error {
	c, ok := w.Strategy.(strategy.Confirmer)
	if !ok || boot.Running == "" {
		return nil
	}
	_, err := within(ctx, w, "confirming the system that has started", strategy.Job{}, func(ctx context.Context, _ strategy.Job) (struct{}, error) {
		return struct{}{}, c.Confirm(ctx, boot)
	})
	if err != nil {
		return fmt.Errorf("cannot confirm that %s runs: %w", boot.Running, err)
	}
	return nil
}

// judged remembers that nothing more is to be confirmed in this boot.
func (w *Worker) judged(ctx context.Context) error {
	if w.boots.Judged == w.bootID {
		return nil
	}
	next := w.boots
	next.Judged = w.bootID
	if err := w.keepBoots(ctx, next); err != nil {
		return err
	}
	w.unconfirmed = nothing
	return nil
}

// notJudged remembers that what runs is to be confirmed later in this boot, though it has
// failed its verify before.
func (w *Worker) notJudged(ctx context.Context) error {
	if w.boots.Judged != w.bootID {
		return nil
	}
	next := w.boots
	next.Judged = ""
	return w.keepBoots(ctx, next)
}

func (w *Worker) keepBoots(ctx context.Context, next boots) error {
	body, err := encodeKept(next)
	if err != nil {
		return err
	}
	path := filepath.Join(w.Dir, bootsFile)
	if err := w.persist(ctx, "boots", w.journal.Run, func() error { return w.WriteFile(path, body, 0o600) }); err != nil {
		return err
	}
	w.boots = next
	w.publishBoots()
	return nil
}

// publishBoots makes the boots known to the goroutines beside the loop: the heartbeats tell of
// the versions that the machine gave up.
func (w *Worker) publishBoots() {
	known, standing := w.boots, w.rejected()
	w.keptBoots.Store(&known)
	w.rolledBack.Store(&standing)
}

// rejected are the versions that are not to be offered.
func (w *Worker) rejected() []Rejected { return w.boots.standing(w.accepted()) }

// accepted are the versions that an operator accepts.
func (w *Worker) accepted() (a accepted) {
	if err := readKept(filepath.Join(w.Dir, acceptedFile), &a); err != nil {
		w.Log.Warn("cannot read which versions are accepted again, so none is", "host", w.Host, "error", err)
		return accepted{}
	}
	return a
}

// toldRejected is what a heartbeat tells of the versions that the machine gave up, which
// an operator may have accepted since.
func (w *Worker) toldRejected() []message.RolledBackVersion {
	var told []message.RolledBackVersion
	for _, r := range w.stillRejected() {
		told = append(told, message.RolledBackVersion{Version: r.Version, Running: r.Running, At: r.At})
	}
	return told
}

// stillRejected is rejected for the goroutines beside the loop: an operator may have accepted
// some since.
func (w *Worker) stillRejected() []Rejected {
	rejected := *w.rolledBack.Load()
	if len(rejected) == 0 {
		return nil
	}
	a := w.accepted()
	return slices.DeleteFunc(slices.Clone(rejected), func(r Rejected) bool { return a.has(r.Version, r.At) })
}

// byName returns the versions that a plan holds back, by their names.
func byName(rejected []Rejected) message.Rejected {
	versions := make(message.Rejected, len(rejected))
	for _, r := range rejected {
		versions[r.Name] = append(versions[r.Name], r.Version)
	}
	return versions
}

// planned returns what a version is of by the plan of the newest run; empty when that
// does not know it.
func (w *Worker) planned(version string) string {
	plan, err := readPlan(w.planPath(), w.journal)
	if err != nil {
		return ""
	}
	for _, c := range plan.Changes {
		if c.To == version {
			return c.Name
		}
	}
	return ""
}
