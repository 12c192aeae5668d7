package controller

import (
	"context"
	"errors"
	"strings"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	memlog "github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func (m *memory) Append(ctx context.Context, r message.Record, expect uint64) (uint64, error) {
	return m.append(func() (uint64, error) { return m.log.Append(ctx, r, expect) })
}

func (m *memory) AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error) {
	return m.append(func() (uint64, error) { return m.log.AppendNext(ctx, r, expect, last) })
}

func (m *memory) append(write func() (uint64, error)) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = m.appendErr != nil && !m.written
	seq, err := write()
	m.refused = false
	if err != nil {
		return 0, err
	}
	if r, _ := m.log.At(seq); m.obedient {
		m.obey(r)
	}
	return seq, m.appendErr
}

// newLog is the log of a controller; the lock of m is held while it is written.
func (m *memory) newLog() *memlog.Log {
	l := memlog.New()
	l.Now = func() time.Time { return time.Now().Add(m.skew) }
	l.Before = func(message.Record) error {
		if m.refused {
			return m.appendErr
		}
		return nil
	}
	return l
}

// add appends a record, with the lock held.
func (m *memory) add(r message.Record) {
	if _, err := m.log.Add(r); err != nil {
		panic(err)
	}
}

func (m *memory) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	first, _ := m.First(ctx)
	for at := max(from, first); ; {
		fresh, grew := m.log.Since(at)
		m.mu.Lock()
		held := m.held
		m.mu.Unlock()
		if held != nil && len(fresh) > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-held:
			}
		}
		for _, r := range fresh {
			deliver(r)
			at++
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grew:
		case <-m.isStale():
			return log.ErrStale
		}
	}
}

func (m *memory) Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error {
	return m.log.Read(ctx, from, to, deliver)
}

func (m *memory) Last(ctx context.Context) (uint64, error) { return m.log.Last(ctx) }

// hold keeps new records from whoever follows the log until release is called.
func (m *memory) hold() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := make(chan struct{})
	m.held = held
	return func() {
		m.mu.Lock()
		m.held = nil
		m.mu.Unlock()
		close(held)
		synctest.Wait()
	}
}

// fails has each append fail from now on, with or without its record on the
// log; nil lets them be.
func (m *memory) fails(err error, written bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.appendErr, m.written = err, written
}

func (m *memory) First(ctx context.Context) (uint64, error) { return m.log.First(ctx) }

func (m *memory) Trim(ctx context.Context, upTo uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trims++
	if m.refuseTrims > 0 {
		m.refuseTrims--
		return errors.New("no space left on device")
	}
	return m.log.Trim(ctx, upTo)
}

func (m *memory) reply(host string, run uint64, action message.Action) {
	m.mu.Lock()
	m.add(message.Record{
		Kind: message.ReplyRecord, Host: host, Run: run, Action: action, Body: message.Reply{Action: action, Result: message.Result{Outcome: message.Done}}.Encode(),
	})
	m.mu.Unlock()
	synctest.Wait()
}

// events returns the bodies of the events, with some text in them.
func (m *memory) events(with string) []string {
	var bodies []string
	for _, r := range m.log.All() {
		if r.Kind != message.ReplyRecord && strings.Contains(string(r.Body), with) {
			bodies = append(bodies, string(r.Body))
		}
	}
	return bodies
}

// size returns how many records there are.
func (m *memory) size() int {
	return len(m.log.All())
}

// upgrades returns the commands to upgrade.
func (m *memory) upgrades() []string { return m.events(`{"action":"upgrade"`) }

// obey has hosts answer a command with done at once.
func (m *memory) obey(r message.Record) {
	c, err := message.DecodeCommand(r.Body)
	if r.Kind == message.EventRecord || err != nil {
		return
	}
	hosts, id := []string{c.Host}, r.Run
	if c.Action == message.Prepare {
		hosts, id = c.Hosts, r.Seq
	}
	body := message.Reply{Action: c.Action, Result: message.Result{Outcome: message.Done}}.Encode()
	for _, host := range hosts {
		m.add(message.Record{Kind: message.ReplyRecord, Host: host, Run: id, Action: c.Action, Body: body})
	}
}

// last returns the body of the newest record.
func (m *memory) last() string {
	return m.back(1)
}

// back returns the body of a record, counted from the newest.
func (m *memory) back(n int) string {
	all := m.log.All()
	return string(all[len(all)-n].Body)
}
