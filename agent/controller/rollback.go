package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

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

// planRollback plans a rollback, and returns what it is opened with. The error is *run.Refused if it would do
// nothing, and run.ErrNotReady if there is a newer run than when this was gathered.
func (s *state) planRollback(env *environment, e message.Opened, back *takesBack) (message.Opened, plan.Plan, error) {
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
	planned.Reached = env.ledger.ReachedToRetry()
	e.RollbackOf, e.Outputs = back.Runs.Of, back.Outputs
	if back.Runs.Since != back.Runs.Of {
		e.RollbackSince = back.Runs.Since
	}
	e.Follows = env.ledger.Follows()
	return e, planned, back.nothing(planned)
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

// nothing refuses a rollback that would do nothing.
func (b *takesBack) nothing(p plan.Plan) error {
	switch {
	case len(p.Hosts) > 0 || len(p.Rollout.Stages) > 0:
		return nil
	case len(p.Exempt) > 0:
		return &run.Refused{Run: b.Runs.Of, Message: fmt.Sprintf("nothing is left to take back of %s; the first host is %s: %s", b.Runs.Runs(), p.Exempt[0].Host, p.Exempt[0].Reason)}
	}
	return &run.Refused{Run: b.Runs.Of, Message: fmt.Sprintf("there is nothing to take back of %s: no host was changed", b.Runs.Runs())}
}

// tookBack says why an environment goes to a release only if somebody names it in a start: it was taken
// back, and no run has gone to it since. It is empty for any other release, and for none.
func (e *environment) tookBack(pinned *release.Pin) string {
	goes := e.ledger.Promotion()
	if pinned == nil || goes == nil || goes.RolledBack == nil || goes.Release != pinned.Ref() {
		return ""
	}
	why := fmt.Sprintf("release %s was taken back by run %d", pinned.Name, goes.RolledBack.Run)
	if by := goes.RolledBack.By; by != "" {
		why += fmt.Sprintf(" (%s: %s)", by, goes.RolledBack.Why)
	}
	return why
}
