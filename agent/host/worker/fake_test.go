package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// fakeLog is a log in memory that outlives the workers that use it.
type fakeLog struct {
	// asks are the requests for reports; nil when nobody asks.
	asks     chan log.Ask
	mu       sync.Mutex
	commands []message.Record
	replies  []message.Reply
	answered map[string]bool
	// sent are the reports, and last the last of each.
	sent     []report.Report
	lastSent map[*report.Kind]report.Told
	// alive counts the heartbeats, and last is the last of them.
	alive int
	last  message.Alive
	// asked are the tasks to run, outcomes the received outcomes.
	asked    []message.Task
	outcomes []message.Outcome
	// release is the text of the release of the run.
	release []byte
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
	s := &fakeLog{lastSent: map[*report.Kind]report.Told{}, answered: map[string]bool{}, wake: make(chan struct{}, 1), cut: make(chan struct{}), slow: map[string]bool{}, refused: map[string]bool{}, tried: map[string]int{}}
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

// Release implements log.HostLog.
func (s *fakeLog) Release(ctx context.Context, _ uint64) ([]byte, error) {
	if err := s.try(ctx, "release"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release, nil
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

func (s *fakeLog) Report(ctx context.Context, r report.Report) error {
	if err := s.try(ctx, r.Kind.Name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r)
	s.lastSent[r.Kind] = report.Told{Digest: report.Digest(r.Body), At: time.Now()}
	if r.Kind == report.Versions {
		s.calls = append(s.calls, "versions")
	}
	return nil
}

// Outputs implements log.HostLog.
func (s *fakeLog) Outputs(ctx context.Context, run uint64) (map[string]string, error) {
	return map[string]string{"JOIN": fmt.Sprintf("secret of run %d", run)}, s.try(ctx, "outputs")
}

// LastReport implements log.HostLog.
func (s *fakeLog) LastReport(ctx context.Context, kind *report.Kind) (report.Told, error) {
	if err := s.try(ctx, "last "+kind.Name); err != nil {
		return report.Told{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastSent[kind], nil
}

// ofKind are the reports of a kind that were sent.
func (s *fakeLog) ofKind(kind *report.Kind) (reports []report.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.sent {
		if r.Kind == kind {
			reports = append(reports, r)
		}
	}
	return reports
}

// bodies are the bodies of the reports of a kind that were sent.
func (s *fakeLog) bodies(kind *report.Kind) (bodies [][]byte) {
	for _, r := range s.ofKind(kind) {
		bodies = append(bodies, r.Body)
	}
	return bodies
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

func (s *fakeLog) reports() [][]byte { return s.bodies(report.Versions) }

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

// toldInventories are the inventories that were told.
func (s *fakeLog) toldInventories() [][]byte { return s.bodies(report.Inventory) }

// told are the offers that were told.
func (s *fakeLog) told() [][]byte { return s.bodies(report.Offer) }

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

func (s *fakeLog) Asked(ctx context.Context, deliver func(log.Ask)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.asks:
			deliver(a)
		}
	}
}

func (s *fakeLog) Pings(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// outcome is how the reply to an action says that it has ended.
func (s *fakeLog) outcome(action message.Action) message.ReplyOutcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replies {
		if r.Action == action {
			return r.Result.Outcome
		}
	}
	return ""
}

// answer returns the text of the reply to an action; empty while there is none.
func (s *fakeLog) answer(action message.Action) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replies {
		if r.Action == action {
			return r.Result.String()
		}
	}
	return ""
}
