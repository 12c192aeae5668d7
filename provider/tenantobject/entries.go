package tenantobject

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// How long a change waits for others of the same process, so that they become one write.
// Terraform tells a provider of one change at a time and never of what it will ask for next.
// An entry that nobody has asked for yet is removed only when nothing has arrived for a
// while: otherwise the first of two resources that exchange their entries would remove
// what the second is about to add.
const (
	gather = 20 * time.Millisecond
	settle = 500 * time.Millisecond
)

// List is a list of an object T whose entries have no names: an entry is its content.
type List[T, E any] struct {
	Object  client.Object[T]
	Entries func(T) []E
	With    func(T, []E) T
	// Key returns the canonical form of an entry.
	Key func(E) string
}

// Entries are the entries of one list of which resources own one each, and others own the
// rest. All resources of a process share it: they read the list once, and what they want at
// the same time is one write. It removes no entry that another resource of the process has
// got or asks for.
type Entries[T, E any] struct {
	list  List[T, E]
	store store[T]
	quiet *silence

	// reading is held by the one who reads the object for a plan.
	reading sync.Mutex

	mu sync.Mutex
	// moved is closed and replaced when something happens that others wait for.
	moved chan struct{}
	last  found[T]
	known bool
	// under are the changes under way, in the order of their arrival.
	under []*entryChange[E]
	// arrived is when something was asked for or planned last, planning how many plans are
	// being made.
	arrived  time.Time
	planning int
	writing  bool
	// wanted counts the resources that have got an entry in this process or ask for it.
	wanted map[string]int
	// owned are the entries of the resources that this process has come across.
	owned map[string]bool
	// refreshed are those of them that a refresh has come across, lost those of them that the
	// list no longer has.
	refreshed, lost map[string]bool
}

// entryChange makes an entry out of another: was is nil for a creation, want for a deletion.
type entryChange[E any] struct {
	was, want *E
	// written is set while it is a part of a write, done when that has ended with err.
	written, done bool
	err           error
	// late is set after a write with the change was refused, as one of an entry more than there
	// may be is. It is written once more, together with the removals.
	late bool
	// alone is set after a write of several changes has failed: which of them is to blame is
	// found out one by one.
	alone bool
}

// EntriesOf returns what the process shares of a tenant's list.
func EntriesOf[T, E any](data *providerdata.Data, api *client.Client, list List[T, E], tenant string) *Entries[T, E] {
	quiet := silenceOf(data)
	kept, _ := data.Once("entries of "+tenant, func() any {
		return newEntries(list, remote[T]{api, list.Object, tenant}, quiet)
	}).(*Entries[T, E])
	return kept
}

func newEntries[T, E any](list List[T, E], at store[T], quiet *silence) *Entries[T, E] {
	return &Entries[T, E]{list: list, store: at, quiet: quiet, moved: make(chan struct{}), wanted: map[string]int{}, owned: map[string]bool{}, refreshed: map[string]bool{}, lost: map[string]bool{}}
}

// Get returns the object for a plan; an absent one is the zero T. It asks the server only if
// the process has neither read nor written the object yet.
func (s *Entries[T, E]) Get(ctx context.Context) (T, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	last, known := s.last, s.known
	s.mu.Unlock()
	if known {
		return last.Value, nil
	}
	stored, err := s.store.Get(ctx)
	if err != nil && !removed(ctx, s.store, err) {
		return last.Value, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known && !s.writing {
		s.last, s.known = found[T]{stored, err == nil}, true
	}
	return stored.Value, nil
}

// Blank reports whether what Get has read is an object without any member, or no text at all:
// something on the way may have answered instead of the server.
func (s *Entries[T, E]) Blank() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.TrimSpace(string(s.last.Text()))
	return s.last.exists && (text == "" || text == "{}")
}

// Own records that a resource of this process owns an entry.
func (s *Entries[T, E]) Own(entry E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned[s.list.Key(entry)] = true
	s.tell()
}

// OwnAll records that a resource of this process owns all entries of an object.
func (s *Entries[T, E]) OwnAll(owned T) {
	for _, entry := range s.list.Entries(owned) {
		s.Own(entry)
	}
}

// HoldAll records that a resource which owns the list wants all entries of an object: no other
// removes them.
func (s *Entries[T, E]) HoldAll(want T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.list.Entries(want) {
		s.wanted[s.list.Key(entry)]++
	}
	s.arrived = time.Now()
	s.tell()
}

// Left returns what the deletion of a list leaves: want, and those of the owned entries which
// resources of this process ask for. It waits as the removal of an entry does.
func (s *Entries[T, E]) Left(ctx context.Context, owned, want T) T {
	entries := s.list.Entries(owned)
	if len(entries) == 0 {
		return want
	}
	s.mu.Lock()
	s.arrived = time.Now()
	s.mu.Unlock()
	s.until(ctx, s.settled)
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := slices.Clone(s.list.Entries(want))
	for _, entry := range entries {
		if s.wanted[s.list.Key(entry)] > 0 {
			kept = append(kept, entry)
		}
	}
	return s.list.With(want, kept)
}

// until waits for the time that due returns, which what happens meanwhile may change.
func (s *Entries[T, E]) until(ctx context.Context, due func() time.Time) {
	for {
		s.mu.Lock()
		moved, pause := s.moved, time.Until(due())
		s.mu.Unlock()
		if pause <= 0 || ctx.Err() != nil {
			return
		}
		select {
		case <-moved:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// Refresh records that a refresh has come across the owner of an entry, and reports whether
// it is the first one. An apply that was killed may leave two: one that has got the entry,
// and one that was about to give it up.
func (s *Entries[T, E]) Refresh(entry E) (first bool) {
	s.Own(entry)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.list.Key(entry)
	first = !s.refreshed[key]
	s.refreshed[key] = true
	return first
}

// Lose records that a refresh has not found an entry.
func (s *Entries[T, E]) Lose(entry E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[s.list.Key(entry)] = true
}

// Lost reports whether Lose was called for an entry.
func (s *Entries[T, E]) Lost(entry E) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[s.list.Key(entry)]
}

// Owned reports whether a resource of this process owns an entry, or has owned it. It waits
// for a moment for those that have not been read yet.
func (s *Entries[T, E]) Owned(ctx context.Context, entry E) bool {
	key, limit := s.list.Key(entry), time.Now().Add(settle/2)
	s.until(ctx, func() time.Time {
		if s.owned[key] {
			return time.Time{}
		}
		return limit
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[key]
}

// Plan records that a plan is made, until its end is called. An apply plans each change
// again: what is planned is asked for in a moment.
func (s *Entries[T, E]) Plan() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planning++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.planning--
		s.arrived = time.Now()
		s.tell()
	}
}

// Change makes an entry out of another: was is nil for a creation, want for a deletion. An
// entry that is there already is not added again.
func (s *Entries[T, E]) Change(ctx context.Context, was, want *E) error {
	c := s.begin(was, want)
	for {
		s.mu.Lock()
		if c.done {
			s.leave(c)
			s.mu.Unlock()
			return c.err
		}
		moved, due := s.moved, time.Until(s.due(c))
		if !s.writing && due <= 0 {
			batch := s.batch(c)
			s.mu.Unlock()
			s.write(ctx, c, batch)
			continue
		}
		var later <-chan time.Time
		if !s.writing {
			later = time.After(due)
		}
		s.mu.Unlock()
		select {
		case <-moved:
		case <-later:
		case <-s.stopped(ctx, c):
		}
	}
}

// stopped returns a channel that is closed when a change need not be made any more. A
// change that is part of a write learns its outcome first.
func (s *Entries[T, E]) stopped(ctx context.Context, c *entryChange[E]) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.written {
		return nil
	}
	if ctx.Err() != nil {
		c.done, c.err = true, ctx.Err()
	}
	return ctx.Done()
}

// begin records that a change is asked for.
func (s *Entries[T, E]) begin(was, want *E) *entryChange[E] {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &entryChange[E]{was: was, want: want}
	s.under, s.arrived = append(s.under, c), time.Now()
	if was != nil {
		s.owned[s.list.Key(*was)] = true
	}
	if want != nil {
		s.owned[s.list.Key(*want)] = true
		s.wanted[s.list.Key(*want)]++
	}
	s.tell()
	return c
}

// leave forgets a change that has ended.
func (s *Entries[T, E]) leave(c *entryChange[E]) {
	s.under = slices.DeleteFunc(s.under, func(other *entryChange[E]) bool { return other == c })
	if c.err != nil && c.want != nil {
		s.wanted[s.list.Key(*c.want)]--
	}
	s.tell()
}

// tell wakes all who wait.
func (s *Entries[T, E]) tell() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// due returns when a change may be written.
func (s *Entries[T, E]) due(c *entryChange[E]) time.Time {
	switch {
	case c.alone:
		return time.Time{}
	case !c.late && (c.was == nil || s.wanted[s.list.Key(*c.was)] > 0):
		return s.arrived.Add(gather)
	}
	return s.settled()
}

// settled returns when an entry may be removed that nobody has asked for.
func (s *Entries[T, E]) settled() time.Time {
	if s.planning > 0 {
		return time.Now().Add(settle)
	}
	return s.arrived.Add(settle)
}

// batch begins a write, and returns the changes in it.
func (s *Entries[T, E]) batch(first *entryChange[E]) []*entryChange[E] {
	s.writing = true
	var batch []*entryChange[E]
	now := time.Now()
	for _, c := range s.under {
		if c == first || !first.alone && !c.alone && !c.done && !s.due(c).After(now) {
			c.written = true
			batch = append(batch, c)
		}
	}
	return batch
}

// write writes a batch on behalf of all who have a part in it.
func (s *Entries[T, E]) write(ctx context.Context, first *entryChange[E], batch []*entryChange[E]) {
	server, err := change(ctx, s.store, s.quiet, s.last, s.known, func(server found[T], _, _ bool) (update[T], error) {
		now := s.list.Entries(server.Value)
		next := s.edited(now, batch)
		return update[T]{value: s.list.With(server.Value, next), done: slices.EqualFunc(now, next, s.same)}, nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.known = server, err == nil && server.ETag != ""
	var busy *busyError
	for _, c := range batch {
		switch {
		case errors.As(err, &busy): // It goes on to its limit.
		case refused(err) && c.want != nil && !c.late && !c.alone:
			c.late = true
		case err == nil || c == first && (len(batch) == 1 || ctx.Err() != nil):
			c.done, c.err = true, err
		case ctx.Err() == nil:
			c.alone = true
		}
		c.written = false
	}
	s.writing = false
	s.tell()
}

func (s *Entries[T, E]) same(a, b E) bool { return s.list.Key(a) == s.list.Key(b) }

// edited returns the entries with a batch of changes. An entry takes the place of the one
// that it was made of.
func (s *Entries[T, E]) edited(now []E, batch []*entryChange[E]) []E {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slices.Clone(now)
	at := func(entry E) int { return slices.IndexFunc(next, func(other E) bool { return s.same(entry, other) }) }
	for _, c := range batch {
		if c.was == nil || s.wanted[s.list.Key(*c.was)] > 0 {
			continue
		}
		switch i := at(*c.was); {
		case i < 0:
		case c.want != nil && at(*c.want) < 0:
			next[i] = *c.want
		default:
			next = slices.Delete(next, i, i+1)
		}
	}
	for _, c := range batch {
		if c.want != nil && at(*c.want) < 0 {
			next = append(next, *c.want)
		}
	}
	return next
}
