package api

import (
	"net/http"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// onSite checks that a request names no other site than this one (AV-31).
func (s *server) onSite(c *call, known ...string) error {
	if err := query(c, append(known, "site")...); err != nil {
		return err
	}
	if site := c.query.Get("site"); c.query.Has("site") && site != s.Site {
		return problem(http.StatusNotFound, "site", site, "site %q does not exist; this is %q", site, s.Site)
	}
	return nil
}

// getState answers Avassa's state object (AV-30 to AV-39).
func (s *server) getState(c *call) error {
	if err := s.onSite(c, "fields", "content"); err != nil {
		return err
	}
	state, err := c.controller.State(c.Context())
	if err != nil {
		return err
	}
	content := c.query.Get("content")
	switch {
	case content == "config":
		return s.sendFields(c, state.OSUpgrade)
	case content == "nonconfig":
		state.OSUpgrade = v1.OSUpgrade{}
	case c.query.Has("content"):
		return badRequest("content", content, `is not possible; use "config" or "nonconfig"`)
	}
	return s.sendFields(c, state)
}

// getHosts answers the hosts that are known (AV-40).
func (s *server) getHosts(c *call) error {
	if err := s.onSite(c, "fields"); err != nil {
		return err
	}
	hosts, err := c.controller.Hosts(c.Context())
	if err != nil {
		return err
	}
	return s.sendFields(c, hosts)
}

func (s *server) getHost(c *call) error {
	if err := s.onSite(c, "fields"); err != nil {
		return err
	}
	hosts, err := c.controller.Hosts(c.Context())
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if h.Hostname == c.PathValue("host") {
			return s.sendFields(c, h)
		}
	}
	return problem(http.StatusNotFound, "host", c.PathValue("host"), "host %q is not known", c.PathValue("host"))
}

// healthz tells whether the process works at all, readyz whether every
// controller may send commands. Both need no token and tell no secret.
func (s *server) healthz(w http.ResponseWriter, r *http.Request) {
	if err := s.Healthy(); err != nil {
		s.fail(w, r, err)
		return
	}
	s.send(w, r, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.Reaches != nil {
		if err := s.Reaches(r.Context()); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	for _, controller := range s.Tenants {
		if err := controller.Ready(r.Context()); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	s.healthz(w, r)
}
