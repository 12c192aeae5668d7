package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// fakeLog is a log in memory that outlives the workers that use it.
type fakeLog struct {
	mu       sync.Mutex
	commands []message.Record
	replies  []message.Reply
	answered map[string]bool
	versions [][]byte
	outputs  []message.Output
	plans    []message.Plan
	offers   [][]byte
	offered  message.Told
	// inventories are those that were told, inventoried the last of them.
	inventories [][]byte
	inventoried message.Told
	// alive counts the heartbeats, and last is the last of them.
	alive int
	last  message.Alive
	// asked are the tasks to run, outcomes the received outcomes.
	asked    []message.Task
	outcomes []message.Outcome
	// progress is the reported progress.
	progress []message.Progress
	// calls are the names of the calls that changed something, in order.
	calls []string
	wake  chan struct{}
	// cut is closed while the log is reachable.
	cut chan struct{}
	// slow and refused are the names of calls that never return, or that the site
	// refuses.
	slow, refused map[string]bool
	// tried counts the calls by their names.
	tried map[string]int
}

func newFakeLog() *fakeLog {
	s := &fakeLog{answered: map[string]bool{}, wake: make(chan struct{}, 1), cut: make(chan struct{}), slow: map[string]bool{}, refused: map[string]bool{}, tried: map[string]int{}}
	close(s.cut)
	return s
}

var _ log.HostLog = (*fakeLog)(nil)

// try waits until a call by its name can be made.
func (s *fakeLog) try(ctx context.Context, call string) error {
	s.mu.Lock()
	s.tried[call]++
	cut, slow, refused := s.cut, s.slow[call], s.refused[call]
	s.mu.Unlock()
	if slow {
		cut = nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-cut:
	}
	if refused {
		return fmt.Errorf("%s: %w", call, log.ErrRefused)
	}
	return nil
}

// Lease implements log.HostLog: there is but one worker.
func (s *fakeLog) Lease(ctx context.Context, _ string) (uint64, error) { return 0, s.try(ctx, "lease") }

// GiveBack implements log.HostLog.
func (s *fakeLog) GiveBack(context.Context) error { return nil }

// Vacated implements log.HostLog.
func (s *fakeLog) Vacated() <-chan struct{} { return nil }

// Newest implements log.HostLog.
func (s *fakeLog) Newest(ctx context.Context) ([]message.Record, error) {
	if err := s.try(ctx, "newest"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := map[message.Kind]message.Record{}
	for _, r := range s.commands {
		newest[r.Kind] = r
	}
	bySeq := func(a, b message.Record) int { return cmp.Compare(a.Seq, b.Seq) }
	return slices.SortedFunc(maps.Values(newest), bySeq), nil
}

func (s *fakeLog) send(r message.Record) {
	s.mu.Lock()
	s.commands = append(s.commands, r)
	s.mu.Unlock()
	s.poke()
}

// poke delivers everything once more.
func (s *fakeLog) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Commands delivers everything, again and again: a worker must bear it.
func (s *fakeLog) Commands(ctx context.Context, deliver func(message.Record)) error {
	for {
		if err := s.try(ctx, "commands"); err != nil {
			return err
		}
		s.mu.Lock()
		all := slices.Clone(s.commands)
		s.mu.Unlock()
		for _, r := range all {
			deliver(r)
			deliver(r)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		}
	}
}

func (s *fakeLog) Reply(ctx context.Context, _ uint64, reply message.Reply) error {
	if err := s.try(ctx, "reply"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered[string(reply.Action)] {
		return log.ErrAnswered
	}
	s.answered[string(reply.Action)] = true
	s.replies = append(s.replies, reply)
	s.calls = append(s.calls, "reply to "+string(reply.Action))
	return nil
}

func (s *fakeLog) Versions(ctx context.Context, body []byte) error {
	if err := s.try(ctx, "versions"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions = append(s.versions, body)
	s.calls = append(s.calls, "versions")
	return nil
}

func (s *fakeLog) Output(ctx context.Context, o message.Output) error {
	if err := s.try(ctx, "output"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outputs = append(s.outputs, o)
	return nil
}

func (s *fakeLog) Plan(ctx context.Context, _ uint64, plan message.Plan) error {
	if err := s.try(ctx, "plan"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = append(s.plans, plan)
	return nil
}

func (s *fakeLog) Offer(ctx context.Context, packed []byte) error {
	if err := s.try(ctx, "offer"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers = append(s.offers, packed)
	s.offered = message.Told{Digest: message.Digest(packed), At: time.Now()}
	return nil
}

func (s *fakeLog) LastOffer(ctx context.Context) (message.Told, error) {
	if err := s.try(ctx, "last offer"); err != nil {
		return message.Told{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offered, nil
}

func (s *fakeLog) LastVersions(ctx context.Context) ([]byte, error) {
	if err := s.try(ctx, "last versions"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.versions) == 0 {
		return nil, nil
	}
	return s.versions[len(s.versions)-1], nil
}

func (s *fakeLog) Alive(a message.Alive) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive++
	s.last = a
	return nil
}

// lastAlive is what the last heartbeat said.
func (s *fakeLog) lastAlive() message.Alive {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *fakeLog) heartbeats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

func (s *fakeLog) reports() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.versions)
}

// forget has each action answered anew.
func (s *fakeLog) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered, s.replies = map[string]bool{}, nil
}

func (s *fakeLog) hasAnswered(action message.Action) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[string(action)]
}

func (s *fakeLog) Inventory(ctx context.Context, body []byte) error {
	if err := s.try(ctx, "inventory"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inventories = append(s.inventories, body)
	s.inventoried = message.Told{Digest: message.Digest(body), At: time.Now()}
	return nil
}

func (s *fakeLog) LastInventory(ctx context.Context) (message.Told, error) {
	if err := s.try(ctx, "last inventory"); err != nil {
		return message.Told{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inventoried, nil
}

// toldInventories are the inventories that were told.
func (s *fakeLog) toldInventories() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.inventories)
}

// told are the offers that were told.
func (s *fakeLog) told() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.offers)
}

func (s *fakeLog) Progress(p message.Progress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = append(s.progress, p)
	return nil
}

// taskEvery is the interval at which a task is sent.
const taskEvery = 5 * time.Second

// Tasks delivers each task until it has its outcome.
func (s *fakeLog) Tasks(ctx context.Context, deliver func(message.Task)) error {
	for {
		if err := s.try(ctx, "tasks"); err != nil {
			return err
		}
		for _, t := range s.wanted() {
			deliver(t)
		}
		if err := wait.Sleep(ctx, taskEvery); err != nil {
			return err
		}
	}
}

func (s *fakeLog) wanted() (tasks []message.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.asked {
		if !slices.ContainsFunc(s.outcomes, func(o message.Outcome) bool { return o.Key() == t.Key() }) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// ask wants a task done.
func (s *fakeLog) ask(t message.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, t)
}

func (s *fakeLog) Outcome(o message.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes = append(s.outcomes, o)
	return nil
}

func (s *fakeLog) Pings(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// answer returns the reply to an action; empty while there is none.
func (s *fakeLog) answer(action message.Action) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replies {
		if r.Action == action {
			return r.Result
		}
	}
	return ""
}
