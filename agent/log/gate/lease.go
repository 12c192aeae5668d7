package gate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// maxIdentity is the longest identity of a worker, or of its process, in bytes;
// a heartbeat has the same limit.
const maxIdentity = 63

// maxReplaced is how many replaced incarnations are remembered. A cloned machine
// adds one at each start, and so does its original.
const maxReplaced = 8

// Lease is the one record of who may work for a host.
type Lease struct {
	// Worker is the holder of the lease; empty when no worker ever held it. Vacant
	// means that the worker has given the lease back.
	Worker string `json:"worker"`
	Vacant bool   `json:"vacant,omitempty"`
	// Epoch is the fencing token. It grows each time the lease passes to another
	// worker, or to another machine with the same worker, and only then.
	Epoch uint64 `json:"epoch"`
	// Incarnation is the process of the worker that holds the lease. Replaced are the
	// earlier incarnations of this worker, the newest last.
	Incarnation string   `json:"incarnation,omitempty"`
	Replaced    []string `json:"replaced,omitempty"`
	// Since is when the worker got the lease, or gave it back.
	Since time.Time `json:"since"`
}

// holds reports whether a process of a worker holds the lease.
func (l Lease) holds(worker, incarnation string) bool {
	return l.Worker == worker && l.Incarnation == incarnation && !l.Vacant
}

// cloned reports whether a process of the holder was replaced by a newer process. If
// the replaced process still calls, it did not end before the newer process began:
// the two run on two machines, and one machine is a clone of the other.
func (l Lease) cloned(worker, incarnation string) bool {
	return l.Worker == worker && slices.Contains(l.Replaced, incarnation)
}

// acquire returns the lease as granted to a process of a worker; false when another
// process may keep it. silent means that the holder was not heard of for
// message.Silence.
//
// A new process of the same worker gets the lease at once: the worker was started
// again. A process that was replaced waits until the newer process is silent. It
// then gets the lease in a new epoch, because its machine does not know what the
// other machine did.
func (l Lease) acquire(worker, incarnation string, silent bool, now time.Time) (next Lease, ok bool) {
	same, cloned := l.Worker == worker, l.cloned(worker, incarnation)
	switch {
	case l.holds(worker, incarnation):
		return l, true
	case l.Worker != "" && !l.Vacant && (!same || cloned) && !silent:
		return Lease{}, false
	}
	next = Lease{Worker: worker, Epoch: l.Epoch, Incarnation: incarnation, Since: now}
	if !same || cloned {
		next.Epoch++
	}
	if same {
		next.Replaced = l.replace(incarnation)
	}
	if next.Epoch == l.Epoch && !l.Vacant {
		next.Since = l.Since
	}
	return next, true
}

// replace returns the replaced incarnations after another incarnation has replaced
// the holder's.
func (l Lease) replace(by string) []string {
	if l.Incarnation == by {
		return l.Replaced
	}
	replaced := slices.DeleteFunc(slices.Clone(l.Replaced), func(old string) bool { return old == by })
	replaced = append(replaced, l.Incarnation)
	return replaced[max(0, len(replaced)-maxReplaced):]
}

// giveBack returns the lease after its holder has given it back; false when the
// caller does not hold it in this epoch.
func (l Lease) giveBack(worker, incarnation string, epoch uint64, now time.Time) (next Lease, ok bool) {
	if worker == "" || !l.holds(worker, incarnation) || l.Epoch != epoch {
		return Lease{}, false
	}
	l.Vacant, l.Since = true, now
	return l, true
}

// refusal returns the error text for a worker that is refused.
func (l Lease) refusal(worker string) string {
	switch {
	case l.Worker == "" || l.Vacant:
		return "nobody holds the lease of this host; ask for it first"
	case l.Worker == worker:
		return fmt.Sprintf("another process of worker %s holds the lease of this host; if it runs on another machine, one of the two is a clone of the other: "+
			"give the clone a name and a key of its own, and remove its state folder", l.Worker)
	}
	return fmt.Sprintf("worker %s holds the lease of this host since %s", l.Worker, l.Since.UTC().Format(time.RFC3339))
}

// warning returns what an operator should know of a worker that is refused while
// another process holds the lease.
func (l Lease) warning(worker, incarnation string) (message.WarningKind, string) {
	if l.cloned(worker, incarnation) {
		return message.WarnClone, fmt.Sprintf("worker %s runs on two machines, of which one is a clone of the other: "+
			"give the clone a name and a key of its own, and remove its state folder", worker)
	}
	return message.WarnSecondWorker, fmt.Sprintf("worker %s wants to work for this host, and worker %s does since %s: "+
		"stop one of the two; if the machine of the other is gone, wait %s", worker, l.Worker, l.Since.UTC().Format(time.RFC3339), message.Silence)
}

// displaces reports whether this lease, which was pushed to a host, ends the lease
// that the host was granted. A push may arrive late: the lease of an earlier epoch, or
// of a process that was replaced, ends nothing.
func (l Lease) displaces(mine Lease) bool {
	if l.Epoch != mine.Epoch {
		return l.Epoch > mine.Epoch
	}
	return l.Incarnation != mine.Incarnation && slices.Contains(l.Replaced, mine.Incarnation)
}

// held is a lease as a gate last saw it.
type held struct {
	Lease
	revision uint64
	// heard is when the gate last heard of the holder, or first read the lease.
	heard time.Time
}

// leases is a cache of all leases, against which each call is checked. The cache may
// be behind, so a displaced worker may still be accepted for a moment; the epoch of
// its reply shows that it was displaced. A lease is granted by the stored entry, never
// by the cache.
type leases struct {
	gate   *Gate
	mu     sync.Mutex
	byHost map[string]*held
	// listening is the time since which this gate has heard hosts without a break.
	listening time.Time
}

// follow keeps the cache equal to the store until ctx ends. It calls loaded once the
// leases that existed at the start are read.
func (s *leases) follow(ctx context.Context, loaded func()) error {
	return s.gate.Keeper.WatchLeases(ctx, s.gate.Tenant, func(key string, body []byte, revision uint64) {
		if key == "" {
			loaded()
		} else if host, ok := log.Host(key); ok {
			// A lease of an unknown format counts as vacant here; acquire returns the
			// error.
			l, _ := decodeLease(body, revision)
			s.learn(host, l, revision)
		}
	})
}

// decodeLease reads an entry. A deleted or damaged entry is a lease that no worker
// holds, with the revision of the entry as its epoch. No epoch is greater than the
// revision of its entry, so the next epoch is new even then.
func decodeLease(body []byte, revision uint64) (Lease, error) {
	var l Lease
	err := format.Lease.Decode(body, &l)
	if err != nil {
		l = Lease{Epoch: revision}
	}
	if format.IsUnsupported(err) {
		return l, fmt.Errorf("cannot read the lease: %w", err)
	}
	return l, nil
}

// learn puts a lease into the cache unless the cache has a newer revision, and pushes
// it to the host's workers when the holder has changed.
func (s *leases) learn(host string, l Lease, revision uint64) {
	s.mu.Lock()
	old := s.byHost[host]
	if revision == 0 || old != nil && old.revision >= revision {
		s.mu.Unlock()
		return
	}
	s.byHost[host] = &held{Lease: l, revision: revision, heard: time.Now()}
	s.mu.Unlock()
	if old != nil && old.Worker != "" && !l.holds(old.Worker, old.Incarnation) {
		s.gate.push(host, Push{Lease: &l})
	}
}

// check notes a sign of life of a process of a worker, and reports whether it
// holds the lease.
func (s *leases) check(host, worker, incarnation string) (Lease, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byHost[host]
	switch {
	case at == nil:
		return Lease{}, worker == ""
	case !at.holds(worker, incarnation):
		return at.Lease, false
	}
	at.heard = time.Now()
	return at.Lease, true
}

// holder is check, but reads the stored lease before it refuses a worker: the cache
// may be behind, and a worker that is refused stops its work.
func (s *leases) holder(ctx context.Context, host, worker, incarnation string) (Lease, bool, error) {
	if l, holds := s.check(host, worker, incarnation); holds {
		return l, true, nil
	}
	if _, _, err := s.read(ctx, host); err != nil {
		return Lease{}, false, err
	}
	l, holds := s.check(host, worker, incarnation)
	return l, holds, nil
}

// deaf notes that this gate has not heard hosts for a while.
func (s *leases) deaf() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listening = time.Now()
}

// silentAt returns the time from which another worker may have the lease, if the
// holder is not heard of until then.
func (s *leases) silentAt(host string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.listening
	if at := s.byHost[host]; at != nil && at.heard.After(last) {
		last = at.heard
	}
	return last.Add(message.Silence)
}

// acquire grants the lease to a process of a worker if no other worker holds the lease
// or the holder is silent. The process names the revision of the lease that it wants.
// It learns the revision by a first call. A late call of a process that has ended
// names an old revision, and so takes the lease from no later holder.
func (s *leases) acquire(ctx context.Context, host, worker, incarnation, base string) Response {
	for what, name := range map[string]string{"worker": worker, "process": incarnation} {
		if name == "" || len(name) > maxIdentity || message.CleanText(name) != name {
			return refused("%.100q does not identify a %s; use at most %d bytes of plain text", name, what, maxIdentity)
		}
	}
	s.check(host, worker, incarnation) // A sign of life of the holder, whether or not the store answers.
	at, revision, err := s.read(ctx, host)
	if err != nil {
		return failed(err)
	}
	free := s.silentAt(host)
	next, ok := at.acquire(worker, incarnation, !time.Now().Before(free), time.Now().UTC())
	if !ok {
		kind, why := at.warning(worker, incarnation)
		s.gate.Refused(host, kind, why)
		return taken(fmt.Sprintf("%s, and until %s at the most, if that worker is not heard of again", at.refusal(worker), free.UTC().Format(time.RFC3339)))
	}
	switch {
	case at.holds(worker, incarnation):
		return Response{Lease: &next}
	case strconv.FormatUint(revision, 10) != base:
		return Response{Revision: revision}
	}
	if err := s.write(ctx, host, next, revision); err != nil {
		return failed(err)
	}
	return Response{Lease: &next}
}

// giveBack makes the lease vacant, so that the next caller gets it. A late call is
// refused: the lease has another epoch or incarnation by then.
func (s *leases) giveBack(ctx context.Context, host, worker, incarnation, epoch string) Response {
	number, err := strconv.ParseUint(epoch, 10, 64)
	if err != nil {
		return refused("%.20q is no epoch", epoch)
	}
	at, revision, err := s.read(ctx, host)
	if err != nil {
		return failed(err)
	}
	next, ok := at.giveBack(worker, incarnation, number, time.Now().UTC())
	if !ok {
		return refused("this process of worker %s does not hold the lease of this host in epoch %d", worker, number)
	}
	if err := s.write(ctx, host, next, revision); err != nil {
		return failed(err)
	}
	return Response{}
}

// read reads the stored lease.
func (s *leases) read(ctx context.Context, host string) (Lease, uint64, error) {
	body, revision, err := s.gate.Keeper.Lease(ctx, s.gate.Tenant, log.Token(host))
	if err != nil {
		return Lease{}, 0, err
	}
	l, err := decodeLease(body, revision)
	s.learn(host, l, revision)
	return l, revision, err
}

// Lease returns the stored lease of a host.
func (g *Gate) Lease(ctx context.Context, host string) (Lease, error) {
	l, _, err := g.leases.read(ctx, host)
	return l, err
}

// Addressed returns a task for the process that holds the lease of its host, as far as this
// gate knows; false while it knows of none.
func (g *Gate) Addressed(t message.Task) (message.Task, bool) {
	g.leases.mu.Lock()
	defer g.leases.mu.Unlock()
	at := g.leases.byHost[t.Host]
	if at == nil || at.Incarnation == "" || at.Vacant {
		return t, false
	}
	t.Incarnation = at.Incarnation
	return t, true
}

// write writes a lease based on a revision. After an error the host calls again, and
// that call reads whether the lease was written.
func (s *leases) write(ctx context.Context, host string, next Lease, base uint64) error {
	body, err := format.Lease.Encode(next)
	if err != nil {
		return err
	}
	revision, err := s.gate.Keeper.PutLease(ctx, s.gate.Tenant, log.Token(host), body, base)
	if err == nil {
		s.learn(host, next, revision)
	}
	return err
}
