package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// pushed is what comes to a station by itself: a command, or the news that
// there is one.
type pushed struct {
	record message.Record
	news   bool
}

// station is the log as one worker sees it, as jetstream has it.
type station struct {
	w    *World
	m    *machine
	p    *process
	gap  chan struct{}
	came chan pushed
	mu   sync.Mutex
	// mine is the seat that was granted, other who has it instead.
	mine, other *held
	// left is told when a seat was given back.
	left  chan struct{}
	tasks func(message.Task)
	asked func()
}

var _ log.HostLog = (*station)(nil)

// connect opens a worker's station.
func (w *World) connect(m *machine, p *process) *station {
	s := &station{w: w, m: m, p: p, gap: make(chan struct{}, 1), came: make(chan pushed, 64), left: make(chan struct{}, 1)}
	w.mu.Lock()
	w.stations[m.name] = append(w.stations[m.name], s)
	w.mu.Unlock()
	return s
}

// hangUp closes it.
func (s *station) hangUp() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var left []*station
	for _, other := range s.w.stations[s.m.name] {
		if other != s {
			left = append(left, other)
		}
	}
	s.w.stations[s.m.name] = left
}

func (s *station) missed() {
	select {
	case s.gap <- struct{}{}:
	default:
	}
}

func (s *station) sayAlive() {
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	if asked != nil && !s.p.dead() {
		asked()
	}
}

func (s *station) taken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.other != nil {
		return fmt.Errorf("%w: worker %s", log.ErrTaken, s.other.worker)
	}
	return nil
}

func (s *station) worker() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine == nil {
		return ""
	}
	return s.mine.worker
}

// Newest implements log.HostLog.
func (s *station) Newest(ctx context.Context) ([]message.Record, error) {
	return ask(ctx, s, "newest", func() ([]message.Record, error) { return s.w.newest(s.m.name), nil })
}

// newest returns the newest prepare, and the newest command to a host after it,
// with the world's lock held.
func (w *World) newest(host string) []message.Record {
	prepare, there := w.log.at(w.log.prepare)
	if !there {
		return nil
	}
	all := []message.Record{theirs(prepare)}
	for seq := w.log.last(); seq > w.log.prepare; seq-- {
		if r, _ := w.log.at(seq); r.Kind == message.CommandHost && r.Host == host {
			return append(all, theirs(r))
		}
	}
	return all
}

// theirs is a record as hosts see it.
func theirs(r message.Record) message.Record {
	r.Log = "sim"
	return r
}

// Commands implements log.HostLog.
func (s *station) Commands(ctx context.Context, deliver func(message.Record)) error {
	for {
		newest, err := s.Newest(ctx)
		if err != nil {
			return err
		}
		for _, r := range newest {
			deliver(r)
		}
		if err := s.watch(ctx, deliver); err != nil {
			return err
		}
	}
}

// watch delivers what is pushed until there is news.
func (s *station) watch(ctx context.Context, deliver func(message.Record)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.gap:
			return s.taken()
		case p := <-s.came:
			if err := s.taken(); err != nil {
				return err
			}
			if p.news {
				return nil
			}
			deliver(p.record)
		}
	}
}

// Reply implements log.HostLog.
func (s *station) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	return s.reply(ctx, run, reply.Action, reply.Encode(), true)
}

// reply writes a body as the answer of this host to a command.
func (s *station) reply(ctx context.Context, run uint64, action message.Action, body []byte, honest bool) error {
	_, err := ask(ctx, s, "reply", func() (uint64, error) {
		if run == 0 || run != s.w.log.prepare {
			s.w.count("reply refused: of another run")
			return 0, fmt.Errorf("%w: run %d is not the newest", log.ErrRefused, run)
		}
		if s.w.log.replies[replyKey{run, action, s.m.name}] {
			s.w.count("reply refused: answered")
			return 0, log.ErrAnswered
		}
		if honest {
			s.w.oracle.Honest(s.m.name, run, action)
		}
		return s.w.store(message.Record{Kind: message.ReplyRecord, Host: s.m.name, Run: run, Action: action, Body: body}, time.Time{})
	})
	return err
}

// Versions implements log.HostLog.
func (s *station) Versions(ctx context.Context, body []byte) error {
	_, err := ask(ctx, s, "versions", func() (bool, error) {
		if _, err := message.DecodeVersions(body); err != nil {
			s.w.count("versions refused")
			return false, fmt.Errorf("%w: %w", log.ErrRefused, err)
		}
		s.w.shelf.putVersions(s.m.name, body)
		return true, nil
	})
	return err
}

// LastVersions implements log.HostLog.
func (s *station) LastVersions(ctx context.Context) ([]byte, error) {
	return ask(ctx, s, "last versions", func() ([]byte, error) { return s.w.shelf.lastVersions(s.m.name), nil })
}

// tell lets something travel to the controllers.
func (s *station) tell(what string, hear func(log.Listener)) error {
	w := s.w
	if s.p.dead() {
		return errDead
	}
	if !w.reachable(s.m.name) {
		return nil
	}
	w.transit(what, s.m.name, func() {
		if !w.reachable(s.m.name) {
			return
		}
		for _, site := range w.sites {
			w.mu.Lock()
			to := site.listener
			w.mu.Unlock()
			if to != nil && site.link.up() {
				hear(*to)
			}
		}
	})
	return nil
}

// Alive implements log.HostLog. A heartbeat of a worker without the seat is
// not heard, and the worker is told.
func (s *station) Alive(a message.Alive) error {
	return s.tell("heartbeat", func(to log.Listener) {
		s.w.mu.Lock()
		h, has := s.w.heard(s.m.name, a.Worker)
		s.w.mu.Unlock()
		if !has {
			s.w.tellSeat(s.m.name, h)
			return
		}
		to.Alive(s.m.name, a)
	})
}

// Progress implements log.HostLog.
func (s *station) Progress(p message.Progress) error {
	if err := s.taken(); err != nil {
		return err
	}
	return s.tell("heartbeat", func(to log.Listener) { to.Progress(s.m.name, p) })
}

// Outcome implements log.HostLog.
func (s *station) Outcome(o message.Outcome) error {
	if err := s.taken(); err != nil {
		return err
	}
	return s.tell("outcome", func(to log.Listener) {
		if o.Host != s.m.name {
			s.w.count("outcome of another host dropped")
			return
		}
		to.Outcome(s.m.name, o)
	})
}

// Pings implements log.HostLog.
func (s *station) Pings(ctx context.Context, deliver func()) error {
	s.mu.Lock()
	s.asked = deliver
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.asked = nil
	s.mu.Unlock()
	return ctx.Err()
}

// Tasks implements log.HostLog.
func (s *station) Tasks(ctx context.Context, deliver func(message.Task)) error {
	s.mu.Lock()
	s.tasks = deliver
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.tasks = nil
	s.mu.Unlock()
	return ctx.Err()
}

// task delivers a task to the worker that has the seat.
func (s *station) task(t message.Task) {
	s.mu.Lock()
	deliver := s.tasks
	s.mu.Unlock()
	if deliver != nil && s.taken() == nil && !s.p.dead() {
		deliver(t)
	}
}
