package controller

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Runs returns the runs, newest first. Only the newest has its hosts.
func (c *Controller) Runs(ctx context.Context) ([]v1.Run, error) {
	return ask(ctx, c, func(s *state) []v1.Run {
		runs := []v1.Run{}
		newest := s.visible()
		if newest != nil {
			runs = append(runs, s.view(newest))
		}
		for _, past := range s.ledger.Past() {
			if newest == nil || past.OpenedSeq != newest.OpenedSeq {
				runs = append(runs, summaryView(past))
			}
		}
		return runs
	})
}

func summaryView(p run.Summary) v1.Run {
	return v1.Run{
		ID: p.Key, Phase: string(run.Finished), Result: string(p.Result), Reason: p.Reason, Trigger: p.Trigger,
		RequestedBy: p.By, RequestReason: p.Why, OpenedAt: stamp(p.OpenedAt), NotAfter: stamp(p.NotAfter), EndedAt: at(p.EndedAt),
	}
}

// Find returns one run, with its hosts: the newest from memory, an earlier one
// by folding its part of the log again.
func (c *Controller) Find(ctx context.Context, id uint64) (v1.Run, error) {
	found, err := ask(ctx, c, func(s *state) lookup { return s.lookup(id) })
	switch {
	case err != nil:
		return v1.Run{}, err
	case found.inMemory:
		return found.view, nil
	case !found.ended:
		return v1.Run{}, fmt.Errorf("run %d: %w", id, run.ErrNoRun)
	}
	return c.replay(ctx, found.past)
}

// lookup is what the memory has of a run.
type lookup struct {
	view            v1.Run
	past            run.Summary
	inMemory, ended bool
}

func (s *state) lookup(id uint64) (l lookup) {
	if newest := s.visible(); newest != nil && newest.Key() == id {
		return lookup{view: s.view(newest), inMemory: true}
	}
	l.past, l.ended = s.ledger.Find(id)
	return l
}

// replay folds the records of a run that has ended.
func (c *Controller) replay(ctx context.Context, past run.Summary) (v1.Run, error) {
	var ledger run.Ledger
	err := c.o.Log.Read(ctx, past.OpenedSeq, past.EndedSeq, func(r message.Record) {
		_ = ledger.Fold(r) // What does not count now did not count then.
	})
	newest := ledger.Newest()
	switch {
	case err != nil:
		return v1.Run{}, fmt.Errorf("cannot read run %d again: %w", past.Key, err)
	case newest == nil || !newest.Over():
		return v1.Run{}, fmt.Errorf("cannot read run %d again: records %d to %d do not make it up", past.Key, past.OpenedSeq, past.EndedSeq)
	}
	return runView(newest), nil
}

// Watch returns a channel that gets word of each change, several at once as
// one, until stop is called.
func (c *Controller) Watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error) {
	watcher := make(chan struct{}, 1)
	stop = func() {
		_ = c.post(context.WithoutCancel(ctx), func(s *state) { delete(s.watchers, watcher) })
	}
	err = c.attempt(ctx, func(s *state) error {
		s.watchers[watcher] = true
		return nil
	})
	if err != nil {
		stop() // It may have been registered after all.
		return nil, nil, err
	}
	return watcher, stop, nil
}

// newest is the run that was opened last as it is shown.
type newest struct {
	view  v1.Run
	seq   uint64
	found bool
}

// Newest returns the run that was opened last and the log's sequence that it
// is as of; false when there is none yet. Its hosts are shared by all who ask
// between two changes: nobody may change them.
func (c *Controller) Newest(ctx context.Context) (view v1.Run, seq uint64, found bool, err error) {
	n, err := ask(ctx, c, (*state).newest)
	return n.view, n.seq, n.found, err
}

func (s *state) newest() newest {
	r := s.visible()
	if r == nil {
		return newest{}
	}
	if s.shown == nil {
		v := s.view(r)
		s.shown = &v
	}
	return newest{view: *s.shown, seq: s.ledger.LastSeq, found: true}
}

// Current returns the id of the run under way, or 0.
func (c *Controller) Current(ctx context.Context) (id uint64, err error) {
	current, err := ask(ctx, c, func(s *state) *uint64 {
		var id uint64
		if current := s.ledger.Current(); current != nil {
			if id = current.ID; id == 0 {
				return nil
			}
		}
		return &id
	})
	switch {
	case err != nil:
		return 0, err
	case current == nil:
		return 0, fmt.Errorf("%w: a run is just being opened", run.ErrNotReady)
	}
	return *current, nil
}

// visible returns the run that people see as the newest. One that is opened
// has no id before its prepare, a moment later.
func (s *state) visible() *run.State {
	newest := s.ledger.Newest()
	if newest == nil || newest.ID != 0 || newest.Over() {
		return newest
	}
	return s.ledger.Ended()
}

// Ready returns why the controller sends no commands, or nil.
func (c *Controller) Ready(ctx context.Context) (why error) {
	return c.attempt(ctx, (*state).ready)
}
