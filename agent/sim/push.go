package sim

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// push tells hosts of a new record, with the world's lock held.
func (w *World) push(r message.Record) {
	if r.Kind != message.CommandAll && r.Kind != message.CommandHost {
		return
	}
	w.after(0, func() {
		for _, m := range w.inOrder {
			switch {
			case r.Kind == message.CommandAll:
				w.pushTo(m, pushed{news: true})
			case r.Host == m.name:
				w.pushTo(m, pushed{record: theirs(r)})
			case w.fault("replay: another's command", m.name):
				w.pushTo(m, pushed{record: theirs(r)})
			}
			w.replay(m)
		}
	})
}

// pushTo delivers a push. Where it is lost the connection was lost, and the
// workers learn of that some time later.
func (w *World) pushTo(m *machine, p pushed) {
	lost := w.post("push", m.name, func(s *station) {
		select {
		case s.came <- p:
		default:
			s.missed()
		}
	})
	if lost {
		w.after(w.rng.span("gap/"+m.name, time.Millisecond, time.Minute), func() { w.reconnect(m.name) })
	}
}

// replay delivers an old command once more.
func (w *World) replay(m *machine) {
	if !w.fault("replay: old command", m.name) {
		return
	}
	w.mu.Lock()
	var old []message.Record
	for _, r := range w.log.records {
		if r.Kind == message.CommandAll || r.Kind == message.CommandHost && r.Host == m.name {
			old = append(old, r)
		}
	}
	w.mu.Unlock()
	if len(old) > 0 {
		r := old[w.rng.n("replay which/"+m.name, len(old))]
		w.after(w.rng.span("replay when/"+m.name, time.Millisecond, time.Minute), func() { w.pushTo(m, pushed{record: theirs(r)}) })
	}
}
