package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Runs returns the runs, newest first. Only the newest has its hosts.
func (c *Controller) Runs(ctx context.Context) ([]v1.Run, error) {
	runs := []v1.Run{}
	err := c.ask(ctx, func(s *state) {
		newest := s.visible()
		if newest != nil {
			runs = append(runs, s.view(newest))
		}
		for _, past := range s.ledger.Past() {
			if newest == nil || past.OpenedSeq != newest.OpenedSeq {
				runs = append(runs, summaryView(past))
			}
		}
	})
	return runs, err
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
	var view v1.Run
	var past run.Summary
	found, ended := false, false
	err := c.ask(ctx, func(s *state) {
		if newest := s.visible(); newest != nil && newest.Key() == id {
			view, found = s.view(newest), true
			return
		}
		past, ended = s.ledger.Find(id)
	})
	switch {
	case err != nil || found:
		return view, err
	case !ended:
		return v1.Run{}, fmt.Errorf("run %d: %w", id, run.ErrNoRun)
	}
	return c.replay(ctx, past)
}

// replay folds the records of a run that has ended.
func (c *Controller) replay(ctx context.Context, past run.Summary) (v1.Run, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ledger run.Ledger
	err := c.o.Log.Follow(ctx, past.OpenedSeq, func(r message.Record) {
		if ledger.LastSeq >= past.EndedSeq {
			return
		}
		// What does not count now did not count then.
		_ = ledger.Fold(r)
		if ledger.LastSeq >= past.EndedSeq {
			stop()
		}
	})
	if newest := ledger.Newest(); newest != nil && newest.Over() {
		return runView(newest), nil
	}
	return v1.Run{}, fmt.Errorf("cannot read run %d again: %w", past.Key, err)
}

// Watch returns a channel that gets word of each change, several at once as
// one, until stop is called.
func (c *Controller) Watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error) {
	watcher := make(chan struct{}, 1)
	if err := c.ask(ctx, func(s *state) { s.watchers[watcher] = true }); err != nil {
		return nil, nil, err
	}
	return watcher, func() {
		_ = c.post(context.WithoutCancel(ctx), func(s *state) { delete(s.watchers, watcher) })
	}, nil
}

// Newest returns the run that was opened last and the log's sequence that it
// is as of; false when there is none yet. Its hosts are shared by all who ask
// between two changes: nobody may change them.
func (c *Controller) Newest(ctx context.Context) (view v1.Run, seq uint64, found bool, err error) {
	err = c.ask(ctx, func(s *state) {
		if newest := s.visible(); newest != nil {
			if s.shown == nil {
				v := s.view(newest)
				s.shown = &v
			}
			view, seq, found = *s.shown, s.ledger.LastSeq, true
		}
	})
	return view, seq, found, err
}

// Current returns the id of the run under way, or 0.
func (c *Controller) Current(ctx context.Context) (id uint64, err error) {
	var unready error
	err = c.ask(ctx, func(s *state) {
		switch current := s.ledger.Current(); {
		case current == nil:
		case current.ID == 0:
			unready = run.ErrNotReady
		default:
			id = current.ID
		}
	})
	return id, errors.Join(err, unready)
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
	if err := c.ask(ctx, func(s *state) { why = s.ready() }); err != nil {
		return err
	}
	return why
}
