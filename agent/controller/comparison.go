package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/compare"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// planLimit is how long the plan of a host that has prepared is waited for: it comes beside the
	// answer of the host. planAgain is the wait before it is looked for again.
	planLimit, planAgain = 2 * time.Minute, 2 * time.Second
	// plansAtOnce bounds the plans that are in memory while they are compared.
	plansAtOnce = 500
	// maxCompared bounds the hosts that are named whose plans are waited for.
	maxCompared = 10
)

// comparison compares the plans of the hosts of a run that installs packages of a release. It reads
// them beside the loop, and keeps nothing on disk: after a restart they are read anew.
type comparison struct {
	Options
	// post has a function run in the loop, ready is called when there is something new.
	post  func(context.Context, func())
	ready func()
	// refuses tells that hosts which plan something else are refused.
	refuses bool
	run     uint64
	stages  map[string]int
	// wanted are the hosts that have prepared and whose plans are not compared yet, with when they
	// prepared. lost are those whose plans did not come in time.
	wanted map[string]time.Time
	lost   []string
	// reading tells that plans are being read: then only whoever reads uses plans.
	reading bool
	plans   *compare.Plans
	// readAt is when plans that were not there are looked for again.
	readAt time.Time
	// differing is what is known once no plan is wanted; nil before, and if nothing differs.
	differing *message.Differing
	failing   throttle.Failing
}

// newComparison makes the comparison of a run; nil if its plans are not compared.
func newComparison(o Options, r *run.State, post func(context.Context, func()), ready func()) *comparison {
	compares, refuses := r.ComparesPlans()
	if !compares || r.Over() {
		return nil
	}
	c := &comparison{Options: o, post: post, ready: ready, refuses: refuses, stages: map[string]int{}, wanted: map[string]time.Time{}, plans: compare.New()}
	for n, stage := range r.Rollout().Stages {
		c.stages[stage.Name] = n
	}
	return c
}

// record notes the hosts that have prepared.
func (c *comparison) record(r *run.State, record message.Decoded, _ bool) {
	if record.Kind != message.ReplyRecord || record.Action != message.Prepare {
		return
	}
	if member, known := r.Host(record.Host); known && member.Status == run.Prepared {
		c.run, c.wanted[record.Host] = r.ID, record.Time
	}
}

// known returns what the plans differ in, once all are compared, and whether hosts have to wait for
// that.
func (c *comparison) known() (differing *message.Differing, waits bool) {
	switch {
	case c == nil:
		return nil, false
	case len(c.wanted) > 0:
		return nil, c.refuses
	}
	return c.differing, false
}

// waits is what the run waits for while plans have to be compared; nil if it does not.
func (c *comparison) waits() *v1.WaitingFor {
	if _, waits := c.known(); !waits {
		return nil
	}
	hosts := slices.Sorted(maps.Keys(c.wanted))
	since := c.wanted[hosts[0]]
	for _, at := range c.wanted {
		if at.Before(since) {
			since = at
		}
	}
	return &v1.WaitingFor{What: run.ForHost, Detail: "the plans of " + text.List(hosts, maxCompared) + " to be compared", Since: view.Time(since), Hosts: hosts}
}

// read reads the plans that are wanted, beside the loop, and returns when to look for them again.
func (c *comparison) read(ctx context.Context, current *run.State, now time.Time) (again time.Time) {
	if c == nil || current == nil || c.reading || len(c.wanted) == 0 {
		return time.Time{}
	}
	if wait := c.readAt.Sub(now); 0 < wait && wait <= planAgain { // A clock that was set back does not put it off.
		return c.readAt
	}
	for name := range c.wanted {
		if member, _ := current.Host(name); member.Status.Final() && member.Status != run.Upgraded {
			delete(c.wanted, name) // It was deleted or released, or has failed.
		}
	}
	hosts := make([]compare.Host, 0, len(c.wanted))
	for _, name := range slices.Sorted(maps.Keys(c.wanted)) {
		member, _ := current.Host(name)
		hosts = append(hosts, compare.Host{Name: name, Stage: c.stages[member.Stage]})
	}
	c.reading = true
	taken := current.Taken()
	go func() {
		missing, err := addPlans(ctx, c.Options, c.run, c.plans, hosts)
		differing := c.plans.Differing(taken)
		told := compare.Told(differing)
		told.Refused = compare.Refused(differing, taken)
		if ctx.Err() == nil {
			c.post(ctx, func() { c.take(hosts, missing, told, err) })
		}
	}()
	return time.Time{}
}

// addPlans adds the plans of hosts in a run to others. missing are the hosts whose plans are not there;
// after an error, also those that were not looked for.
func addPlans(ctx context.Context, o Options, id uint64, plans *compare.Plans, hosts []compare.Host) (missing map[string]bool, err error) {
	missing = map[string]bool{}
	for some := range slices.Chunk(hosts, plansAtOnce) {
		// Most hosts have the same plan, which is read once.
		alike := map[string][]compare.Host{}
		for _, host := range some {
			if err != nil {
				missing[host.Name] = true
				continue
			}
			kept, failed := o.Store.Report(ctx, o.Tenant, log.Token(host.Name), report.ID{Kind: report.Plan, Run: id})
			switch {
			case failed == nil:
				alike[string(kept.Body)] = append(alike[string(kept.Body)], host)
				continue
			case !errors.Is(failed, store.ErrNotFound) && !errors.Is(failed, report.ErrDamaged):
				err = failed
			}
			missing[host.Name] = true
		}
		for body, of := range alike {
			plan, failed := message.UnpackPlan([]byte(body))
			if failed != nil {
				for _, host := range of {
					missing[host.Name] = true
				}
				continue
			}
			plans.Add(plan, of...)
		}
	}
	return missing, err
}

// take takes up what was read.
func (c *comparison) take(hosts []compare.Host, missing map[string]bool, told message.Differing, err error) {
	now := c.Now()
	c.reading, c.readAt = false, time.Time{}
	if len(missing) > 0 {
		c.readAt = now.Add(planAgain)
	}
	c.failing.Note(c.Logger, now, err, "cannot read the plans of hosts; trying again", "the plans of hosts can be read again", "tenant", c.Tenant, "run", c.run)
	for _, host := range hosts {
		switch {
		case !missing[host.Name]:
			delete(c.wanted, host.Name)
		case err == nil && now.Sub(c.wanted[host.Name]).Abs() >= planLimit:
			delete(c.wanted, host.Name)
			c.lost = append(c.lost, host.Name)
		}
	}
	if len(c.lost) > 0 {
		told.Refused = append(told.Refused, message.Refusal{Hosts: c.lost, Why: "its plan did not come within " + window.FormatDuration(planLimit) + ", so it was compared with no other, and packages.same of the release is true"})
	}
	if c.differing = nil; len(told.Packages)+len(told.Refused) > 0 {
		c.differing = &told
	}
	c.ready()
}
