package decide

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Kept is what a host keeps of the runs that have touched it, so that a later run can roll them
// back. It has a file of its own: the journal is written with each action, and a plan may be long.
type Kept struct {
	// Runs are the newest ones, newest first. A run that has changed nothing is none of them.
	Runs []KeptRun `json:"runs,omitempty"`
	// Lost is the newest run that has changed the host and is no longer among Runs; 0 for none. A rollback
	// that includes it would go only part of the way back.
	Lost uint64 `json:"lost,omitempty"`
	// Rejected are the versions that runs without a release have rolled back. The next plan
	// without one holds them back until there are others.
	Rejected message.Rejected `json:"rejected,omitempty"`
}

// KeptRun is a run that has begun to change the host.
type KeptRun struct {
	// Run, RunAt and Log are those of the journal.
	Run   uint64    `json:"run"`
	RunAt time.Time `json:"run-at,omitzero"`
	Log   string    `json:"log,omitempty"`
	// Changes are those of the plan.
	Changes []message.Change `json:"changes,omitempty"`
	// Release is what the host has after the run, and Was what it had before; nil if nobody knows.
	Release *release.Pin `json:"release,omitempty"`
	Was     *release.Pin `json:"was,omitempty"`
	// RollbackOf is the newest run that this one has rolled back, if it is a rollback. Back tells that
	// it goes to older versions, as the rollback of a rollback does not.
	RollbackOf uint64 `json:"rollback-of,omitempty"`
	Back       bool   `json:"back,omitempty"`
	// Done means that the host was proved to have the changes.
	Done bool `json:"done,omitempty"`
}

// maxKept is how many runs are kept: those to one release that have failed on this host, and the one
// that went well.
const maxKept = 10

// keptMember is the member of the file that holds what is summed.
const keptMember = "kept"

// DecodeKept reads the file with what a host keeps of the runs that have touched it.
func DecodeKept(body []byte) (k Kept, err error) {
	if err := format.Kept.DecodeSummed(body, keptMember, &k); err != nil {
		return Kept{}, err
	}
	return k, k.check()
}

// Encode returns the content of the file.
func (k Kept) Encode() ([]byte, error) { return format.Kept.EncodeSummed(keptMember, k) }

// check returns an error for what no worker writes.
func (k Kept) check() error {
	for _, r := range k.Runs {
		if r.Run == 0 {
			return errors.New("a run has no number")
		}
		problems := []error{message.ChangeSet{Changes: r.Changes}.Check()}
		for _, pinned := range []*release.Pin{r.Release, r.Was} {
			if pinned != nil {
				problems = append(problems, pinned.Check())
			}
		}
		if err := errors.Join(problems...); err != nil {
			return fmt.Errorf("run %d: %w", r.Run, err)
		}
	}
	return nil
}

// Undoing is what a rollback changes on a host.
type Undoing struct {
	// Run is the newest of them, Changes are what they have changed together.
	Run     uint64
	Changes []message.Change
	// Release is what the newest of them has installed, and Was what the host had before the oldest.
	Release, Was *release.Pin
	// Undone means that the newest run has rolled them back, and that no plan could tell what is left.
	Undone bool
	// back tells that they went to older versions.
	back bool
	// between are the versions that they went from and to, by name, if there are several.
	between map[string][]string
}

// From returns the changes of a host by what it has: differs are the reversed changes that it lacks. A
// run that has failed may have left a version in between, which none of the changes goes to.
func (u Undoing) From(differs []message.Change) []message.Change {
	changes := slices.Clone(u.Changes)
	for i, c := range changes {
		at := slices.IndexFunc(differs, func(d message.Change) bool { return d.Name == c.Name })
		if at >= 0 && slices.Contains(u.between[c.Name], differs[at].From) {
			changes[i].To = differs[at].From
		}
	}
	return slices.DeleteFunc(changes, func(c message.Change) bool { return c.From == c.To })
}

// Several reports whether it is several runs whose changes may have left a version in between.
func (u Undoing) Several() bool { return u.between != nil }

// Undo returns what undoes the runs of an interval: all that have touched the host since, if the
// newest is one of them. If the newest is a rollback of them that was not completed, it goes on.
func (k *Kept) Undo(runs message.Interval) (u Undoing, err error) {
	if k == nil || len(k.Runs) == 0 {
		return Undoing{}, fmt.Errorf("%s cannot be rolled back: this host keeps no run that has changed it", runs.Runs())
	}
	newest := k.Runs[0]
	if runs.Has(newest.RollbackOf) {
		return Undoing{Run: newest.RollbackOf, Changes: strategy.Reversed(newest.Changes), Release: newest.Was, Was: newest.Release, Undone: newest.Done && len(newest.Changes) == 0, back: !newest.Back}, nil
	}
	for _, r := range k.Runs {
		if !runs.Has(r.Run) {
			break
		}
		if r.Log != newest.Log { // Another site has other runs of these numbers, and so may one that was restored.
			return Undoing{}, fmt.Errorf("%s cannot be rolled back: run %d, which changed this host, is on another log", runs.Runs(), r.Run)
		}
		if u.Run == 0 {
			u = Undoing{Run: r.Run, Release: r.Release, back: r.Back}
		}
		if len(u.Changes) > 0 && u.between == nil {
			u.between = map[string][]string{}
			u.passes(u.Changes)
		}
		u.passes(r.Changes)
		u.Changes, u.Was = joined(r.Changes, u.Changes), r.Was
	}
	if u.Run == 0 {
		return Undoing{}, fmt.Errorf("%s cannot be rolled back: the last run that has changed this host is run %d", runs.Runs(), newest.Run)
	}
	if runs.Has(k.Lost) {
		return Undoing{}, fmt.Errorf("%s cannot be rolled back: this host keeps its last %d runs, and no longer knows what run %d changed", runs.Runs(), len(k.Runs), k.Lost)
	}
	return u, nil
}

// passes notes the versions of the changes of one of several runs.
func (u Undoing) passes(changes []message.Change) {
	for _, c := range changes {
		if u.between != nil {
			u.between[c.Name] = append(u.between[c.Name], c.From, c.To)
		}
	}
}

// joined returns the changes that come to the same as some changes and then others. What somebody
// else has changed in between is not undone.
func joined(first, then []message.Change) []message.Change {
	all := map[string]message.Change{}
	for _, c := range first {
		all[c.Name] = c
	}
	for _, c := range then {
		if before, found := all[c.Name]; found && (c.From == before.To || c.From == before.From) {
			c.From = before.From
		}
		all[c.Name] = c
	}
	return slices.SortedFunc(maps.Values(all), func(a, b message.Change) int { return cmp.Compare(a.Name, b.Name) })
}

// touched returns the state in which the run of the journal is the newest one that has touched the
// host: its upgrade begins, or goes on. A run whose plan has nothing to change touches nothing.
func (s State) touched(seen Seen) State {
	j := s.Journal
	if !seen.Prepared.IsOf(j) || s.Kept.isNewest(j) {
		return s
	}
	before := Kept{}
	if s.Kept != nil {
		before = *s.Kept
	}
	run, undoes := KeptRun{Run: j.Run, RunAt: j.RunAt, Log: j.Log, Changes: seen.Prepared.Plan.Changes, Release: j.Release, Was: before.release()}, Undoing{}
	if j.RollsBack != "" {
		var err error
		if undoes, err = s.Kept.Undo(j.rollsBack()); err != nil {
			return s // Its prepare has failed.
		}
		run.Release, run.Was, run.RollbackOf, run.Back = undoes.Was, undoes.Release, undoes.Run, !undoes.back
	}
	// Without a plan an upgrade may change anything, and so may the way back from it.
	if undoes.Undone || len(run.Changes) == 0 && (!seen.Planless || len(undoes.Changes) > 0) {
		return s
	}
	next := Kept{Runs: append([]KeptRun{run}, before.Runs...), Lost: before.Lost, Rejected: maps.Clone(before.Rejected)}
	if len(next.Runs) > maxKept {
		next.Runs, next.Lost = next.Runs[:maxKept], next.Runs[maxKept].Run
	}
	for _, c := range run.Changes {
		delete(next.Rejected, c.Name)
	}
	s.Kept = &next
	return s
}

// done returns the state once the journal says that its run is done on the host.
func (s State) done() State {
	j := s.Journal
	if j.Phase != Answering || !j.PastPrepare() || j.Result.Outcome != message.Done || !s.Kept.isNewest(j) || s.Kept.Runs[0].Done {
		return s
	}
	next := Kept{Runs: slices.Clone(s.Kept.Runs), Lost: s.Kept.Lost, Rejected: maps.Clone(s.Kept.Rejected)}
	run := &next.Runs[0]
	run.Done = true
	if run.Back && run.Was == nil {
		if next.Rejected == nil {
			next.Rejected = message.Rejected{}
		}
		for _, c := range run.Changes {
			if c.From != "" {
				next.Rejected[c.Name] = []string{c.From}
			}
		}
	}
	s.Kept = &next
	return s
}

// isNewest reports whether the run of a journal is the newest one that has touched the host.
func (k *Kept) isNewest(j Journal) bool {
	return k != nil && len(k.Runs) > 0 && k.Runs[0].Run == j.Run && k.Runs[0].RunAt.Equal(j.RunAt)
}

// release returns the release that the host has; nil if nobody knows.
func (k Kept) release() *release.Pin {
	switch {
	case len(k.Runs) == 0:
		return nil
	case k.Runs[0].Done:
		return k.Runs[0].Release
	default:
		return k.Runs[0].Was
	}
}

// RolledBack are the versions that a plan without a release holds back.
func (k *Kept) RolledBack() message.Rejected {
	if k == nil {
		return nil
	}
	return k.Rejected
}
