package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// siteLog is the log as one controller sees it: its log.Log and log.HostEvents.
type siteLog struct {
	w *World
	s *site
	p *process
}

var (
	_ log.Log        = siteLog{}
	_ log.HostEvents = siteLog{}
)

// appended is what came of an append.
type appended struct {
	seq uint64
	err error
}

// Append implements log.Log.
func (l siteLog) Append(ctx context.Context, r message.Record, expect uint64) (uint64, error) {
	return l.append(ctx, r, func() bool { return l.w.log.lastCommand == expect })
}

// AppendNext implements log.Log.
func (l siteLog) AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error) {
	return l.append(ctx, r, func() bool { return l.w.log.lastCommand == expect && l.w.log.last() == last })
}

// append appends a record if the log is as expected.
func (l siteLog) append(ctx context.Context, r message.Record, expected func() bool) (uint64, error) {
	if l.p.dead() {
		return 0, errDead
	}
	w := l.w
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	sent := l.s.clock.now()
	done := make(chan appended, 1)
	if arrives, ok := l.departs(); ok {
		w.after(arrives, func() { l.arrived(r, sent, expected, done) })
	}
	select {
	case a := <-done:
		return a.seq, a.err
	case <-ctx.Done():
		return 0, fmt.Errorf("cannot append: %w: %w", errNoReply, ctx.Err())
	}
}

// departs tells how long a record takes to the log; false when it is lost.
func (l siteLog) departs() (time.Duration, bool) {
	w, name := l.w, l.s.name
	switch {
	case !l.s.link.up() || w.fault("append: request lost", name):
		return 0, false
	case w.fault("append: late", name):
		return w.rng.span("append late/"+name, callLimit, 4*callLimit), true
	}
	return w.rng.span("append/"+name, 100*time.Microsecond, 20*time.Millisecond), true
}

// arrived takes in a record, whether its sender still waits or not.
func (l siteLog) arrived(r message.Record, sent time.Time, expected func() bool, done chan<- appended) {
	w, name := l.w, l.s.name
	a := w.take(r, sent, expected)
	if errors.Is(a.err, errDown) || w.fault("append: ack lost", name) || w.fault("append: hangs", name) || !l.s.link.up() {
		return
	}
	back := w.rng.span("ack/"+name, 100*time.Microsecond, 20*time.Millisecond)
	if w.fault("append: acknowledged late", name) {
		back = w.rng.span("ack late/"+name, time.Second, 2*callLimit)
	}
	w.after(back, func() { done <- a })
}

// take writes a controller's record if it knows the newest one.
func (w *World) take(r message.Record, sent time.Time, expected func() bool) appended {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.log.down && !expected() {
		w.count("append refused: behind")
		return appended{err: log.ErrBehind}
	}
	seq, err := w.store(r, sent)
	return appended{seq, err}
}

// Follow implements log.Log.
func (l siteLog) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	w := l.w
	for next := from; ; {
		w.mu.Lock()
		next = max(next, w.log.first)
		grew, down := w.log.grew, w.log.down
		var news []message.Record
		if !down && next <= w.log.last() {
			news = w.log.records[next-w.log.first:]
		}
		w.mu.Unlock()
		if down {
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		if len(news) == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-grew:
			}
		}
		if err := l.delay(ctx); err != nil {
			return err
		}
		for _, r := range news {
			deliver(r)
			next = r.Seq + 1
		}
	}
}

// delay is the time that records take to a follower.
func (l siteLog) delay(ctx context.Context) error {
	w, name := l.w, l.s.name
	d := w.rng.span("follow/"+name, 50*time.Microsecond, 2*time.Millisecond)
	switch {
	case w.fault("follow: stalls", name):
		d = w.rng.span("follow stall/"+name, time.Second, 30*time.Second)
	case w.fault("follow: breaks", name):
		return errBroke
	}
	if err := sleep(ctx, d); err != nil {
		return err
	}
	return l.s.link.wait(ctx)
}

// call lets a question travel to the log and back.
func (l siteLog) call(ctx context.Context) error {
	switch {
	case l.p.dead():
		return errDead
	case !l.s.link.up() || l.w.fault("log: asked in vain", l.s.name):
		if err := sleep(ctx, callLimit); err != nil {
			return err
		}
		return errNoReply
	}
	return sleep(ctx, l.w.rng.span("log call/"+l.s.name, 100*time.Microsecond, 10*time.Millisecond))
}

// Read implements log.Log.
func (l siteLog) Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error {
	if err := l.call(ctx); err != nil {
		return err
	}
	for seq := from; seq <= to; seq++ {
		l.w.mu.Lock()
		r, there := l.w.log.at(seq)
		l.w.mu.Unlock()
		if !there {
			return fmt.Errorf("cannot read record %d: it is not there", seq)
		}
		deliver(r)
	}
	return nil
}

// Last implements log.Log.
func (l siteLog) Last(ctx context.Context) (uint64, error) {
	if err := l.call(ctx); err != nil {
		return 0, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.log.down {
		return 0, errDown
	}
	return l.w.log.last(), nil
}

// First implements log.Log.
func (l siteLog) First(ctx context.Context) (uint64, error) {
	if err := l.call(ctx); err != nil {
		return 0, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.log.down {
		return 0, errDown
	}
	return l.w.log.first, nil
}

// Trim implements log.Log.
func (l siteLog) Trim(ctx context.Context, upTo uint64) error {
	if err := l.call(ctx); err != nil {
		return err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	switch {
	case l.w.log.down:
		return errDown
	case upTo >= l.w.log.lastCommand:
		return fmt.Errorf("cannot trim the log up to record %d: the newest command or event must stay", upTo)
	case upTo < l.w.log.first:
		return nil
	}
	l.w.log.records = l.w.log.records[upTo-l.w.log.first+1:]
	l.w.log.first = upTo + 1
	l.w.count("log trimmed")
	return nil
}

// Listen implements log.HostEvents.
func (l siteLog) Listen(ctx context.Context, to log.Listener) error {
	w := l.w
	w.mu.Lock()
	l.s.listener = &to
	w.mu.Unlock()
	w.askAll()
	<-ctx.Done()
	w.mu.Lock()
	if l.s.listener == &to {
		l.s.listener = nil
	}
	w.mu.Unlock()
	return ctx.Err()
}

// Send implements log.HostEvents.
func (l siteLog) Send(t message.Task) error {
	if l.p.dead() {
		return errDead
	}
	if !l.s.link.up() {
		return nil
	}
	l.w.post("task", t.Host, func(s *station) { s.task(t) })
	return nil
}
