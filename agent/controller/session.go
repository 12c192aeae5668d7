package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/news"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// session is the life of a controller in one role. It begins by reading the log
// and the store. One goroutine, its loop, owns the state; all others post
// functions to it.
type session struct {
	o         Options
	beside    beside
	posted    chan func(*state)
	telemetry *wait.Queue[string, telemetry]
	// loaded is closed once all has been read that was in the log and the store at
	// the start, ending when the session is to end.
	loaded, ending chan struct{}
	once           sync.Once
}

func newSession(o Options, active bool, notify func(), warnings *warnings) *session {
	n := &session{
		o: o, posted: make(chan func(*state), 64), telemetry: wait.NewQueue[string, telemetry](), loaded: make(chan struct{}), ending: make(chan struct{}),
	}
	writer := newHostWriter(o)
	n.beside = beside{
		active: active, warnings: warnings, writer: writer, past: newArchiver(o, writer.keepLastRuns), news: newOutbox(o, notify), notify: notify, onLoaded: func() { close(n.loaded) }, call: n.call,
	}
	return n
}

// end has the session end.
func (n *session) end() { n.once.Do(func() { close(n.ending) }) }

// errEnded is why a session ends whose controller takes another role.
var errEnded = errors.New("the controller takes another role")

// run runs the session until ctx or the session ends, which is no error, or the
// log or the store fails.
func (n *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-n.ending:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	s, err := n.load(ctx)
	if err != nil {
		if errors.Is(context.Cause(ctx), errEnded) {
			return nil
		}
		return err
	}
	var writing sync.WaitGroup
	if n.beside.active {
		// What is not written when the controller becomes passive is left to the
		// controller that is active then: it finds that by itself.
		last := func() bool { return !errors.Is(context.Cause(ctx), errEnded) }
		writing.Go(func() { n.beside.writer.run(ctx, last) })
		writing.Go(func() { n.beside.past.run(ctx, last) })
		writing.Go(func() { n.beside.news.run(ctx, last) })
	}
	for _, part := range []func(context.Context) error{n.follower(), n.watchIntent, n.watchVersions, n.listen} {
		go func() {
			if err := log.Again(ctx, func() error { return part(ctx) }, n.warnStale); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		}()
	}
	s.loop(ctx, n.posted, n.telemetry)
	writing.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, errEnded) {
		return cause
	}
	return nil
}

// load reads what the store has, and how far the log goes.
func (n *session) load(ctx context.Context) (*state, error) {
	n.o.Guard = n.o.Guard.Anew()
	s := newState(n.o, n.beside)
	s.teller = news.NewTeller(n.o.Tenant, n.o.Log.Identity())
	kept, err := n.o.Store.Hosts(ctx, n.o.Tenant)
	if err != nil {
		return nil, err
	}
	for _, h := range kept {
		s.hosts.known[h.Name], s.hosts.order = &host{Host: h, placed: true}, nil
	}
	if slices.ContainsFunc(kept, func(h store.Host) bool { return h.Environment != defaultName || h.Unplaced }) {
		s.hosts.sortOut()
	}
	if s.log.last, err = n.o.Log.Last(ctx); err != nil {
		return nil, err
	}
	s.startedAt = s.log.last
	if s.trim.first, err = n.o.Log.First(ctx); err != nil {
		return nil, err
	}
	if err := n.beside.past.load(ctx, s.trim.first); err != nil {
		return nil, err
	}
	if err := n.beside.news.load(ctx); err != nil {
		return nil, err
	}
	if err := n.o.Guard.End(s.log.last); err != nil {
		s.raise(err)
	}
	s.checkLoaded()
	return s, nil
}

// post has f run in the loop, which owns the state.
func (n *session) post(ctx context.Context, f func(*state)) error {
	select {
	case n.posted <- f:
		return nil
	case <-n.ending:
		return run.ErrNotReady
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call is post for the parts of the state, which do not know the whole.
func (n *session) call(ctx context.Context, f func()) {
	_ = n.post(ctx, func(*state) { f() })
}

// warnStale logs why something is followed anew.
func (n *session) warnStale(err error) {
	n.o.Logger.Warn("something may have been missed; reading it anew", "tenant", n.o.Tenant, "error", err)
}

// follower returns a part that follows the log, from the last record that was seen.
func (n *session) follower() func(context.Context) error {
	var last atomic.Uint64
	return func(ctx context.Context) error {
		return n.o.Log.Follow(ctx, last.Load()+1, func(r message.Record) {
			last.Store(r.Seq)
			_ = n.post(ctx, func(s *state) { s.fold(ctx, r) })
		})
	}
}

func (n *session) watchIntent(ctx context.Context) error {
	_ = n.post(ctx, func(s *state) { s.intent.reread() })
	return n.o.Store.WatchIntent(ctx, n.o.Tenant, func(seen store.Seen) {
		_ = n.post(ctx, func(s *state) {
			s.setIntent(seen)
			s.checkLoaded()
			s.stale = true
			s.show()
		})
	})
}

// watchVersions reads what hosts report of their versions.
func (n *session) watchVersions(ctx context.Context) error {
	_ = n.post(ctx, func(s *state) { s.hosts.rereadVersions() })
	return n.o.Store.WatchReports(ctx, n.o.Tenant, report.Versions, func(r store.Reported) {
		_ = n.post(ctx, func(s *state) {
			s.hosts.report(r)
			s.checkLoaded()
			s.show()
		})
	})
}

// listen queues what hosts say beside the log. Of each host the latest heartbeat,
// progress and outcome are kept, so that a host that floods the site holds up
// nothing.
func (n *session) listen(ctx context.Context) error {
	return n.o.HostEvents.Listen(ctx, log.Listener{
		Alive: func(name string, a message.Alive) {
			n.telemetry.Change(name, func(l *telemetry) { l.alive, l.aliveAt = a, n.o.Now() })
		},
		Progress: func(name string, p message.Progress) {
			n.telemetry.Change(name, func(l *telemetry) { l.progress, l.progressAt = p, n.o.Now() })
		},
		Outcome: func(name string, o message.Outcome) {
			n.telemetry.Change(name, func(l *telemetry) { l.outcome = &o })
		},
	})
}
