package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// printing is a strategy whose upgrade takes minutes and prints a line in each.
type printing struct {
	strategy.Strategy
	mu      sync.Mutex
	printed map[string]string
}

func (p *printing) print(action, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printed[action] += line + "\n"
}

func (p *printing) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	for n := range 3 {
		p.print("upgrade", fmt.Sprint("line ", n))
		if err := wait.Sleep(ctx, 70*time.Second); err != nil {
			return 0, err
		}
	}
	p.print("upgrade", "the end")
	return p.Strategy.Upgrade(ctx, job)
}

func (p *printing) Output(_ uint64, action string, limit int) ([]byte, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.printed[action]
	return []byte(text[max(0, len(text)-limit):]), len(text) > limit, nil
}

// TestOutputsAreSent checks that the output of an action is sent while the action is in
// progress and when it has ended, once for each change, and again by the worker after
// a reboot.
func TestOutputsAreSent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		p := &printing{printed: map[string]string{}}
		r.change = func(o *Options) {
			p.Strategy, o.Strategy = o.Strategy, p
			o.Limits.Action = time.Hour
		}
		r.bear()
		r.prepare()
		r.until(message.Prepare)
		r.command(11, message.Upgrade)
		r.until(message.Upgrade)
		want := []string{"line 0", "line 0\nline 1", "line 0\nline 1\nline 2", "line 0\nline 1\nline 2\nthe end"}
		for r.life(func() bool { return len(r.hostLog.sentOutputs()) >= len(want) }) {
		}
		if got := r.hostLog.sentOutputs(); !slices.Equal(got, prefixed("10 upgrade: ", want)) {
			t.Errorf("the outputs are %q", got)
		}
		p.print("upgrade", "after the reboot")
		last := want[len(want)-1] + "\nafter the reboot"
		for r.life(func() bool { return slices.Contains(r.hostLog.sentOutputs(), "10 upgrade: "+last) }) {
		}
	})
}

// TestOutputIsAskedFor checks that a worker which is asked sends at once what the action in progress
// has printed so far, and nothing while none is.
func TestOutputIsAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		p := &printing{printed: map[string]string{}}
		r.change = func(o *Options) {
			p.Strategy, o.Strategy = o.Strategy, p
			o.Limits.Action = time.Hour
		}
		r.hostLog.asks = make(chan log.Ask, 1)
		r.bear()
		r.prepare()
		r.until(message.Prepare)
		r.hostLog.asks <- log.Ask{Kind: report.Output}
		r.command(11, message.Upgrade)
		begun := time.Now()
		for r.life(func() bool {
			if p.has("upgrade") && len(r.hostLog.asks) == 0 {
				r.hostLog.asks <- log.Ask{Kind: report.Output}
			}
			return len(r.hostLog.sentOutputs()) > 0
		}) {
		}
		if got, took := r.hostLog.sentOutputs(), time.Since(begun); !slices.Equal(got, []string{"10 upgrade: line 0"}) || took > 10*time.Second {
			t.Errorf("after %s the outputs are %q", took, got)
		}
	})
}

// has reports whether an action has printed something.
func (p *printing) has(action string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.printed[action] != ""
}

// TestOutputsNeverHinder checks that a site which takes no output, or refuses it, does
// not keep a host from its run.
func TestOutputsNeverHinder(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *fakeLog){
		"never taken": func(s *fakeLog) { s.slow["output"] = true },
		"refused":     func(s *fakeLog) { s.refused["output"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				spoil(r.hostLog)
				wholeRun(r)
			})
		})
	}
}

func prefixed(prefix string, texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, prefix+text)
	}
	return all
}

// sentOutputs returns the outputs that were sent, without their last line end. An output
// that another worker sent again unchanged is left out.
func (s *fakeLog) sentOutputs() (sent []string) {
	for _, o := range s.ofKind(report.Output) {
		text := fmt.Sprintf("%d %s: %s", o.Run, o.Part, o.Body)
		if text = text[:len(text)-1]; !slices.Contains(sent, text) {
			sent = append(sent, text)
		}
	}
	return sent
}
