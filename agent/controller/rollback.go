package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/rollback"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// takesBack is what a rollback takes back.
type takesBack struct {
	rollback.Taken
	// newest is the newest run of the environment when this was gathered, newer are those after the runs
	// that are taken back, by id.
	newest uint64
	newer  map[uint64]v1.Run
}

// takes reports whether the rollback is of a host: none but the runs that it takes back has changed it last.
func (b *takesBack) takes(h *host) bool { return b.Runs.Has(h.ChangedBy) }

// takenBackBy gathers from the history what a rollback takes back. The error is *run.Refused if there is no
// way back.
func (c *Controller) takenBackBy(ctx context.Context, request v1.Start) (chosen choice, err error) {
	of, err := c.Find(ctx, request.RollbackOf)
	if err != nil {
		return chosen, err
	}
	in := nameOf(of.Environment)
	switch {
	case request.Environment != "" && request.Environment != in:
		return chosen, &run.Refused{Run: of.ID, Message: fmt.Sprintf("run %d is of environment %s, not of %s; name that one, or none", of.ID, in, request.Environment)}
	case !of.Finished():
		in, err := ask(ctx, c, func(s *state) string { return s.inCommand(s.environment(of.Environment)) })
		return chosen, cmp.Or(err, error(&run.Refused{Run: of.ID, Message: fmt.Sprintf("run %d is in progress; abort it first: %s", of.ID, run.TypedIn(in, "abort"))}))
	}
	all, err := c.Runs(ctx, v1.RunFilter{Selector: v1.Selector{Environments: []string{in}}, Limit: v1.MaxRuns})
	if err != nil {
		return chosen, err
	}
	n := slices.IndexFunc(all, func(r v1.Run) bool { return r.ID == of.ID })
	if n < 0 {
		return chosen, &run.Refused{Run: of.ID, Message: fmt.Sprintf("run %d cannot be taken back: environment %s has had more than %d runs since", of.ID, in, v1.MaxRuns)}
	}
	together := rollback.Together(of, all[n+1:])
	runs := []v1.Run{of}
	for _, r := range all[n+1:] {
		if !together.Has(r.ID) {
			break
		}
		if r, err = c.Find(ctx, r.ID); err != nil {
			return chosen, err
		}
		runs = append(runs, r)
	}
	slices.Reverse(runs)
	back := takesBack{newest: all[0].ID, newer: map[uint64]v1.Run{}}
	for _, r := range all[:n] {
		back.newer[r.ID] = r
	}
	back.Taken, err = rollback.Take(runs, all[:n])
	return choice{environment: in, back: &back}, err
}

// wayBack returns what a start takes back that goes to the release from before the present one: nothing if
// there is no way back, and then it is an ordinary run.
func (c *Controller) wayBack(ctx context.Context, request v1.Start) (choice, error) {
	newest, err := ask(ctx, c, func(s *state) uint64 { return s.newestToTakeBack(request) })
	if err != nil || newest == 0 {
		return choice{}, err
	}
	chosen, err := c.takenBackBy(ctx, v1.Start{RollbackOf: newest})
	if _, refused := errors.AsType[*run.Refused](err); refused || errors.Is(err, run.ErrNoRun) {
		return choice{}, nil
	}
	return chosen, err
}

// newestToTakeBack returns the newest run to the present release of an environment, if a start goes to the
// release from before; 0 if it does not.
func (s *state) newestToTakeBack(request v1.Start) uint64 {
	if request.OfChosen() || request.Until != "" {
		return 0
	}
	env, err := s.startsIn(request, choice{}, func(v1.Start) string { return "" })
	if err != nil {
		return 0
	}
	goes := env.ledger.Promotion()
	if goes == nil || goes.Was == nil || goes.RolledBack != nil || goes.Closed != nil {
		return 0
	}
	if pinned, err := s.releaseToStart(env, s.Now(), request, nil); err != nil || pinned == nil || pinned.Ref() != *goes.Was {
		return 0
	}
	return goes.Last
}

// planRollback plans a rollback, and returns what it is opened with.
func (s *state) planRollback(env *environment, now time.Time, e message.Opened, back *takesBack) (message.Opened, plan.Plan, error) {
	if newest := env.ledger.Newest(); newest != nil && newest.Key() != back.newest {
		return e, plan.Plan{}, fmt.Errorf("%w: a run has just ended", run.ErrNotReady)
	}
	members := map[string]bool{}
	for _, h := range s.hosts.sorted() {
		if back.takes(h) {
			members[h.Name] = true
		}
	}
	fleet := s.fleet(env, members)
	for i := range fleet {
		if members[fleet[i].Name] && !s.hosts.known[fleet[i].Name].Rollbacks {
			fleet[i].Unfit = rollback.CannotRollBack
		}
	}
	planned := back.Plan(fleet)
	planned.Exempt = append(planned.Exempt, s.staysAsItIs(fleet, members, back)...)
	planned.Reached = env.ledger.Reached()
	e.RollbackOf, e.Outputs = back.Runs.Of, back.Outputs
	if back.Runs.Since != back.Runs.Of {
		e.RollbackSince = back.Runs.Since
	}
	e.Trigger, e.Follows = message.TriggerManual, env.ledger.Follows()
	return e, planned, s.canTakeBack(now, planned, back)
}

// staysAsItIs says of each host that the runs have changed, and that the rollback leaves alone, why.
func (s *state) staysAsItIs(fleet []plan.Host, members map[string]bool, back *takesBack) (all []rollout.Exempt) {
	in := map[string]bool{}
	for _, h := range fleet {
		in[h.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(back.Changed)) {
		known := s.hosts.known[name]
		if known == nil || in[name] && members[name] {
			continue
		}
		newer, isNewer := back.newer[known.ChangedBy]
		why := "nothing is known any more of what was done to it"
		switch {
		case !in[name]:
			why = "it is in this environment no longer"
		case isNewer && back.Runs.Has(newer.RollbackOf):
			why = fmt.Sprintf("it is back since run %d", newer.ID)
		case isNewer:
			why = fmt.Sprintf("run %d has upgraded it since", newer.ID)
		}
		all = append(all, rollout.Exempt{Host: name, Reason: why})
	}
	return all
}

// canTakeBack refuses a rollback that would do nothing, or whose hosts nobody has heard of.
func (s *state) canTakeBack(now time.Time, p plan.Plan, back *takesBack) error {
	switch {
	case len(p.Rollout.Stages) > 0 && len(p.Hosts) == 0:
		return nil
	case len(p.Hosts) == 0 && len(p.Exempt) > 0:
		return &run.Refused{Run: back.Runs.Of, Message: fmt.Sprintf("nothing is left to take back of %s; the first host is %s: %s", back.Runs.Runs(), p.Exempt[0].Host, p.Exempt[0].Reason)}
	case len(p.Hosts) == 0:
		return &run.Refused{Run: back.Runs.Of, Message: fmt.Sprintf("there is nothing to take back of %s: no host was changed", back.Runs.Runs())}
	}
	return s.startable(now, p, nil)
}

// tookBack says why no window brings the hosts of an environment to a release: it was taken back, and
// nobody has started a run to it since. It is empty for any other release, and for none.
func (e *environment) tookBack(pinned *release.Pin) string {
	goes := e.ledger.Promotion()
	if pinned == nil || goes == nil || goes.RolledBack == nil || goes.Release != pinned.Ref() {
		return ""
	}
	why := fmt.Sprintf("release %s was taken back by run %d", pinned.Name, goes.RolledBack.Run)
	if by := goes.RolledBack.By; by != "" {
		why += fmt.Sprintf(" (%s: %s)", by, goes.RolledBack.Why)
	}
	return why + "; name another release, or start a run to it by hand"
}
