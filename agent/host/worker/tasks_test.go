package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

func taskOf(run uint64, kind message.TaskKind) message.Task {
	return message.Task{Run: run, Kind: kind, Host: "h01"}
}

// TestTakeTask checks which tasks are run for a host whose journal is at run 10: each
// task once, and no drain after an undrain.
func TestTakeTask(t *testing.T) {
	t.Parallel()
	drain, undrain, before := taskOf(10, message.Drain), taskOf(10, message.Undrain), taskOf(10, message.BeforeHost)
	again := drain
	again.Attempt = 1
	others := message.Task{Run: 10, Kind: message.Drain, Host: "h02"}
	atSite := drain
	atSite.Hook = &rollout.Hook{On: rollout.OnSite}
	many := []message.Task{taskOf(11, message.BeforeHost), taskOf(12, message.BeforeHost), taskOf(13, message.BeforeHost), taskOf(14, message.BeforeHost)}
	for name, c := range map[string]struct {
		// running are begun first, done are finished first.
		running, done []message.Task
		task          message.Task
		want          verdict
	}{
		"a task":                         {nil, nil, drain, runTask},
		"a task that runs":               {[]message.Task{drain}, nil, drain, laterTask},
		"a task that has run":            {nil, []message.Task{drain}, drain, answerTask},
		"another attempt":                {nil, []message.Task{drain}, again, runTask},
		"a task of another host":         {nil, nil, others, ignoreTask},
		"a task of the site":             {nil, nil, atSite, ignoreTask},
		"a task of no host":              {nil, nil, message.Task{Run: 10, Kind: message.Fleet}, ignoreTask},
		"a task of an older run":         {nil, nil, taskOf(9, message.Undrain), ignoreTask},
		"a question that is of no run":   {nil, nil, taskOf(0, message.Start), runTask},
		"a task of an older run's start": {nil, nil, taskOf(9, message.Start), ignoreTask},
		"a task of a newer run":          {nil, nil, taskOf(11, message.BeforeHost), runTask},
		"a fifth task":                   {many, nil, before, laterTask},
		"a task of two at once":          {many[:3], nil, before, runTask},
		"an undrain while it drains":     {[]message.Task{drain}, nil, undrain, laterTask},
		"an undrain after a drain":       {nil, []message.Task{drain}, undrain, runTask},
		"a drain after an undrain":       {nil, []message.Task{undrain}, drain, answerTask},
		"a drain during an undrain":      {[]message.Task{undrain}, nil, drain, answerTask},
		"a check after an undrain":       {nil, []message.Task{undrain}, before, runTask},
		"the next run's drain":           {nil, []message.Task{undrain}, taskOf(20, message.Drain), runTask},
		"a drain that undrain overtakes": {[]message.Task{drain}, []message.Task{undrain}, again, answerTask},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTasks()
			for _, task := range c.running {
				s.take(task, "h01", 10)
			}
			for _, task := range c.done {
				s.take(task, "h01", 10)
				s.finish(task.Outcome(true, "well"))
			}
			got, outcome := s.take(c.task, "h01", 10)
			if got != c.want {
				t.Errorf("verdict %d, not %d", got, c.want)
			}
			if got == answerTask && outcome.Key() != c.task.Key() {
				t.Errorf("the answer is that of %+v", outcome)
			}
		})
	}
}

// TestOutcomesKept checks that only the newest outcomes are kept.
func TestOutcomesKept(t *testing.T) {
	t.Parallel()
	s := newTasks()
	for run := uint64(1); run <= 17; run++ {
		s.take(taskOf(run, message.BeforeHost), "h01", 0)
		s.finish(taskOf(run, message.BeforeHost).Outcome(true, fmt.Sprint(run)))
	}
	for run, want := range map[uint64]verdict{1: runTask, 2: answerTask, 17: answerTask} {
		got, outcome := s.take(taskOf(run, message.BeforeHost), "h01", 0)
		if got != want || got == answerTask && outcome.Text != fmt.Sprint(run) {
			t.Errorf("run %d: verdict %d with %+v", run, got, outcome)
		}
	}
}

// slow are checks that take a minute.
type slow struct{ begun chan message.Key }

func (s slow) Run(ctx context.Context, t message.Task) message.Outcome {
	s.begun <- t.Key()
	if err := wait.Sleep(ctx, time.Minute); err != nil {
		return t.Outcome(false, err.Error())
	}
	return message.Outcome{OK: true, Text: "slow"}
}

func (slow) Baseline(context.Context, uint64) error { return nil }

// noting are checks that note when a baseline is wanted.
type noting struct {
	passing
	noted func(run uint64) error
}

func (n noting) Baseline(_ context.Context, run uint64) error { return n.noted(run) }

// TestBaseline checks that the baseline is recorded before the upgrade, also when the
// upgrade is begun again, and that an upgrade does not depend on it.
func TestBaseline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		var noted []string
		r.change = func(o *Options) {
			o.Checks = noting{noted: func(run uint64) error {
				noted = append(noted, fmt.Sprint(run, " after ", r.effects("upgrade"), " upgrades in phase ", r.journal().Phase))
				return errors.New("no systemd")
			}}
		}
		r.bear()
		r.prepare()
		r.until(message.Prepare)
		r.command(11, message.Upgrade)
		if got := r.until(message.Upgrade); got != string(message.Done) && got != string(message.RebootRequired) {
			t.Errorf("the reply is %q", got)
		}
		if want := []string{"10 after 0 upgrades in phase upgrading"}; !slices.Equal(noted, want) {
			t.Errorf("it is noted %q, want %q", noted, want)
		}
	})
}

// TestTasks checks that a task that is sent repeatedly runs once, and that its
// outcome bears its name.
func TestTasks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		checks := slow{make(chan message.Key, 10)}
		r.change = func(o *Options) { o.Checks = checks }
		r.leave(prepared())
		task := taskOf(10, message.BeforeHost)
		task.Checks = []rollout.Check{{Timeout: rollout.SpanOf(2 * time.Minute)}}
		r.hostLog.ask(task)
		r.life(func() bool { return len(r.hostLog.wanted()) == 0 })
		if got := r.hostLog.outcomes[0]; !reflect.DeepEqual(got, task.Outcome(true, "slow")) {
			t.Errorf("it came out as %+v", got)
		}
		if n := len(checks.begun); n != 1 {
			t.Errorf("it was run %d times", n)
		}
	})
}

// TestNoChecks checks the outcome of a worker without checks.
func TestNoChecks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.Checks = nil }
		r.leave(prepared())
		r.hostLog.ask(taskOf(10, message.BeforeHost))
		r.life(func() bool { return len(r.hostLog.wanted()) == 0 })
		if got := r.hostLog.outcomes[0]; got.OK || got.Text != "this worker runs no checks" {
			t.Errorf("it came out as %+v", got)
		}
	})
}

// TestTaskBrokenOff checks that a task interrupted by the end of the worker has no
// outcome, and that the next worker runs it again.
func TestTaskBrokenOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		checks := slow{make(chan message.Key, 10)}
		r.change = func(o *Options) { o.Checks = checks }
		r.leave(prepared())
		task := taskOf(10, message.BeforeHost)
		task.Checks = []rollout.Check{{Timeout: rollout.SpanOf(2 * time.Minute)}}
		r.hostLog.ask(task)
		r.life(func() bool { return len(checks.begun) == 1 })
		synctest.Wait()
		if n := len(r.hostLog.outcomes); n != 0 {
			t.Fatalf("%d outcomes came of what was broken off", n)
		}
		r.life(func() bool { return len(r.hostLog.wanted()) == 0 })
		if n := len(checks.begun); n != 2 {
			t.Errorf("it was run %d times", n)
		}
	})
}

// TestDrainAfterTheUpgrade checks that a restarted worker refuses the drain of a run
// whose upgrade is in its journal: a delayed drain would leave the host drained.
func TestDrainAfterTheUpgrade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		journal decide.Journal
		drained bool
	}{
		"after the upgrade":  {upgradedWith(message.Done), false},
		"before the upgrade": {prepared(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				checks := slow{make(chan message.Key, 10)}
				r.change = func(o *Options) { o.Checks = checks }
				r.leave(c.journal)
				task := taskOf(10, message.Drain)
				task.Hook = &rollout.Hook{Timeout: rollout.SpanOf(2 * time.Minute)}
				r.hostLog.ask(task)
				r.life(func() bool { return len(r.hostLog.wanted()) == 0 })
				if got := r.hostLog.outcomes[0]; got.OK != c.drained || len(checks.begun) > 0 != c.drained || !c.drained && got.Text != tooLateToDrain {
					t.Errorf("it was run %d times and came out as %+v", len(checks.begun), got)
				}
			})
		})
	}
}
