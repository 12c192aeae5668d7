package api

import (
	"net/http"
	"strconv"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// postHealth handles POST health and returns what has come out within a while.
func (s *server) postHealth(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	request, err := v1.DecodeAskHealth(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	report, err := c.controller.Health(c.Context(), request)
	if err != nil {
		return err
	}
	c.audit.Detail = "environment " + report.Environment
	s.send(c.w, c.Request, http.StatusOK, report)
	return nil
}

// getHealth handles GET health/{id}.
func (s *server) getHealth(c *call) error {
	id, err := strconv.Atoi(c.PathValue("id"))
	if err != nil || id < 1 {
		return problem(http.StatusBadRequest, "id", c.PathValue("id"), "id: %q is not the id of a request for the health; use the one in its answer", c.PathValue("id"))
	}
	report, err := c.controller.HealthOf(c.Context(), id)
	if err != nil {
		return err
	}
	s.send(c.w, c.Request, http.StatusOK, report)
	return nil
}
