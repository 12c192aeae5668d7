package sim

import (
	"context"
	"sync"
	"time"
)

// after calls f after a time.
func (w *World) after(d time.Duration, f func()) { time.AfterFunc(d, f) }

// sleep lets time pass.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// link is a network link that may be cut.
type link struct {
	mu  sync.Mutex
	cut bool
	// changed is closed when the link is cut or works again.
	changed chan struct{}
}

func newLink() *link { return &link{changed: make(chan struct{})} }

func (l *link) up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.cut
}

func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != cut {
		l.cut = cut
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// wait returns once the link works.
func (l *link) wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		cut, changed := l.cut, l.changed
		l.mu.Unlock()
		if !cut {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// transit delivers a message after a while. It may be lost, doubled or overtaken.
func (w *World) transit(what, whose string, deliver func()) (lost bool) {
	if w.fault(what+": lost", whose) {
		return true
	}
	times := 1
	if w.fault(what+": doubled", whose) {
		times = 2
	}
	for range times {
		d := w.rng.span(what+"/"+whose, 100*time.Microsecond, 20*time.Millisecond)
		if w.fault(what+": delayed", whose) {
			d = w.rng.span(what+" delay/"+whose, time.Second, 30*time.Second)
		}
		w.after(d, deliver)
	}
	return false
}

// post sends a message to all workers of a host.
func (w *World) post(what, host string, deliver func(*station)) (lost bool) {
	if !w.reachable(host) {
		return true
	}
	return w.transit(what, host, func() {
		if !w.reachable(host) {
			return
		}
		for _, s := range w.stationsOf(host) {
			deliver(s)
		}
	})
}

// reachable reports whether a host and the log can reach each other.
func (w *World) reachable(host string) bool {
	w.mu.Lock()
	down := w.log.down
	w.mu.Unlock()
	return !down && w.machines[host].link.up()
}

// stationsOf returns the log clients of a host's workers.
func (w *World) stationsOf(host string) []*station {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*station(nil), w.stations[host]...)
}

// askAll asks each host for a heartbeat.
func (w *World) askAll() {
	for _, m := range w.inOrder {
		w.post("ask", m.name, func(s *station) { s.sayAlive() })
	}
}

// reconnect tells the workers of a host, or of all hosts, that the connection was
// lost: they ask for what they missed.
func (w *World) reconnect(host string) {
	for _, m := range w.inOrder {
		if host != "" && m.name != host {
			continue
		}
		for _, s := range w.stationsOf(m.name) {
			w.after(w.rng.span("reconnect/"+m.name, time.Millisecond, 2*time.Second), func() {
				s.missed()
				s.sayAlive()
			})
		}
	}
}
