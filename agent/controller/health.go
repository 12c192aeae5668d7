package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// healthHold is how long a request for the health waits for outcomes: less than a client waits
	// for an answer.
	healthHold = 20 * time.Second
	// mostHealths is how many requests are kept, and mostAsking how many of them may be under way:
	// each has scripts run on all hosts.
	mostHealths = 16
	mostAsking  = 4
)

// healths are the requests for the health, by id, the oldest first in order. They are of no run
// and not on the log: a controller that starts knows none.
type healths struct {
	byID  map[int]*health
	order []int
}

// health is one request: the checks that a run would ask before it prepares any host.
type health struct {
	id          int
	environment string
	checks      []rollout.StartCheck
	places      []healthPlace
	byHost      map[string]int
	// waiting counts the places that have yet to answer.
	waiting int
}

// healthPlace is the site, which has no name, or a host.
type healthPlace struct {
	task   message.Task
	checks []int
	// outcome is nil while it has not come; answered ends the asking.
	outcome  *message.Outcome
	life     context.Context //nolint:containedctx // It is that of the asking, not of a call.
	answered context.CancelFunc
}

// newHealth makes a request from the plan of a run.
func newHealth(id int, environment string, p rollout.Resolved) *health {
	h := &health{id: id, environment: environment, checks: p.Checks.Start, byHost: map[string]int{}}
	for i, asked := range p.StartPlaces() {
		t := message.Task{Kind: message.Start, Host: asked.Host, Attempt: id, Environment: environment, Checks: asked.Checks}
		place := healthPlace{task: t, checks: asked.At}
		place.life, place.answered = context.WithTimeout(context.Background(), t.Limit())
		h.byHost[asked.Host] = i
		h.places = append(h.places, place)
	}
	h.waiting = len(h.places)
	return h
}

// answer notes the first outcome of a place.
func (h *health) answer(host string, o message.Outcome) {
	i, asked := h.byHost[host]
	if asked && h.places[i].outcome == nil && h.places[i].task.Key() == o.Key() {
		h.places[i].outcome = &o
		h.places[i].answered()
		h.waiting--
	}
}

// report shows the request.
func (h *health) report() v1.HealthReport {
	r := v1.HealthReport{ID: h.id, Environment: nameOf(h.environment), OK: true, Checks: []v1.HealthCheck{}}
	for n, c := range h.checks {
		asked := false
		for i := range h.places {
			if k := slices.Index(h.places[i].checks, n); k >= 0 {
				asked = true
				shown := h.places[i].shown(k)
				shown.Check = c.Name
				r.OK = r.OK && shown.Result == v1.HealthPassed
				if shown.Result == v1.HealthWaiting {
					r.Waiting++
				}
				r.Checks = append(r.Checks, shown)
			}
		}
		if !asked {
			r.Checks = append(r.Checks, v1.HealthCheck{Check: c.Name, Result: v1.HealthNotAsked, Text: "no host of the run matches it"})
		}
	}
	return r
}

// shown shows one check of a place. A worker that says nothing of the single checks says it of all.
func (p *healthPlace) shown(check int) v1.HealthCheck {
	shown := v1.HealthCheck{Host: p.task.Host, Result: v1.HealthWaiting}
	if p.outcome == nil {
		return shown
	}
	came := message.Checked{OK: p.outcome.OK, Text: p.outcome.Text}
	if len(p.outcome.Results) == len(p.checks) {
		came = p.outcome.Results[check]
	}
	if shown.Result, shown.Text = v1.HealthFailed, came.Text; came.OK {
		shown.Result = v1.HealthPassed
	}
	return shown
}

// add keeps a request, and drops the oldest that is complete.
func (hs *healths) add(h *health) {
	if hs.byID == nil {
		hs.byID = map[int]*health{}
	}
	for len(hs.order) >= mostHealths {
		oldest := slices.IndexFunc(hs.order, func(id int) bool { return hs.byID[id].waiting == 0 })
		delete(hs.byID, hs.order[oldest])
		hs.order = slices.Delete(hs.order, oldest, oldest+1)
	}
	hs.byID[h.id], hs.order = h, append(hs.order, h.id)
}

// asking counts the requests under way.
func (hs *healths) asking() (n int) {
	for _, h := range hs.byID {
		if h.waiting > 0 {
			n++
		}
	}
	return n
}

// report passes an outcome that a host tells, or the site if it has no name.
func (hs *healths) report(host string, o message.Outcome) {
	if h := hs.byID[o.Attempt]; h != nil && o.Run == 0 && o.Kind == message.Start {
		h.answer(host, o)
	}
}

// nextID returns an id that no request had, also before a restart: a worker remembers what it has
// answered.
func (hs *healths) nextID(now time.Time) int {
	id := int(now.UnixMilli())
	if n := len(hs.order); n > 0 {
		id = max(id, hs.order[n-1]+1)
	}
	return id
}

// Health asks what a run would ask before it prepares any host, and returns what has come out
// within a while; HealthOf tells the rest. The error is run.ErrNotConfigured, *run.Refused,
// *run.Ambiguous, *run.NoEnvironment or run.ErrNotReady.
func (c *Controller) Health(ctx context.Context, request v1.AskHealth) (v1.HealthReport, error) {
	asked, err := until(ctx, c, func(s *state) (askedHealth, error) {
		if s.intent.config == nil && s.intent.unusable[theConfig] == nil {
			return askedHealth{}, run.ErrNotConfigured
		}
		env, err := s.startsIn(v1.Start{Environment: request.Environment}, choice{}, func(r v1.Start) string { return run.Command("health --environment " + r.Environment) })
		if err != nil {
			return askedHealth{}, err
		}
		fleet := s.fleet(env, nil)
		pinned, err := s.releaseOf(env, s.Now())
		if err == nil {
			err = s.fit(fleet, pinned)
		}
		if err != nil {
			return askedHealth{}, &run.Refused{Message: err.Error()}
		}
		planned, err := s.intent.plan(env.name, fleet, env.course(v1.Start{}, pinned))
		if err != nil {
			return askedHealth{}, &run.Refused{Message: err.Error()}
		}
		return s.askHealth(env, planned)
	})
	if err != nil {
		return v1.HealthReport{}, err
	}
	return c.askPlaces(ctx, asked)
}

// askedHealth is a request that was taken up: its id, and whom it asks.
type askedHealth struct {
	id     int
	places []healthPlace
}

// askHealth takes up a request for what a plan asks.
func (s *state) askHealth(env *environment, planned plan.Plan) (askedHealth, error) {
	if n := s.healths.asking(); n >= mostAsking {
		return askedHealth{}, &run.Refused{Message: fmt.Sprintf("the health is being asked by %s; try again when one is complete", text.Count(n, "request", "requests"))}
	}
	h := newHealth(s.healths.nextID(s.Now()), env.name, planned.Rollout)
	s.healths.add(h)
	return askedHealth{h.id, slices.Clone(h.places)}, nil
}

// askPlaces has the places of a request asked, each until it has answered or its time is up, and
// returns what has come out within a while.
func (c *Controller) askPlaces(ctx context.Context, asked askedHealth) (v1.HealthReport, error) {
	n := c.session()
	for _, p := range asked.places {
		go func() {
			defer p.answered()
			o := p.task.Outcome(false, "no outcome within "+window.FormatDuration(p.task.Limit())+"; its worker may be silent, or older than these checks")
			if p.task.OnSite() {
				o = c.askSite(p)
			} else {
				c.askHost(n, p)
			}
			told, cancel := context.WithTimeout(context.WithoutCancel(p.life), time.Minute)
			defer cancel()
			_ = n.post(told, func(s *state) { s.healths.report(p.task.Host, o) })
		}()
	}
	return c.HealthOf(ctx, asked.id)
}

func (c *Controller) askSite(p healthPlace) message.Outcome {
	if c.o.Site == nil {
		return p.task.Outcome(false, "this site runs no checks and hooks")
	}
	return c.o.Site.Run(p.life, p.task)
}

// askHost asks a host again and again until it has answered, its time is up, or the session ends.
func (c *Controller) askHost(n *session, p healthPlace) {
	for p.life.Err() == nil {
		if addressed, held := c.o.HostEvents.Addressed(p.task); held {
			if err := c.o.HostEvents.Send(addressed); err != nil {
				c.o.Logger.Warn("cannot ask host for its health; trying again", "tenant", c.o.Tenant, "host", p.task.Host, "error", err)
			}
		}
		select {
		case <-n.ending:
			return
		case <-p.life.Done():
		case <-time.After(askAgain):
		}
	}
}

// HealthOf returns how the checks of a request came out, once they have or after a while. The error
// is run.ErrNoHealth for one that is not known.
func (c *Controller) HealthOf(ctx context.Context, id int) (v1.HealthReport, error) {
	look := func(complete bool) func(*state) (v1.HealthReport, error) {
		return func(s *state) (v1.HealthReport, error) {
			h := s.healths.byID[id]
			switch {
			case h == nil:
				return v1.HealthReport{}, fmt.Errorf("health %d: %w", id, run.ErrNoHealth)
			case complete && h.waiting > 0:
				return v1.HealthReport{}, errPending
			}
			return h.report(), nil
		}
	}
	held, release := context.WithTimeout(ctx, healthHold)
	defer release()
	r, err := until(held, c, look(true))
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return until(ctx, c, look(false))
	}
	return r, err
}
