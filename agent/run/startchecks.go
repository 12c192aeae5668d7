package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// startChecks are the checks before a run prepares any host: where each is asked, and how they
// came out. All are asked at once, and the run waits for all: whoever has to mend something wants
// to know of everything.
type startChecks struct {
	places []startPlace
	// byHost are the indices of the places by host; the site has no name.
	byHost map[string]int
	// waits counts the places that have yet to answer.
	waits int
	// byEnd are the indices of the hosts' places, those first whose time is up first; passed counts those
	// at its beginning that have answered, so that an outcome costs the same however many hosts there are.
	byEnd  []int
	passed int
	// since is since when they are asked.
	since time.Time
}

// startPlace is the site or a host, with the checks that it is asked.
type startPlace struct {
	host   string
	checks []rollout.Check
	// answered tells that the run waits for it no longer, failed what it said.
	answered bool
	failed   string
}

// newStartChecks makes the checks of a run whose members come in this order.
func newStartChecks(r *rollout.Resolved, at time.Time) startChecks {
	c := startChecks{since: at}
	for _, p := range r.StartPlaces() {
		c.add(p.Host, p.Checks)
	}
	slices.SortStableFunc(c.byEnd, func(a, b int) int { return cmp.Compare(c.places[a].limit(), c.places[b].limit()) })
	return c
}

func (c *startChecks) add(host string, checks []rollout.Check) {
	if c.byHost == nil {
		c.byHost = map[string]int{}
	}
	c.byHost[host] = len(c.places)
	if host != "" { // What is run at the site ends by itself.
		c.byEnd = append(c.byEnd, len(c.places))
	}
	c.places = append(c.places, startPlace{host: host, checks: checks})
	c.waits++
}

// waiting returns the place of a host, or the site, if it has yet to answer; nil otherwise.
func (c *startChecks) waiting(host string) *startPlace {
	if i, asked := c.byHost[host]; asked && !c.places[i].answered {
		return &c.places[i]
	}
	return nil
}

// answer notes what a place said, if the run waits for that; empty if nothing failed.
func (c *startChecks) answer(host, failed string) {
	if p := c.waiting(host); p != nil {
		p.answered, p.failed = true, failed
		c.waits--
	}
	for c.passed < len(c.byEnd) && c.places[c.byEnd[c.passed]].answered {
		c.passed++
	}
}

// task makes the task of a place of a run that was opened by a record.
func (p *startPlace) task(opened uint64) message.Task {
	return message.Task{Run: opened, Kind: message.Start, Host: p.host, Checks: p.checks}
}

// limit is how long the run waits for the place.
func (p *startPlace) limit() time.Duration { return p.task(0).Limit() }

// overdue returns the place of a host whose time is up; nil, and when that of the next one is, if none
// is.
func (c *startChecks) overdue(now time.Time) (late *startPlace, until time.Time) {
	if c.passed == len(c.byEnd) {
		return nil, time.Time{}
	}
	p := &c.places[c.byEnd[c.passed]]
	if end := c.since.Add(p.limit()); now.Before(end) {
		return nil, end
	}
	return p, time.Time{}
}

// mostFailed is how many places the reason of a run names whose checks failed.
const mostFailed = 10

// why says what failed; empty when nothing did.
func (c *startChecks) why() string {
	var failed []string
	for _, p := range c.places {
		if p.failed != "" {
			failed = append(failed, fmt.Sprintf("%s: %s", placeName(p.host), p.failed))
		}
	}
	if len(failed) == 0 {
		return ""
	}
	why := strings.Join(failed[:min(len(failed), mostFailed)], "; ")
	if more := len(failed) - mostFailed; more > 0 {
		why += fmt.Sprintf("; and %s", text.Count(more, "more host", "more hosts"))
	}
	return why
}

func placeName(host string) string {
	if host == "" {
		return "site"
	}
	return host
}

// detail says what the run waits for.
func (c *startChecks) detail() string {
	var names []string
	for _, p := range c.places {
		if !p.answered {
			names = append(names, cmp.Or(p.host, "the site"))
		}
	}
	return "the start checks of " + list(names)
}

// setBack follows the log's clock that was set back.
func (c *startChecks) setBack(now time.Time) { c.since = times.Earlier(c.since, now) }

// awaitsStart reports whether the run waits for the outcome of checks before it prepares.
func (s *State) awaitsStart(o message.Outcome) bool {
	p := s.start.waiting(o.Host)
	return s.Phase == Open && p != nil && p.task(s.OpenedSeq).Key() == o.Key()
}

// startRan applies the outcome of checks before the run prepares.
func (s *State) startRan(o message.Outcome, at time.Time) error {
	if !s.awaitsStart(o) {
		return fmt.Errorf("nobody waits for the start checks of %s", placeName(o.Host))
	}
	failed := ""
	if !o.OK {
		failed = cmp.Or(o.Text, "it says nothing")
	}
	s.start.answer(o.Host, failed)
	s.changed = at
	return nil
}

// askFirst returns what has to happen while places have yet to answer.
func (s *State) askFirst(now time.Time) Decision {
	late, until := s.start.overdue(now)
	if late != nil {
		t := late.task(s.OpenedSeq)
		return note(message.Ran{Outcome: t.Outcome(false, fmt.Sprintf("no outcome within %s; its worker may be silent, or older than these checks", window.FormatDuration(late.limit())))})
	}
	d := Decision{Until: times.Sooner(until, s.NotAfter)}
	if p := s.start.waiting(""); p != nil {
		t := p.task(s.OpenedSeq)
		d.Task = &t
	}
	return d
}

// asking says that the run asks before it prepares; false when it does not.
func (s *State) asking() (Waiting, bool) {
	if s.start.waits == 0 {
		return Waiting{}, false
	}
	return Waiting{What: ForCheck, Detail: s.start.detail(), Since: s.start.since}, true
}

// AsksFirst reports whether the run asks hosts before it prepares any.
func (s *State) AsksFirst() bool { return s.Phase == Open && s.start.waits > 0 }

// HasStartChecks reports whether the run has start checks, asked or answered.
func (s *State) HasStartChecks() bool { return len(s.start.places) > 0 }
