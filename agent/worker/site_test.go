package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// site is a log in memory with one host's seat, for several workers of it.
type site struct {
	mu      sync.Mutex
	log     []message.Record
	answers map[string]string
	// holder has the seat, and was heard of last at heard; number counts the
	// changes of hands.
	holder string
	number uint64
	heard  time.Time
	// last gave the seat back, when nobody has it, and had it with tenure.
	last   string
	tenure uint64
	// news is closed when the log grows, left when the seat is given back.
	news, left chan struct{}
}

func newSite() *site {
	return &site{answers: map[string]string{}, news: make(chan struct{}), left: make(chan struct{})}
}

func (s *site) send(run uint64, c message.Command) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := message.Record{Seq: uint64(len(s.log)) + 1, Time: time.Now(), Kind: message.CommandHost, Run: run, Body: c.Encode()}
	if c.Action == message.Prepare {
		r.Kind = message.CommandAll
	}
	s.log = append(s.log, r)
	close(s.news)
	s.news = make(chan struct{})
	return r.Seq
}

func (s *site) answer(run uint64, action message.Action) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[fmt.Sprint(run, action)]
}

// give hands the seat to a worker, as if the one that has it were silent.
func (s *site) give(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hand(worker)
}

// hand does so, with the lock held.
func (s *site) hand(worker string) {
	if s.holder != worker {
		s.holder, s.number = worker, s.number+1
		if s.last != worker {
			s.tenure = s.number
		}
		s.last = ""
	}
	s.heard = time.Now()
}

// who has the seat.
func (s *site) who() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder
}

func (s *site) tenureNow() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenure
}

// chair is the site as one worker sees it. It may go on hearing of commands
// when it has lost the seat: the worst that a site can do.
type chair struct {
	*site
	worker string
	// mine is the seat that was granted, tenure that of its worker.
	mine, tenure uint64
	// killed tells that the worker ends without a word, hangs that the site does
	// not answer it.
	killed, hangs bool
	// told tells that it knows that it has lost the seat.
	told bool
}

var (
	_ log.HostLog = (*chair)(nil)
	_ log.Tenured = (*chair)(nil)
)

// Seat implements log.HostLog.
func (c *chair) Seat(_ context.Context, worker string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != worker && c.holder != "" && time.Since(c.heard) < message.Silence {
		c.told = true
		return fmt.Errorf("%w: %s", log.ErrTaken, c.holder)
	}
	c.hand(worker)
	c.worker, c.mine, c.tenure, c.told = worker, c.number, c.site.tenure, false
	return nil
}

// Tenure implements log.Tenured.
func (c *chair) Tenure() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tenure
}

// Leave implements log.Tenured.
func (c *chair) Leave(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.hangs:
		<-ctx.Done()
		return ctx.Err()
	case c.killed:
		return errors.New("killed")
	case c.holder != c.worker || c.number != c.mine:
		return log.ErrTaken
	}
	c.holder, c.last, c.number = "", c.worker, c.number+1
	close(c.left)
	c.left = make(chan struct{})
	return nil
}

// end notes how the worker ends.
func (c *chair) end(killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = killed
}

func (c *chair) hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangs = true
}

// Left implements log.Tenured.
func (c *chair) Left() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

func (c *chair) taken() error {
	if c.holder != c.worker {
		c.told = true
		return log.ErrTaken
	}
	return nil
}

// unaware reports whether its worker has lost the seat and does not know: it
// does not ask for it, so no gate gives it back.
func (c *chair) unaware() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine != 0 && c.holder != c.worker && !c.told
}

// Newest implements log.HostLog.
func (c *chair) Newest(context.Context) ([]message.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest(), c.taken()
}

func (c *chair) newest() (newest []message.Record) {
	for kind := message.CommandAll; kind <= message.CommandHost; kind++ {
		for i := len(c.log) - 1; i >= 0; i-- {
			if c.log[i].Kind == kind {
				newest = append(newest, c.log[i])
				break
			}
		}
	}
	if len(newest) == 2 && newest[0].Seq > newest[1].Seq {
		newest[0], newest[1] = newest[1], newest[0]
	}
	return newest
}

// Commands implements log.HostLog.
func (c *chair) Commands(ctx context.Context, deliver func(message.Record)) error {
	if _, err := c.Newest(ctx); err != nil {
		return err
	}
	for {
		c.mu.Lock()
		newest, news := c.newest(), c.news
		c.mu.Unlock()
		for _, r := range newest {
			deliver(r)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		}
	}
}

// Reply implements log.HostLog.
func (c *chair) Reply(_ context.Context, run uint64, reply message.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.taken(); err != nil {
		return err
	}
	key := fmt.Sprint(run, reply.Action)
	if c.answers[key] != "" {
		return log.ErrAnswered
	}
	c.answers[key] = reply.Result
	return nil
}

// Versions implements log.HostLog.
func (c *chair) Versions(context.Context, []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken()
}

// LastVersions implements log.HostLog.
func (c *chair) LastVersions(context.Context) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []byte("{}"), c.taken()
}

// Alive implements log.HostLog.
func (c *chair) Alive(a message.Alive) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.Worker == c.holder {
		c.heard = time.Now()
	}
	return nil
}

// Progress implements log.HostLog.
func (c *chair) Progress(message.Progress) error { return nil }

// Outcome implements log.HostLog.
func (c *chair) Outcome(message.Outcome) error { return nil }

// Asked implements log.HostLog.
func (c *chair) Asked(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// Tasks implements log.HostLog.
func (c *chair) Tasks(ctx context.Context, _ func(message.Task)) error {
	<-ctx.Done()
	return ctx.Err()
}
