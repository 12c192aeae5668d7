package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// HostLog is the log for one host, under that host's own credentials: it calls
// the gate, and listens to what is pushed to it.
type HostLog struct {
	subjects log.Subjects
	host     string
	nats     *nats.Conn
	// gap is told when pushed commands may have been missed.
	gap chan struct{}
	// log identifies the log that was reached last.
	log atomic.Pointer[string]
	// seat is what was granted; nil before. other is who has the seat in its
	// place; nil while nobody does.
	seat, other atomic.Pointer[held]
	// seating is held by who changes them.
	seating sync.Mutex
	// session tells this process from others of the same worker.
	session string
	// left is told when another worker has given the seat back.
	left chan struct{}
}

var _ log.HostLog = (*HostLog)(nil)

// PingInterval is how often a host asks whether its connection is still there.
// Its heartbeats find out as well, so it need not ask often.
const PingInterval = 5 * time.Minute

// Dial opens the connection of a host; its options name the server and the
// credentials.
func Dial(tenant, host string, connect func(...nats.Option) (*nats.Conn, error)) (*HostLog, error) {
	s := &HostLog{subjects: log.Subjects{Tenant: tenant}, host: host, gap: make(chan struct{}, 1), session: rand.Text(), left: make(chan struct{}, 1)}
	s.log.Store(new(string))
	// After a lost connection or a full buffer a pushed command may be gone.
	missed := func() {
		select {
		case s.gap <- struct{}{}:
		default:
		}
	}
	nc, err := connect(
		nats.CustomInboxPrefix(s.subjects.Inbox(host)), nats.PingInterval(PingInterval),
		nats.ReconnectHandler(func(*nats.Conn) { missed() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { missed() }),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot connect host %s to the log: %w", host, err)
	}
	s.nats = nc
	if _, err := nc.Subscribe(s.subjects.SeatNews(host), s.displaced); err != nil {
		nc.Close()
		return nil, fmt.Errorf("cannot listen for who has the seat of host %s: %w", host, err)
	}
	return s, nil
}

// Close ends the connection.
func (s *HostLog) Close() { s.nats.Close() }

// Seat implements log.HostLog.
func (s *HostLog) Seat(ctx context.Context, worker string) error {
	a, err := s.call(ctx, verbSeat, worker, nil)
	if err != nil {
		return err
	}
	if a.Seat == nil || a.Seat.Worker != worker {
		return fmt.Errorf("%s: %w: the answer grants no seat", verbSeat, log.ErrRefused)
	}
	s.granted(a.Seat)
	return nil
}

// granted takes in that this worker has a seat.
func (s *HostLog) granted(mine *held) {
	s.seating.Lock()
	defer s.seating.Unlock()
	s.seat.Store(mine)
	s.other.Store(nil)
}

// displaced takes in who has the seat now. What was said before this worker
// got it may come late.
func (s *HostLog) displaced(msg *nats.Msg) {
	var now held
	if json.Unmarshal(msg.Data, &now) != nil {
		return
	}
	if now.Last != "" {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}
	s.seating.Lock()
	defer s.seating.Unlock()
	mine := s.seat.Load()
	if mine == nil {
		return
	}
	switch {
	case now.Worker != mine.Worker && (now.Number == 0 || now.Number > mine.Number),
		now.Worker == mine.Worker && now.Session != "" && now.Session != s.session && now.Number >= mine.Number:
		s.other.Store(&now)
	}
}

// taken is the error of a worker that has lost the seat; nil while it has it.
func (s *HostLog) taken() error {
	if other := s.other.Load(); other != nil {
		return fmt.Errorf("%w: %s", log.ErrTaken, other)
	}
	return nil
}

// worker is who calls.
func (s *HostLog) worker() string {
	if mine := s.seat.Load(); mine != nil {
		return mine.Worker
	}
	return ""
}

// Reply implements log.HostLog. A reply whose acknowledgement is lost is
// sent again; the log takes only one.
func (s *HostLog) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	a, err := s.ask(ctx, fmt.Sprintf("%s.%d.%s", verbReply, run, reply.Action), reply.Encode())
	if err == nil && a.Answered {
		return log.ErrAnswered
	}
	return err
}

// Versions implements log.HostLog.
func (s *HostLog) Versions(ctx context.Context, body []byte) error {
	_, err := s.ask(ctx, verbVersions, body)
	return err
}

// LastVersions implements log.HostLog.
func (s *HostLog) LastVersions(ctx context.Context) ([]byte, error) {
	a, err := s.ask(ctx, verbLastVersions, nil)
	return a.Body, err
}

// Alive implements log.HostLog.
func (s *HostLog) Alive(a message.Alive) error {
	msg := nats.NewMsg(s.subjects.Alive(s.host))
	msg.Data = a.Encode()
	msg.Header.Set(headerSession, s.session)
	return s.nats.PublishMsg(msg)
}

// Progress implements log.HostLog.
func (s *HostLog) Progress(p message.Progress) error {
	return s.tell(s.subjects.Progress(s.host), p.Encode())
}

// Outcome implements log.HostLog.
func (s *HostLog) Outcome(o message.Outcome) error {
	return s.tell(s.subjects.Outcome(s.host), o.Encode())
}

// tell says something that may be lost.
func (s *HostLog) tell(subject string, body []byte) error {
	if err := s.taken(); err != nil {
		return err
	}
	return s.nats.Publish(subject, body)
}

// Asked implements log.HostLog.
func (s *HostLog) Asked(ctx context.Context, deliver func()) error {
	connected := s.nats.StatusChanged(nats.CONNECTED)
	defer s.nats.RemoveStatusListener(connected)
	sub, err := s.nats.Subscribe(s.subjects.Ask(), func(*nats.Msg) { deliver() })
	if err != nil {
		return fmt.Errorf("cannot listen for who asks: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	// A controller that asked before this was not heard, nor may it have heard a
	// heartbeat of before: it listens first and asks second, as is done here.
	deliver()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-connected:
			if !open {
				return errors.New("the connection to the log was closed")
			}
			deliver()
		}
	}
}

// Tasks implements log.HostLog.
func (s *HostLog) Tasks(ctx context.Context, deliver func(message.Task)) error {
	sub, err := s.nats.Subscribe(s.subjects.Task(s.host), func(msg *nats.Msg) {
		// What cannot be read has no outcome, and the site gives it up.
		if t, err := message.DecodeTask(msg.Data); err == nil && t.Host == s.host && s.taken() == nil {
			deliver(t)
		}
	})
	if err != nil {
		return fmt.Errorf("cannot listen for tasks: %w", err)
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
	return ctx.Err()
}
