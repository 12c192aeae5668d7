package api

import (
	"errors"
	"net/http"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// deleteHost answers DELETE of a host that is gone for good, which otherwise
// holds the slot of a run until it comes back (design.md 5, invariant 1).
func (s *server) deleteHost(c *call) error {
	if err := s.onSite(c); err != nil {
		return err
	}
	name := c.PathValue("host")
	if err := c.controller.Forget(c.Context(), c.by, name); errors.Is(err, run.ErrNoHost) {
		return problem(http.StatusNotFound, "host", name, "host %q is not known", name)
	} else if err != nil {
		return err
	}
	s.Log.Info("host deleted", "tenant", c.tenant, "by", c.by, "host", name)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
