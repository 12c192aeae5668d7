package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// getRuns lists the runs in the history that match the query, newest first.
func (s *server) getRuns(c *call) error {
	filter, err := readFilter(c)
	if err != nil {
		return err
	}
	runs, err := c.controller.Runs(c.Context(), filter)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		s.warnOfSelector(c, filter.Selector)
	}
	return sendList(s, c, runs, func(r v1.Run) string { return strconv.FormatUint(r.ID, 10) })
}

// readFilter parses the filter in the query. An empty parameter is an error.
func readFilter(c *call) (v1.RunFilter, error) {
	if c.query.Has("result") && c.query.Get("result") == "" {
		return v1.RunFilter{}, badRequest("result", "", "it is empty; give a value or omit it")
	}
	selector, err := readSelector(c)
	if err != nil {
		return v1.RunFilter{}, err
	}
	filter := v1.RunFilter{Selector: selector, Result: c.query.Get("result"), Limit: v1.DefaultRuns}
	if filter.Since, err = instant(c, "since"); err != nil {
		return v1.RunFilter{}, err
	}
	if filter.Until, err = instant(c, "until"); err != nil {
		return v1.RunFilter{}, err
	}
	if text := c.query.Get("limit"); c.query.Has("limit") {
		if filter.Limit, err = strconv.Atoi(text); err != nil || filter.Limit < 1 {
			return v1.RunFilter{}, badRequest("limit", text, "is not a number of runs; use 1 to "+strconv.Itoa(v1.MaxRuns))
		}
	}
	if wrong := filter.Validate(); len(wrong) > 0 {
		return v1.RunFilter{}, wrong
	}
	return filter, nil
}

// instant parses a time in the query; zero if absent.
func instant(c *call, name string) (time.Time, error) {
	if !c.query.Has(name) {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, c.query.Get(name))
	if err != nil {
		return time.Time{}, badRequest(name, c.query.Get(name), `is not a time; use RFC 3339, such as 2026-11-21T01:00:00Z, with a "+" percent-encoded`)
	}
	return at, nil
}

func (s *server) getRun(c *call) error {
	id, err := s.runID(c)
	if err != nil {
		return err
	}
	run, err := c.controller.Find(c.Context(), id)
	if err != nil {
		return err
	}
	return s.sendFields(c, run)
}

// getInstalled shows what a run has installed, as a release.
func (s *server) getInstalled(c *call) error {
	id, err := s.runID(c)
	if err != nil {
		return err
	}
	found, err := c.controller.Installed(c.Context(), id)
	if err != nil {
		return err
	}
	return s.sendFields(c, found)
}

// runID returns the id in the path of a GET.
func (s *server) runID(c *call) (uint64, error) {
	id, err := strconv.ParseUint(c.PathValue("id"), 10, 64)
	if err != nil {
		return 0, badRequest("id", c.PathValue("id"), "is not the id of a run; use a number")
	}
	return id, nil
}

// getOutput shows what the actions of a host have printed in a run.
func (s *server) getOutput(c *call) error {
	id, err := s.runID(c)
	if err != nil {
		return err
	}
	host := c.PathValue("host")
	outputs, err := c.controller.Output(c.Context(), id, host)
	if errors.Is(err, run.ErrNoHost) {
		return problem(http.StatusNotFound, "host", host, "host %q is not in run %d", host, id)
	} else if err != nil {
		return err
	}
	return s.sendFields(c, outputs)
}

// getPlan shows what a run changes on a host.
func (s *server) getPlan(c *call) error {
	id, err := s.runID(c)
	if err != nil {
		return err
	}
	host := c.PathValue("host")
	plan, err := c.controller.Plan(c.Context(), id, host)
	switch {
	case errors.Is(err, run.ErrNoHost):
		return problem(http.StatusNotFound, "host", host, "host %q is not in run %d", host, id)
	case errors.Is(err, run.ErrNoPlan):
		return problem(http.StatusNotFound, "host", host, "host %q has told no plan in run %d that is kept: it is not prepared, its worker is of an older version, or the run is long ago", host, id)
	case err != nil:
		return err
	}
	return s.sendFields(c, plan)
}

// postStart handles POST start and returns the new run, or with
// validate=true what a start would do.
func (s *server) postStart(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	request, err := v1.DecodeStart(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	if c.has("validate") {
		preflight, err := c.controller.Preflight(c.Context(), c.who.Name, request)
		if err != nil {
			return err
		}
		s.send(c.w, c.Request, http.StatusOK, preflight)
		return nil
	}
	c.audit.Reason = request.Reason
	run, err := c.controller.Start(c.Context(), c.who.Name, request)
	if err != nil {
		return err
	}
	c.audit.Object = runObject(run)
	if request.OverrideWindow {
		c.audit.Detail = "overrides the windows"
	}
	s.send(c.w, c.Request, http.StatusOK, run)
	return nil
}

// postAsk handles POST of an operator's request on the run under way and returns
// the run.
func postAsk(ask run.Ask) func(*server, *call) error {
	return func(s *server, c *call) error {
		body, err := c.body()
		if err != nil {
			return err
		}
		request, err := v1.DecodeAsk(string(ask), c.Header.Get("Content-Type"), body)
		if err != nil {
			return err
		}
		c.audit.Reason, c.audit.Detail = request.Reason, detailOf(request)
		if request.All {
			return s.abortAll(c, request)
		}
		run, err := c.controller.Ask(c.Context(), c.who.Name, ask, request)
		if err != nil {
			return err
		}
		c.audit.Object = runObject(run)
		if run.ID == 0 { // The lock of a host is freed.
			c.audit.Object = "host/" + request.Host
		}
		s.send(c.w, c.Request, http.StatusOK, run)
		return nil
	}
}

// abortAll aborts the runs of all environments and returns them.
func (s *server) abortAll(c *call, request v1.Ask) error {
	runs, err := c.controller.AbortAll(c.Context(), c.who.Name, request)
	if err != nil {
		return err
	}
	s.send(c.w, c.Request, http.StatusOK, runs)
	return nil
}
