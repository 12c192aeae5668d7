package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
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
	// answer of the host. readAgain is the wait before plans are read again that could not be read.
	planLimit, readAgain = 2 * time.Minute, 2 * time.Second
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
	// prepared. absent are those of them whose plans were not there, and are read once they are stored.
	// lost are those whose plans did not come in time.
	wanted map[string]time.Time
	absent map[string]bool
	lost   []string
	// reading tells that plans are being read: then only whoever reads uses plans. stored are the hosts
	// whose plans were stored meanwhile.
	reading bool
	plans   *compare.Plans
	stored  map[string]bool
	// readAt is when plans are read again that could not be read.
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
	c := &comparison{Options: o, post: post, ready: ready, refuses: refuses, stages: map[string]int{}, wanted: map[string]time.Time{}, absent: map[string]bool{}, stored: map[string]bool{}, plans: compare.New()}
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

// isStored notes that the plan of a host in a run is stored, and reports whether it can be read now.
func (c *comparison) isStored(host string, id uint64) bool {
	if c == nil || c.run != id {
		return false
	}
	if c.reading {
		c.stored[host] = true
		return false
	}
	waited := c.absent[host]
	delete(c.absent, host)
	return waited
}

// planned notes that the plan of a host in a run is stored.
func (s *state) planned(host string, id uint64) {
	if env := s.lastOf(host); env.compared.isStored(host, id) {
		s.stale = true
		env.rouse()
	}
}

// Stored notes that a report of a host is stored. It may be called at any time and does not block.
func (c *Controller) Stored(host string, id report.ID) {
	if id.Kind == report.Plan {
		c.session().telemetry.Change(host, func(l *telemetry) { l.planned = id.Run })
	}
}

// known returns what the plans differ in, once all are compared, and whether hosts have to wait for
// that. Since they were compared the run may have begun with other hosts, also by another controller.
func (c *comparison) known(current *run.State) (differing *message.Differing, waits bool) {
	if c == nil || len(c.wanted) > 0 || c.differing == nil {
		return nil, c.isWaiting()
	}
	if current.Outdates(*c.differing) {
		begun := current.BegunHosts()
		c.lost = slices.DeleteFunc(slices.Clone(c.lost), func(host string) bool { return begun[host] })
		c.judge(differ(c.plans, begun))
	}
	return c.differing, false
}

// isWaiting reports whether hosts have to wait for plans to be compared.
func (c *comparison) isWaiting() bool { return c != nil && len(c.wanted) > 0 && c.refuses }

// differ returns what plans differ in, and who is refused because of that. begun are the hosts with which
// the run has begun.
func differ(plans *compare.Plans, begun map[string]bool) message.Differing {
	all := plans.Differing(begun)
	e := compare.Told(all)
	e.Refused = compare.Refused(all, begun)
	return e
}

// judge keeps what plans differ in, with the hosts whose plans did not come.
func (c *comparison) judge(e message.Differing) {
	if len(c.lost) > 0 {
		e.Refused = append(e.Refused, message.Refusal{Hosts: c.lost, Why: "its plan did not come within " + window.FormatDuration(planLimit) + ", so it was compared with no other, and packages.same of the release is true"})
	}
	if c.differing = nil; len(e.Packages)+len(e.Refused) > 0 {
		c.differing = &e
	}
}

// waits is what the run waits for while plans have to be compared; nil if it does not.
func (c *comparison) waits() *v1.WaitingFor {
	if !c.isWaiting() {
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

// read reads the plans that are wanted, beside the loop, and returns when to look for them again: one that
// was not there is read once it is stored, and for the last time when it is late.
func (c *comparison) read(ctx context.Context, current *run.State, now time.Time) (again time.Time) {
	if c == nil || current == nil || c.reading || len(c.wanted) == 0 {
		return time.Time{}
	}
	if wait := c.readAt.Sub(now); 0 < wait && wait <= readAgain { // A clock that was set back does not put it off.
		return c.readAt
	}
	for name := range c.wanted {
		if member, _ := current.Host(name); member.Status.Final() && member.Status != run.Upgraded {
			delete(c.wanted, name) // It was deleted or released, or has failed.
		}
	}
	var hosts []compare.Host
	for _, name := range slices.Sorted(maps.Keys(c.wanted)) {
		if c.absent[name] && !c.late(name, now) {
			again = times.Sooner(again, c.wanted[name].Add(planLimit))
			continue
		}
		member, _ := current.Host(name)
		hosts = append(hosts, compare.Host{Name: name, Stage: c.stages[member.Stage]})
	}
	if len(hosts) == 0 {
		return again
	}
	c.reading = true
	begun := current.BegunHosts()
	go func() {
		missing, err := addPlans(ctx, c.Options, c.run, c.plans, hosts)
		told := differ(c.plans, begun)
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

// late reports whether the plan of a host is waited for no longer.
func (c *comparison) late(host string, now time.Time) bool {
	return now.Sub(c.wanted[host]).Abs() >= planLimit
}

// take takes up what was read.
func (c *comparison) take(hosts []compare.Host, missing map[string]bool, told message.Differing, err error) {
	now := c.Now()
	c.reading, c.readAt = false, time.Time{}
	if err != nil {
		c.readAt = now.Add(readAgain)
	}
	c.failing.Note(c.Logger, now, err, "cannot read the plans of hosts; trying again", "the plans of hosts can be read again", "tenant", c.Tenant, "run", c.run)
	for _, host := range hosts {
		switch {
		case !missing[host.Name]:
			delete(c.wanted, host.Name)
			delete(c.absent, host.Name)
		case err != nil, c.stored[host.Name]:
		case c.late(host.Name, now):
			delete(c.wanted, host.Name)
			c.lost = append(c.lost, host.Name)
		default:
			c.absent[host.Name] = true
		}
	}
	clear(c.stored)
	c.judge(told)
	c.ready()
}
