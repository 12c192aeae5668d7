package controller

import (
	"context"
	"errors"
	"strings"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

func (m *memory) Append(_ context.Context, r message.Record, expect uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case expect != m.lastCommand:
		return 0, log.ErrBehind
	case m.appendErr != nil && !m.written:
		return 0, m.appendErr
	}
	m.lastCommand = m.add(r)
	if m.obedient {
		m.obey(m.records[m.lastCommand-1])
	}
	return m.lastCommand, m.appendErr
}

func (m *memory) AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error) {
	m.mu.Lock()
	behind := last != uint64(len(m.records))
	m.mu.Unlock()
	if behind {
		return 0, log.ErrBehind
	}
	return m.Append(ctx, r, expect)
}

func (m *memory) add(r message.Record) uint64 {
	r.Seq, r.Time = uint64(len(m.records)+1), time.Now().Add(m.skew)
	m.records = append(m.records, r)
	close(m.grown)
	m.grown = make(chan struct{})
	return r.Seq
}

func (m *memory) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	first, _ := m.First(ctx)
	for at := max(from, first); ; {
		m.mu.Lock()
		fresh, grown, held := m.records[at-1:], m.grown, m.held
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
		case <-grown:
		case <-m.isStale():
			return log.ErrStale
		}
	}
}

func (m *memory) Read(_ context.Context, from, to uint64, deliver func(message.Record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records[from-1 : to] {
		deliver(r)
	}
	return nil
}

func (m *memory) Last(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.records)), nil
}

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

func (m *memory) First(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first, nil
}

func (m *memory) Trim(_ context.Context, upTo uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trims++
	if m.refuseTrims > 0 {
		m.refuseTrims--
		return errors.New("no space left on device")
	}
	m.first = upTo + 1
	return nil
}

func (m *memory) reply(host string, run uint64, action message.Action) {
	m.mu.Lock()
	m.add(message.Record{
		Kind: message.ReplyRecord, Host: host, Run: run, Action: action, Body: message.Reply{Action: action, Result: message.Done}.Encode(),
	})
	m.mu.Unlock()
	synctest.Wait()
}

// events returns the bodies of the events, with some text in them.
func (m *memory) events(with string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bodies []string
	for _, r := range m.records {
		if r.Kind != message.ReplyRecord && strings.Contains(string(r.Body), with) {
			bodies = append(bodies, string(r.Body))
		}
	}
	return bodies
}

// size returns how many records there are.
func (m *memory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
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
	body := message.Reply{Action: c.Action, Result: message.Done}.Encode()
	for _, host := range hosts {
		m.add(message.Record{Kind: message.ReplyRecord, Host: host, Run: id, Action: c.Action, Body: body})
	}
}

// last returns the body of the newest record.
func (m *memory) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.records[len(m.records)-1].Body)
}
