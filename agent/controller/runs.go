package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Runs returns the runs that a filter chooses, newest first. They come without
// their hosts, but for the one that was opened last.
func (c *Controller) Runs(ctx context.Context, filter v1.RunFilter) ([]v1.Run, error) {
	of, err := c.namesOf(ctx, filter.OnlyHosts())
	if err != nil {
		return nil, err
	}
	newest, err := ask(ctx, c, (*state).newestRuns)
	if err != nil {
		return nil, err
	}
	l := listing{filter: filter, of: of, seen: map[uint64]bool{}, runs: []v1.Run{}}
	for i, r := range newest {
		l.add(r)
		if i == 0 && len(l.runs) > 0 {
			l.runs[0].Hosts = r.Hosts
		}
	}
	for _, r := range c.session().beside.past.queued() {
		l.add(r)
	}
	if !l.hasRoom() {
		return l.runs, nil
	}
	var failed error
	err = c.o.Store.Runs(ctx, c.o.Tenant, func(r v1.Run) bool {
		shown := r
		if of != nil && !l.seen[r.ID] && filter.Keeps(r) {
			if r, failed = c.o.Store.Run(ctx, c.o.Tenant, r.ID); failed != nil {
				return false
			}
			shown.Hosts = r.Hosts
		}
		return l.add(shown)
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return l.runs, nil
}

// newestRuns are the newest runs of all environments, the one with the highest id first.
func (s *state) newestRuns() (all []v1.Run) {
	for _, env := range s.inOrder {
		if r := s.newestRun(env, s.Now()); r != nil {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(a, b v1.Run) int { return cmp.Compare(b.ID, a.ID) })
	return all
}

// namesOf returns the names of the hosts that a selector chooses; nil for all. Names alone may be
// of hosts that are no longer known.
func (c *Controller) namesOf(ctx context.Context, selector v1.Selector) (map[string]bool, error) {
	names := map[string]bool{}
	switch {
	case selector.IsZero():
		return nil, nil
	case len(selector.Labels)+len(selector.Roles) == 0:
		for _, name := range selector.Hosts {
			names[name] = true
		}
		return names, nil
	}
	return ask(ctx, c, func(s *state) map[string]bool {
		for _, host := range fitting(s.hosts.sorted(), selector.Matcher(), 0) {
			names[host.Name] = true
		}
		return names
	})
}

// listing gathers the runs that a filter chooses.
type listing struct {
	filter v1.RunFilter
	// of are the hosts that the filter chooses; nil is any.
	of   map[string]bool
	seen map[uint64]bool
	runs []v1.Run
}

// add takes in a run, and reports whether there is room for more.
func (l *listing) add(r v1.Run) bool {
	if l.seen[r.ID] || !l.hasRoom() {
		return l.hasRoom()
	}
	l.seen[r.ID] = true
	if l.filter.Keeps(r) && (l.of == nil || r.HasAny(l.of)) {
		if r.Finished() {
			r.Hosts = []v1.RunHost{}
		}
		r.Events, r.Release = nil, r.Release.WithoutText()
		l.runs = append(l.runs, r)
	}
	return l.hasRoom()
}

func (l *listing) hasRoom() bool { return len(l.runs) < l.filter.Most() }

// Find returns one run with its hosts and its story: the newest from memory,
// an earlier one from the history.
func (c *Controller) Find(ctx context.Context, id uint64) (v1.Run, error) {
	newest, err := ask(ctx, c, func(s *state) *v1.Run {
		// The story is that of the newest; of one before it the history has it.
		for _, env := range s.inOrder {
			if r := env.visible(); r != nil && (r.Key() == id || r.OpenedSeq == id) && r == env.ledger.Newest() {
				view := s.fullView(env, r)
				return &view
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return v1.Run{}, err
	case newest != nil:
		return *newest, nil
	}
	for _, r := range c.session().beside.past.queued() {
		if r.ID == id {
			return r, nil
		}
	}
	r, err := c.o.Store.Run(ctx, c.o.Tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return v1.Run{}, fmt.Errorf("run %d: %w", id, run.ErrNoRun)
	}
	return r, err
}

// Output returns what the actions of a host have printed in a run. The error is
// run.ErrNoRun when there is no such run, and run.ErrNoHost when the host is not in
// it.
func (c *Controller) Output(ctx context.Context, id uint64, host string) ([]v1.ActionOutput, error) {
	r, err := c.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(r.Hosts, func(h v1.RunHost) bool { return h.Hostname == host }) {
		return nil, fmt.Errorf("host %s in run %d: %w", host, id, run.ErrNoHost)
	}
	outputs, err := c.outputs(ctx, id, host)
	if err != nil || !c.asksOutput(ctx, r, host) {
		return outputs, err
	}
	for waited := time.Duration(0); waited < outputWait; waited += outputLook {
		if err := wait.Sleep(ctx, outputLook); err != nil {
			return nil, err
		}
		newer, err := c.outputs(ctx, id, host)
		if err != nil || !slices.Equal(outputs, newer) {
			return newer, err
		}
	}
	return outputs, nil
}

const (
	// outputWait is how long whoever looks at the output of an action in progress waits for the
	// host to send what it has printed since, outputLook how often that is looked for.
	outputWait, outputLook = time.Second, 50 * time.Millisecond
	// outputAgain is the shortest time between two requests of a host for its output: whoever
	// may read cannot keep it busy.
	outputAgain = 2 * time.Second
)

// asksOutput asks a host for what its action has printed so far, if it may be at one of the run,
// and reports whether it did.
func (c *Controller) asksOutput(ctx context.Context, r v1.Run, host string) bool {
	due, err := ask(ctx, c, func(s *state) bool {
		newest, now := s.lastOf(host).visible(), s.Now()
		known := s.hosts.known[host]
		if newest == nil || newest.Key() != r.ID || known == nil || !s.hosts.isOnline(host, now) || now.Sub(known.outputAskedAt).Abs() < outputAgain {
			return false
		}
		if member, found := newest.Host(host); found && member.Status == run.Upgraded {
			return false
		}
		known.outputAskedAt = now
		return true
	})
	return err == nil && due && c.o.HostEvents.Ask(host, log.Ask{Kind: report.Output}) == nil
}

// outputs returns what is kept of what the actions of a host have printed in a run.
func (c *Controller) outputs(ctx context.Context, id uint64, host string) ([]v1.ActionOutput, error) {
	outputs := []v1.ActionOutput{}
	for _, action := range report.Output.Parts {
		kept, err := c.o.Store.Report(ctx, c.o.Tenant, log.Token(host), report.ID{Kind: report.Output, Run: id, Part: action})
		switch {
		case err == nil:
			outputs = append(outputs, v1.ActionOutput{Action: action, At: view.Time(kept.At), Cut: kept.Cut, Output: string(kept.Body)})
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	return outputs, nil
}

// Plan returns what a run changes on a host. The errors are those of Output, and
// run.ErrNoPlan when the host has told no plan that is kept.
func (c *Controller) Plan(ctx context.Context, id uint64, host string) (v1.HostPlan, error) {
	r, err := c.Find(ctx, id)
	if err != nil {
		return v1.HostPlan{}, err
	}
	if !slices.ContainsFunc(r.Hosts, func(h v1.RunHost) bool { return h.Hostname == host }) {
		return v1.HostPlan{}, fmt.Errorf("host %s in run %d: %w", host, id, run.ErrNoHost)
	}
	plan, err := c.plan(ctx, host, report.ID{Kind: report.Plan, Run: id})
	if errors.Is(err, run.ErrNoPlan) {
		return v1.HostPlan{}, fmt.Errorf("host %s in run %d: %w", host, id, err)
	}
	return plan, err
}

// Watch returns a channel that gets word of each change of the snapshot, also of those
// that come by time alone, several at once as one, until stop is called.
func (c *Controller) Watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error) {
	signal, stop := c.watchers.Add()
	if err := c.attempt(ctx, func(*state) error { return nil }); err != nil {
		stop()
		return nil, nil, err
	}
	return signal, stop, nil
}

// Snapshot returns what is shown now: the situation and the run that was opened last.
func (c *Controller) Snapshot(ctx context.Context) (v1.Snapshot, error) {
	return ask(ctx, c, (*state).snapshot)
}

// SnapshotOf is Snapshot of an environment and no other: its hosts are counted and its newest run is
// shown. The error is *run.NoEnvironment if there is none of the name.
func (c *Controller) SnapshotOf(ctx context.Context, environment string) (v1.Snapshot, error) {
	return until(ctx, c, func(s *state) (v1.Snapshot, error) {
		env, err := s.existing(environment)
		if err != nil {
			return v1.Snapshot{}, err
		}
		now := s.Now()
		return s.snapshotOf(env, s.situationIn(env, s.hosts.in(env.name), now), now), nil
	})
}

// Current returns the id of the run under way, the lowest one of several, or 0.
func (c *Controller) Current(ctx context.Context) (id uint64, err error) {
	current, err := ask(ctx, c, func(s *state) *uint64 {
		var id uint64
		for _, env := range s.ledger.UnderWay() {
			if id = env.Current().ID; id != 0 {
				return &id
			}
		}
		if len(s.ledger.UnderWay()) > 0 {
			return nil
		}
		return &id
	})
	switch {
	case err != nil:
		return 0, err
	case current == nil:
		return 0, fmt.Errorf("%w: a run is just being opened", run.ErrNotReady)
	}
	return *current, nil
}

// Ready returns why the controller sends no commands, or nil.
func (c *Controller) Ready(ctx context.Context) (why error) {
	return c.attempt(ctx, (*state).serving)
}
