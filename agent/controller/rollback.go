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

// rollbackScope is what a rollback undoes.
type rollbackScope struct {
	rollback.Scope
	// newest is the newest run of the environment when this was gathered, newer are those after the runs
	// that are rolled back, by id.
	newest uint64
	newer  map[uint64]v1.Run
}

// covers reports whether the rollback is of a host: the last run that changed it is one of those that it undoes.
func (b *rollbackScope) covers(h *host) bool { return b.Runs.Has(h.ChangedBy) }

// chooseRollback gathers from the history what a rollback undoes. The error is *run.Refused if there is no
// way back.
func (c *Controller) chooseRollback(ctx context.Context, request v1.Start) (chosen choice, err error) {
	id := request.RollbackOf
	if id == 0 {
		if id, err = c.newestUpgrade(ctx, request); err != nil {
			return chosen, err
		}
	}
	of, err := c.Find(ctx, id)
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
		return chosen, &run.Refused{Run: of.ID, Message: fmt.Sprintf("run %d cannot be rolled back: environment %s has had more than %d runs since", of.ID, in, v1.MaxRuns)}
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
	back := rollbackScope{newest: all[0].ID, newer: map[uint64]v1.Run{}}
	for _, r := range all[:n] {
		back.newer[r.ID] = r
	}
	back.Scope, err = rollback.ScopeOf(runs, all[:n])
	return choice{environment: in, back: &back}, err
}

// newestUpgrade returns the run that a rollback means which names none: the newest one that has upgraded a
// host. It is no rollback, unless it is one of a rollback, whose hosts have again what they were upgraded
// to. A request without an environment means the only one that has such runs.
func (c *Controller) newestUpgrade(ctx context.Context, request v1.Start) (uint64, error) {
	filter, where := v1.RunFilter{Limit: v1.MaxRuns}, ""
	if request.Environment != "" {
		filter.Environments, where = []string{request.Environment}, " of environment "+request.Environment
	}
	runs, err := c.Runs(ctx, filter)
	if err != nil {
		return 0, err
	}
	back := map[uint64]bool{} // Whether hosts had an earlier release after the run.
	for _, r := range slices.Backward(runs) {
		back[r.ID] = r.RollbackOf != 0 && !back[r.RollbackOf]
	}
	found, of := ambiguity{}, map[string]bool{}
	for _, r := range runs {
		in := nameOf(r.Environment)
		upgraded := slices.ContainsFunc(r.Stages, func(s v1.RunStage) bool { return s.Upgraded > 0 && s.DoneIn == 0 })
		if !upgraded || back[r.ID] || of[in] {
			continue
		}
		of[in], request.Environment = true, in
		found.add(v1.Choice{Environment: in, Run: r.ID, Command: startAgain(request, "")}, "run %d of %s", r.ID, in)
	}
	switch len(found.choices) {
	case 0:
		if request.Environment != "" {
			unknown, err := ask(ctx, c, func(s *state) error { _, err := s.declared(request.Environment); return err })
			if err = cmp.Or(err, unknown); err != nil {
				return 0, err
			}
		}
		return 0, &run.Refused{Message: fmt.Sprintf("no run%s has upgraded a host, so there is nothing to roll back", where)}
	case 1:
		return found.choices[0].Run, nil
	}
	return 0, found.of("a rollback is of one environment, and several have runs that upgraded hosts: %s; say which you mean: %s")
}

// planRollback plans a rollback, and returns what it is opened with. The error is *run.Refused if it would do
// nothing, and run.ErrNotReady if there is a newer run than when this was gathered.
func (s *state) planRollback(env *environment, e message.Opened, back *rollbackScope) (message.Opened, plan.Plan, error) {
	if newest := env.ledger.Newest(); newest != nil && newest.Key() != back.newest {
		return e, plan.Plan{}, fmt.Errorf("%w: a run has just ended", run.ErrNotReady)
	}
	members := map[string]bool{}
	for name, h := range s.hosts.in(env.name) {
		if back.covers(h) {
			members[name] = true
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
func (s *state) staysAsItIs(fleet []plan.Host, members map[string]bool, back *rollbackScope) (all []rollout.Exempt) {
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
			why = "it is no longer in this environment"
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
func (b *rollbackScope) nothing(p plan.Plan) error {
	switch {
	case len(p.Hosts) > 0 || len(p.Rollout.Stages) > 0:
		return nil
	case len(p.Exempt) > 0:
		return &run.Refused{Run: b.Runs.Of, Message: fmt.Sprintf("nothing is left to roll back of %s; the first host is %s: %s", b.Runs.Runs(), p.Exempt[0].Host, p.Exempt[0].Reason)}
	}
	return &run.Refused{Run: b.Runs.Of, Message: fmt.Sprintf("there is nothing to roll back of %s: no host was changed", b.Runs.Runs())}
}

// rolledBack says why an environment goes to a release only if somebody names it in a start: it was rolled
// back, and no run has gone to it since. It is empty for any other release, and for none.
func (e *environment) rolledBack(pinned *release.Pin) string {
	goes := e.ledger.Promotion()
	if pinned == nil || goes == nil || goes.RolledBack == nil || goes.Release != pinned.Ref() {
		return ""
	}
	why := fmt.Sprintf("release %s was rolled back by run %d", pinned.Name, goes.RolledBack.Run)
	if by := goes.RolledBack.By; by != "" {
		why += fmt.Sprintf(" (%s: %s)", by, goes.RolledBack.Why)
	}
	return why
}
