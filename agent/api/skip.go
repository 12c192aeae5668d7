package api

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
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
	skip, err := c.controller.Skippable(c.Context(), environment, start)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	skip.By, skip.At, skip.Reason = c.who.Name, now, request.Reason
	err = s.editSkips(c, environment, func(skips v1.Skips) (v1.Skips, bool) {
		if already := skips.Of(skip.Start); already != nil {
			skip = *already
			return skips, false
		}
		return skips.With(skip, now)
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
	found := false
	err = s.editSkips(c, environment, func(skips v1.Skips) (v1.Skips, bool) {
		skips, found = skips.Without(start, time.Now())
		return skips, found
	})
	switch {
	case err != nil:
		return err
	case !found && start.IsZero():
		return problem(http.StatusPreconditionFailed, "", "", "no window of environment %s is skipped", environment)
	case !found:
		return problem(http.StatusPreconditionFailed, "window-start", c.query.Get("window-start"), "no window of environment %s that opens then is skipped", environment)
	}
	s.Log.Info("window is not skipped any more", "tenant", c.tenant, "environment", environment, "by", c.who.Name)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// editSkips changes the skipped windows of an environment, and waits until the controller has seen
// that. What cannot be read is replaced.
func (s *server) editSkips(c *call, environment string, edit func(v1.Skips) (next v1.Skips, changed bool)) error {
	for try := 1; ; try++ {
		skips, base, err := s.Store.Skips(c.Context(), c.tenant, environment)
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		next, changed := edit(skips)
		if !changed {
			return nil
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
