package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// skipsOf is the object of the skipped windows of an environment.
func skipsOf(environment string) store.Object {
	return store.Object{Kind: store.Skip, Name: nameOf(environment)}
}

// setSkips puts the skipped windows of an environment in place of those before. While they cannot be
// read no window of that environment opens a run.
func (i *intent) setSkips(seen store.Seen) {
	name := onLog(seen.Name)
	if delete(i.skips, name); seen.Skips != nil {
		i.skips[name] = seen.Skips
	}
	i.note(seen.Object, seen.Err)
}

// Skippable returns the bounds of the window of an environment that opens at a time, or of the next one
// that is to have a run if the time is zero; the error is *run.Refused or *run.NoEnvironment. A window
// that is skipped already is one.
func (c *Controller) Skippable(ctx context.Context, environment string, start time.Time) (opens, closes time.Time, err error) {
	span, err := until(ctx, c, func(s *state) (window.Span, error) {
		env, err := s.existing(onLog(environment))
		if err != nil {
			return window.Span{}, err
		}
		return s.skippable(env, s.Now(), start)
	})
	return span.Start, span.End, err
}

// skippable returns the window of an environment that may be skipped at a time. A window that has had
// its run, or has a run under way, is no window to skip.
func (s *state) skippable(env *environment, now, start time.Time) (window.Span, error) {
	agenda := s.intent.of(env.name)
	if !start.IsZero() {
		for o := range agenda.schedule.Ahead(start, start.Add(1), 1) {
			if o.Start.Equal(start) && o.End.After(now) {
				return o.Span, s.stillSkippable(env, now, o.Span)
			}
		}
		return window.Span{}, &run.Refused{Message: fmt.Sprintf("no window of environment %s opens at %s; to list them: %s", nameOf(env.name), start.UTC().Format(time.RFC3339), run.Command(run.In(s.inCommand(env), "windows")))}
	}
	next, found := agenda.nextOpening(now)
	if found && s.stillSkippable(env, now, next.Span) != nil {
		next, found = agenda.followingOpening(next)
	}
	if !found {
		return window.Span{}, &run.Refused{Message: fmt.Sprintf("environment %s has no window ahead that could be skipped", nameOf(env.name))}
	}
	return next.Span, nil
}

// stillSkippable refuses to skip a window that has its run.
func (s *state) stillSkippable(env *environment, now time.Time, span window.Span) error {
	if now.Before(span.Start) || env.ledger.Current() == nil && !usedUp(s.moment(env, now, span)) {
		return nil
	}
	return &run.Refused{Message: fmt.Sprintf("the window that opened at %s has had its run; if the run is still in progress, end it with: %s", span.Start.UTC().Format(time.RFC3339), run.TypedIn(s.inCommand(env), "abort"))}
}

// skippedIn is the skip of the window that is open or opens next; nil when nobody has skipped it.
func (s *state) skippedIn(env *environment, now time.Time) *v1.SkippedWindow {
	next, found := s.intent.of(env.name).nextOpening(now)
	if !found {
		return nil
	}
	return s.intent.skips[env.name].Of(next.Start)
}
