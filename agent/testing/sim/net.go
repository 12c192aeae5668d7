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
	// since is when it was cut, or worked again.
	since time.Time
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
		l.cut, l.since = cut, time.Now()
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// upFor returns for how long the link has worked.
func (l *link) upFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return 0
	}
	return time.Since(l.since)
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

// post sends a message to all workers of a host. It is lost where nobody is
// connected.
func (w *World) post(what, host string, deliver func(*hostConn)) (lost bool) {
	if w.isDown() {
		return true
	}
	return w.transit(what, host, func() {
		for _, c := range w.connsOf(host) {
			if c.up() {
				deliver(c)
			}
		}
	})
}

// isDown reports whether the log's server does not run.
func (w *World) isDown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.down
}

// takesRecords reports whether the log's server runs and its disk has room.
func (w *World) takesRecords() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.log.down && !w.log.full
}

// newest is the last record of the log.
func (w *World) newest() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.newest
}

// connsOf returns the connections of a host's workers.
func (w *World) connsOf(host string) []*hostConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*hostConn(nil), w.conns[host]...)
}

// pingAll asks each host for a heartbeat.
func (w *World) pingAll() {
	for _, m := range w.inOrder {
		w.post("ping", m.host, func(c *hostConn) { c.client.Pinged() })
	}
}

// reconnect tells the workers of a host, or of all hosts, that the connection was
// lost: they ask for what they missed.
func (w *World) reconnect(host string) {
	for _, m := range w.inOrder {
		if host != "" && m.host != host {
			continue
		}
		for _, c := range w.connsOf(m.host) {
			w.after(w.rng.span("reconnect/"+m.host, time.Millisecond, 2*time.Second), func() {
				if c.up() {
					c.client.Missed()
					c.client.Pinged()
				}
			})
		}
	}
}
