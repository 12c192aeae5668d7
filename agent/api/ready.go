package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// readyLimit is how long a part of the site has to say that it is ready. Who asks gives up
// soon after: systemd, a load balancer and Kubernetes wait some seconds.
const readyLimit = 3 * time.Second

// part is a part of the site that readyz asks.
type part struct {
	name string
	ask  func(ctx context.Context) error
}

// healthz reports whether the process works, readyz whether every controller may
// send commands. Neither needs a token, and neither reveals a secret.
func (s *server) healthz(c *call) error {
	return s.allWell(c, s.process())
}

func (s *server) readyz(c *call) error {
	parts := []part{s.process()}
	if s.Reaches != nil {
		parts = append(parts, part{"log", s.Reaches})
	}
	if s.Strongbox != nil {
		parts = append(parts, part{"strongbox", func(context.Context) error { return s.Strongbox.Sealed() }})
	}
	for tenant, controller := range s.Tenants.All() {
		parts = append(parts, part{"controller of tenant " + tenant, controller.Ready})
	}
	return s.allWell(c, parts...)
}

func (s *server) process() part {
	return part{"store", func(context.Context) error { return s.Healthy() }}
}

// allWell answers that all parts are ready, or which are not and why. A part that does not
// answer in time is named as such, and is not waited for.
func (s *server) allWell(c *call, parts ...part) error {
	type verdict struct {
		part string
		err  error
	}
	ctx, cancel := context.WithTimeout(c.Context(), readyLimit)
	defer cancel()
	answers := make(chan verdict, len(parts))
	waiting := map[string]bool{}
	for _, p := range parts {
		waiting[p.name] = true
		go func() { answers <- verdict{p.name, p.ask(ctx)} }()
	}
	var wrong []verdict
	for len(waiting) > 0 {
		select {
		case a := <-answers:
			if errors.Is(a.err, context.DeadlineExceeded) {
				continue
			}
			delete(waiting, a.part)
			if a.err != nil {
				wrong = append(wrong, verdict{a.part, fmt.Errorf("the %s is not ready: %w", a.part, a.err)})
			}
		case <-ctx.Done():
			if err := c.Context().Err(); err != nil {
				return err
			}
			for name := range waiting {
				wrong = append(wrong, verdict{name, fmt.Errorf("the %s does not answer within %s", name, readyLimit)})
			}
			clear(waiting)
		}
	}
	if len(wrong) == 0 {
		s.send(c.w, c.Request, http.StatusOK, v1.Health{Status: "ok"})
		return nil
	}
	slices.SortFunc(wrong, func(a, b verdict) int { return cmp.Compare(a.part, b.part) })
	body := v1.ErrorBody{}
	for _, w := range wrong {
		body.Errors = append(body.Errors, v1.Error{Message: w.err.Error()})
	}
	return &answer{status: http.StatusServiceUnavailable, body: body}
}
