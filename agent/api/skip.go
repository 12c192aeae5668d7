package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// postSkipWindow skips the next window of an environment, or the one that the body names.
func (s *server) postSkipWindow(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	request, err := v1.DecodeSkipWindow(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	c.audit.Reason = request.Reason
	environment := cmp.Or(request.Environment, v1.DefaultEnvironment)
	start, err := request.Start()
	if err != nil {
		return err
	}
	c.audit.Detail = windowDetail(environment, start)
	opens, closes, err := c.controller.Skippable(c.Context(), environment, start)
	if err != nil {
		return err
	}
	c.audit.Detail = windowDetail(environment, opens.UTC())
	now := time.Now().UTC().Truncate(time.Second)
	skip := v1.SkippedWindow{Start: opens.UTC(), End: closes.UTC(), By: c.who.Name, At: now, Reason: request.Reason}
	err = s.editSkips(c, environment, func(skips v1.Skips) (next v1.Skips, changed bool, err error) {
		if already := skips.Of(skip.Start); already != nil {
			skip = *already
			return skips, false, nil
		}
		if skips.Full(now) {
			return skips, false, fmt.Errorf("environment %s has %d skipped windows ahead: %w; unskip one first, or freeze the time with a calendar", environment, v1.MaxSkips, store.ErrFull)
		}
		next, changed = skips.With(skip, now)
		return next, changed, nil
	})
	if err != nil {
		return err
	}
	s.Log.Info("window skipped", "tenant", c.tenant, "environment", environment, "opens", skip.Start, "by", skip.By, "reason", skip.Reason)
	return s.sendFields(c, skip)
}

// deleteSkipWindow lets the next window that is skipped, or the one that the query names, open its run.
func (s *server) deleteSkipWindow(c *call) error {
	environment := cmp.Or(c.query.Get("environment"), v1.DefaultEnvironment)
	if wrong := (v1.SkipWindow{Environment: environment, Reason: "-"}).Validate(); len(wrong) > 0 {
		return wrong
	}
	start, err := instant(c, "window-start")
	if err != nil {
		return err
	}
	c.audit.Detail = windowDetail(environment, start)
	var taken *v1.SkippedWindow
	err = s.editSkips(c, environment, func(skips v1.Skips) (v1.Skips, bool, error) {
		skips, taken = skips.Without(start, time.Now())
		return skips, taken != nil, nil
	})
	if err == nil && taken == nil {
		err = s.notSkipped(c, environment, start)
	}
	if err != nil {
		return err
	}
	c.audit.Detail = windowDetail(environment, taken.Start)
	s.Log.Info("window is not skipped any more", "tenant", c.tenant, "environment", environment, "opens", taken.Start, "by", c.who.Name)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// notSkipped says that a window of an environment is not skipped, or that there is no such environment.
func (s *server) notSkipped(c *call, environment string, start time.Time) error {
	_, _, err := c.controller.Skippable(c.Context(), environment, start)
	if unknown, is := errors.AsType[*run.NoEnvironment](err); is {
		return unknown
	}
	if start.IsZero() {
		return problem(http.StatusPreconditionFailed, "", "", "no window of environment %s is skipped", environment)
	}
	return problem(http.StatusPreconditionFailed, "window-start", c.query.Get("window-start"), "no window of environment %s that opens then is skipped", environment)
}

// windowDetail is what an audit record says of the window of an environment that opens at a time; zero
// when the request does not name it.
func windowDetail(environment string, start time.Time) string {
	detail := "environment " + environment
	if !start.IsZero() {
		detail += ", the window that opens at " + start.UTC().Format(time.RFC3339)
	}
	return detail
}

// editSkips changes the skipped windows of an environment, and waits until the controller has seen
// that. What cannot be read is replaced.
func (s *server) editSkips(c *call, environment string, edit func(v1.Skips) (next v1.Skips, changed bool, err error)) error {
	for try := 1; ; try++ {
		skips, base, err := s.Store.Skips(c.Context(), c.tenant, environment)
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		next, changed, err := edit(skips)
		if err != nil || !changed {
			return err
		}
		revision, err := s.Store.PutSkips(c.Context(), c.tenant, environment, next, base)
		if errors.Is(err, store.ErrConflict) && try < maxTries {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.controller.Seen(c.Context(), revision.Number); err != nil {
			s.Log.Warn("the controller has not seen the skipped windows yet", "tenant", c.tenant, "error", err)
		}
		return nil
	}
}

// forgetSkips deletes the windows that were skipped before the declaration of an environment is created;
// base is the revision that the write replaces. It does so then, not at the deletion: a window may also
// be skipped just after that, and if the deletion fails, they must still be skipped.
func (s *server) forgetSkips(ctx context.Context, tenant, environment string, base store.Revision) error {
	if base != (store.Revision{}) {
		return nil
	}
	for try := 1; ; try++ {
		_, base, err := s.Store.Skips(ctx, tenant, environment)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		} else if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		_, err = s.Store.DeleteSkips(ctx, tenant, environment, base)
		if !errors.Is(err, store.ErrConflict) || try == maxTries {
			return err
		}
	}
}
