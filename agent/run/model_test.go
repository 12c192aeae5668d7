package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// model is what design.md 5 says of a run, told slowly and without State: it
// looks at each record and knows what may be on the log.
type model struct {
	run      uint64
	notAfter time.Time
	policy   policy.Resolved
	hosts    map[string]*modelHost
	order    []string
	paused   bool
	aborted  bool
	over     bool
	// halted tells that too much has failed, failures counts since somebody
	// resumed.
	halted   bool
	failures int
	approved map[int]bool
	// doneAt is when a stage had its last host done, begun whether one of its
	// hosts was started or checked.
	doneAt map[int]time.Time
	begun  map[int]bool
}

// modelHost is what a model knows of a host.
type modelHost struct {
	stage  int
	silent bool
	// gone: deleted or released. answered: to prepare, or given up for that.
	gone, answered, prepared bool
	// asked is the command that it has yet to answer, in prepare's case too.
	asked               message.Action
	upgrades, reboots   int
	rebootDue, checking bool
	// underWay is from its slot to its end; final tells that it had its end.
	underWay, final bool
	// drained, and not undrained; unwell until checks of that kind pass.
	drained, undrainTried bool
	unwell                message.TaskKind
	// late: it was given up and may be at work; stranded: so it was in the run
	// before, and has not answered since.
	late, stranded bool
	// unknown: it answered that it does not know what it did. turn: it had its
	// turn while it was out of service, and keeps its slot for that.
	unknown, turn bool
	// checkedAt is when the checks before it passed, zero when that says nothing
	// of now.
	checkedAt time.Time
}

func (h *modelHost) out() bool { return h.silent || h.holds() }

// holds is that it is not out of service for its silence alone.
func (h *modelHost) holds() bool {
	return h.underWay || h.turn || h.late || h.stranded || h.unknown || h.drained || h.unwell != ""
}

// left is that its stage waits for it.
func (h *modelHost) left() bool {
	return !h.gone && (!h.final || h.drained && !h.undrainTried)
}

func newModel(e message.Event) *model {
	m := &model{
		notAfter: *e.NotAfter, policy: *e.Policy, order: e.Hosts, paused: e.Policy.Paused, hosts: map[string]*modelHost{},
		approved: map[int]bool{}, doneAt: map[int]time.Time{}, begun: map[int]bool{},
	}
	first := 0
	for n, stage := range e.Policy.Stages {
		for _, name := range e.Hosts[first : first+stage.Size] {
			m.hosts[name] = &modelHost{stage: n}
		}
		first += stage.Size
	}
	for _, name := range e.Silent {
		m.hosts[name].silent = true
	}
	for _, u := range e.Unwell {
		m.inherit(u)
	}
	return m
}

// inherit takes in a host that was not well when the run before ended.
func (m *model) inherit(u message.Unwell) {
	h := m.hosts[u.Host]
	if h == nil {
		return
	}
	checks := map[message.TaskKind][]policy.Check{message.BeforeHost: m.policy.Checks.BeforeHost, message.AfterHost: m.policy.Checks.AfterHost}
	h.stranded, h.unknown = u.Answer != "", u.Look
	h.drained = u.Undrain && m.policy.Hooks.Undrain != nil
	h.undrainTried = h.drained
	if len(checks[u.Checks]) > 0 {
		h.unwell = u.Checks
	}
}

// see takes in a record that was folded, and tells what must not be.
func (m *model) see(r message.Record, folded error) error {
	for n, at := range m.doneAt { // A clock that is set back.
		m.doneAt[n] = earlier(at, r.Time)
	}
	for _, h := range m.hosts {
		h.checkedAt = earlier(h.checkedAt, r.Time)
	}
	if m.over {
		switch {
		case folded != nil:
			return nil //nolint:nilerr // What is not folded changes nothing.
		case r.Kind == message.ReplyRecord:
			return m.reply(r, folded)
		}
		return m.after(r)
	}
	switch counts := folded == nil; {
	case r.Kind == message.ReplyRecord:
		return m.reply(r, folded)
	case counts && (r.Kind == message.CommandAll || r.Kind == message.CommandHost):
		return m.command(r)
	case counts:
		return m.fact(r)
	}
	return nil
}

// after holds that after the end only hosts that are not well can be deleted or
// released.
func (m *model) after(r message.Record) error {
	e, err := message.DecodeEvent(r.Body)
	if err != nil || e.Event != message.Released && e.Reason != message.Deleted {
		return fmt.Errorf("a record counted after the end: %s", r.Body)
	}
	for _, name := range e.Hosts {
		if h := m.hosts[name]; h == nil || !h.holds() {
			return fmt.Errorf("%s is let go after the end, and is well", name)
		}
		m.leave(m.hosts[name], r.Time)
	}
	return nil
}

// fact takes in an event that counted.
func (m *model) fact(r message.Record) error {
	e, err := message.DecodeEvent(r.Body)
	if err != nil {
		return fmt.Errorf("an event counted that cannot be read: %w", err)
	}
	return m.event(e, r.Time)
}

func unless(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func (m *model) command(r message.Record) error {
	c, err := message.DecodeCommand(r.Body)
	switch {
	case err != nil:
		return err
	case !r.Time.Before(m.notAfter):
		return fmt.Errorf("invariant 3: %s after not-after", c.Action)
	case m.aborted:
		return fmt.Errorf("invariant 3: %s after an abort", c.Action)
	}
	if c.Action == message.Prepare {
		m.run = r.Seq
		for _, name := range c.Hosts {
			m.hosts[name].asked = message.Prepare
		}
		return nil
	}
	h := m.hosts[c.Host]
	for name, other := range m.hosts {
		if !other.answered && !other.gone {
			return fmt.Errorf("invariant 3: %s for %s before %s has answered prepare", c.Action, c.Host, name)
		}
	}
	if c.Action == message.Reboot {
		h.reboots++
		h.asked = message.Reboot
		due := h.rebootDue
		h.rebootDue = false
		return unless(h.reboots == 1 && due, "invariant 2: reboot %d of %s", h.reboots, c.Host)
	}
	if !h.underWay {
		if err := m.start(c.Host, r.Time); err != nil {
			return err
		}
	}
	h.upgrades++
	h.asked, h.underWay, h.turn = message.Upgrade, true, false
	return unless(h.upgrades == 1, "invariant 2: upgrade %d of %s", h.upgrades, c.Host)
}

// start is that a host takes its slot now.
func (m *model) start(name string, at time.Time) error {
	h := m.hosts[name]
	out, ready, underWay := 0, 0, 0
	for _, other := range m.hosts {
		if other.stage == h.stage && other.underWay {
			underWay++
		}
		if other.stage == h.stage && other.out() && other != h {
			out++
		}
		if other.prepared || other.gone {
			ready++
		}
		if other.stage < h.stage && other.left() {
			return fmt.Errorf("%s starts before the stage before it is done", name)
		}
	}
	limit := m.policy.Stages[h.stage].MaxUnavailable
	switch {
	case out >= limit && !h.holds() || underWay >= limit:
		return fmt.Errorf("invariant 1: %s starts while %d of %d are out of service", name, out, limit)
	case h.final || h.gone || !h.prepared || h.silent || h.unknown:
		return fmt.Errorf("%s starts and is %+v", name, *h)
	case len(m.policy.Checks.BeforeHost) > 0 && at.Sub(h.checkedAt) > 13*time.Minute:
		return fmt.Errorf("%s starts, and its checks passed at %s", name, h.checkedAt)
	case m.paused || m.halted:
		return fmt.Errorf("%s starts while the run is held up", name)
	case ready < m.policy.MinPrepared:
		return fmt.Errorf("%s starts though %d hosts are prepared", name, ready)
	}
	return m.inTime(name, h.stage, at)
}

// inTime holds that a stage does not begin before the soaks and its approval.
func (m *model) inTime(name string, stage int, at time.Time) error {
	for n := range stage {
		if m.begun[n] && at.Before(m.doneAt[n].Add(m.policy.Stages[n].Soak.Duration())) {
			return fmt.Errorf("%s starts while stage %d soaks", name, n)
		}
	}
	m.begun[stage] = true
	return unless(!m.policy.Stages[stage].Approval || m.approved[stage], "%s starts without approval", name)
}

// reply holds that a reply counts exactly as the answer to the last command.
func (m *model) reply(r message.Record, folded error) error {
	h := m.hosts[r.Host]
	counts := r.Run == m.run && h != nil && !h.gone && h.asked != "" && h.asked == r.Action
	reply, err := message.DecodeReply(r.Body)
	if err != nil || reply.Action != r.Action {
		reply.Result = "garbage"
	}
	lost := strings.HasSuffix(reply.Result, message.PastUnknown)
	if r.Run == m.run && h != nil && h.stranded && r.Action == message.Prepare {
		counts = counts || !lost && !h.unknown
		h.unknown = h.unknown || lost
		h.stranded = h.unknown
	}
	if counts != (folded == nil) {
		return fmt.Errorf("invariant 4: the reply of %s to %s counts: %t; it was folded with %w", r.Host, r.Action, counts, folded)
	}
	if !counts || h.asked != r.Action {
		return nil
	}
	if h.late {
		h.late, h.unknown, h.asked = lost, lost, ""
		return nil
	}
	h.asked = ""
	if lost && r.Action != message.Prepare {
		h.late, h.unknown = true, true
	}
	m.answer(h, reply, r)
	return nil
}

func (m *model) answer(h *modelHost, reply message.Reply, r message.Record) {
	needless := slices.ContainsFunc(m.policy.NoReboot, func(e policy.Exempt) bool { return e.Host == r.Host })
	switch {
	case r.Action == message.Prepare:
		h.answered, h.prepared = true, reply.Result == message.Done
		if !h.prepared {
			m.fail(h, m.before(h), r.Time)
		}
	case reply.Result == message.RebootRequired && r.Action == message.Upgrade && !needless:
		h.rebootDue = true
	case reply.Result == message.Done || reply.Result == message.RebootRequired && r.Action == message.Upgrade:
		h.checking = len(m.policy.Checks.AfterHost) > 0
		m.maybeDone(h, r.Time)
	default:
		m.fail(h, m.afterKind(), r.Time)
	}
}

// before is what shows that a host which fails before its turn is well again.
func (m *model) before(h *modelHost) message.TaskKind {
	if h.unwell != "" || !h.holds() {
		return h.unwell
	}
	return m.afterKind()
}

func (m *model) afterKind() message.TaskKind {
	if len(m.policy.Checks.AfterHost) > 0 {
		return message.AfterHost
	}
	return ""
}

// maybeDone is that a host that said it was done is upgraded, once all that
// follows came out well.
func (m *model) maybeDone(h *modelHost, at time.Time) {
	if h.underWay && !h.checking && !h.drained {
		h.unwell = ""
		m.end(h, at)
	}
}

func (m *model) end(h *modelHost, at time.Time) {
	h.underWay, h.turn, h.final, h.rebootDue, h.checking = false, false, true, false, false
	m.stagesDone(at)
}

// stagesDone notes since when all stages up to one are done.
func (m *model) stagesDone(at time.Time) {
	for n := range m.policy.Stages {
		left := false
		for _, h := range m.hosts {
			left = left || h.stage == n && h.left()
		}
		if left {
			return
		}
		if m.doneAt[n].IsZero() {
			m.doneAt[n] = at
		}
	}
}

func (m *model) fail(h *modelHost, unwell message.TaskKind, at time.Time) {
	h.unwell = unwell
	m.end(h, at)
	m.failures++
	m.tooMany(m.failures >= m.policy.MaxFailures)
}

// tooMany is that the run stops or pauses because of what failed.
func (m *model) tooMany(failed bool) {
	if failed && m.policy.OnFailure == policy.Stop {
		m.halted = true
	}
	if failed && m.policy.OnFailure == policy.Pause {
		m.paused = true
	}
}
