package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

func (m *model) event(e message.Event, at time.Time) error {
	switch e.Event {
	case message.Paused:
		m.paused = true
	case message.Resumed:
		if m.paused = false; !message.GoesOn(e.By) {
			m.failures = 0
		}
		for _, h := range m.hosts {
			h.checkedAt = time.Time{}
		}
	case message.Aborted:
		m.aborted = true
	case message.Approved:
		m.approved[slices.IndexFunc(m.policy.Stages, func(s policy.ResolvedStage) bool { return s.Name == e.Stage })] = true
	case message.Ran:
		m.ran(*e.Outcome, at)
	case message.Finished:
		return m.finish(e)
	}
	for _, name := range e.Hosts {
		if err := m.hostEvent(e, name, at); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) hostEvent(e message.Event, name string, at time.Time) error {
	h := m.hosts[name]
	switch e.Event {
	case message.Silent:
		h.silent, h.turn = true, false
	case message.Recovered, message.Released:
		h.silent = false
		if e.Reason != message.Heard {
			m.leave(h, at)
		}
	case message.Turn:
		m.begun[h.stage], h.turn = true, h.holds()
	case message.Slot:
		if err := m.start(name, at); err != nil {
			return err
		}
		h.turn = false
		h.underWay, h.drained, h.undrainTried = true, m.policy.Hooks.Undrain != nil, false
	case message.GaveUp:
		m.gaveUp(h, e, at)
	}
	return nil
}

func (m *model) leave(h *modelHost, at time.Time) {
	h.unknown, h.turn = false, false
	h.gone, h.late, h.stranded, h.asked, h.underWay, h.drained, h.unwell, h.rebootDue = true, false, false, "", false, false, "", false
	m.stagesDone(at)
}

func (m *model) gaveUp(h *modelHost, e message.Event, at time.Time) {
	switch {
	case e.Action == message.Prepare:
		h.asked, h.answered, h.prepared = "", true, false
		if h.silent {
			m.end(h, at)
			return
		}
		m.fail(h, m.before(h), at)
	case e.Action != "":
		h.late = h.asked != ""
		m.fail(h, m.afterKind(), at)
	case e.Reason != "" && (e.Task == message.BeforeHost || e.Task == message.Drain):
		m.end(h, at)
	default:
		m.outcome(h, e.Task, false, at)
	}
}

func (m *model) ran(o message.Outcome, at time.Time) {
	if o.Kind == message.Fleet {
		m.tooMany(!o.OK)
		return
	}
	m.outcome(m.hosts[o.Host], o.Kind, o.OK, at)
}

func (m *model) outcome(h *modelHost, kind message.TaskKind, ok bool, at time.Time) {
	if ok && kind == h.unwell {
		h.unwell = ""
	}
	if kind == message.BeforeHost && ok {
		h.checkedAt = at
	}
	switch {
	case kind == message.Undrain && ok:
		h.drained = false
		m.maybeDone(h, at)
		m.stagesDone(at)
	case kind == message.Undrain:
		h.undrainTried = true
		if !h.final {
			m.fail(h, m.afterKind(), at)
		}
		m.stagesDone(at)
	case h.final:
	case kind == message.AfterHost && ok:
		h.checking = false
		m.maybeDone(h, at)
	case kind == message.BeforeHost && !ok && h.unwell == "":
		m.fail(h, message.BeforeHost, at)
	case kind == message.BeforeHost && !ok:
		m.fail(h, h.unwell, at)
	case !ok:
		m.fail(h, m.afterKind(), at)
	}
}

// finish holds what must be true at the end: what was drained was undrained,
// or that was tried.
func (m *model) finish(e message.Event) error {
	m.over = true
	for name, h := range m.hosts {
		switch {
		case h.drained && !h.undrainTried && !h.gone:
			return fmt.Errorf("the run ends before an undrain of %s was tried", name)
		case h.underWay:
			return fmt.Errorf("the run ends while %s is under way", name)
		}
	}
	known := []Result{Completed, Partial, Failed, IsAborted, TimedOut}
	return unless(slices.Contains(known, Result(e.Result)), "the run ends as %q", e.Result)
}

// compare holds that a run says of each host what the model says.
func (m *model) compare(s *State) error {
	if m.over {
		return nil
	}
	for _, h := range s.Hosts() {
		if want := m.hosts[h.Name]; want.out() == h.Slot.IsZero() {
			return fmt.Errorf("%s is out of service: %t; the run says since %s, because %q", h.Name, want.out(), h.Slot, h.SlotReason)
		}
	}
	for n, stage := range s.Stages(s.changed) {
		out := 0
		for _, h := range m.hosts {
			if h.stage == n && h.out() {
				out++
			}
		}
		if out != stage.OutOfService {
			return fmt.Errorf("%d of stage %s are out of service; the run says %d", out, stage.Name, stage.OutOfService)
		}
	}
	return nil
}
