package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Preflight returns what a start would do, and starts nothing. A start that would
// be refused is no error: what is told then is of the next window. The error is
// run.ErrNotConfigured or run.ErrNotReady.
func (c *Controller) Preflight(ctx context.Context, by string, request v1.Start) (v1.Preflight, error) {
	chosen, err := c.choose(ctx, request)
	if refused, ok := errors.AsType[*run.Refused](err); ok {
		return v1.Preflight{Refused: refused.Message}, nil
	}
	if err != nil {
		return v1.Preflight{}, err
	}
	var atSite []string
	if c.o.SiteScripts != nil {
		atSite = c.o.SiteScripts()
	}
	type found struct {
		rehearsed
		v1.Preflight
		asked askedHealth
	}
	f, err := until(ctx, c, func(s *state) (found, error) {
		if err := s.mayWrite(); err != nil { // A start would be refused until somebody mends the site.
			return found{}, err
		}
		env, err := s.startsIn(request, chosen, func(r v1.Start) string { return startAgain(r, " --dry-run") })
		if err != nil {
			return found{}, err
		}
		e, planned, refused, err := s.rehearsal(env, s.Now(), by, request, chosen)
		e.steps = env.ledger.StepTimes()
		f := found{rehearsed: e, Preflight: v1.Preflight{Refused: refused, SkippedWindow: s.intent.skips[env.name].Of(e.Window)}}
		if len(planned.Hosts) > 0 {
			if left := planned.Left(s.have(e.Release)); left.Nothing() {
				f.UpToDate = haveIt(left.Have, e.Release)
			}
			s.addMissing(&f.Preflight, planned, atSite)
			known := s.knownHosts()
			known.InForce = &plan.Intent{Rollout: s.intent.rolloutOf(env.name)}
			f.Warnings = plan.Unmatched(plan.Intent{Budgets: s.intent.budgets, Releases: releaseIn(e.Release)}, known)
			if err == nil && len(planned.Rollout.Checks.Start) > 0 {
				f.asked, err = s.askHealth(env, planned)
			}
		}
		return f, err
	})
	// It is played outside of the loop, which has runs to drive.
	if err != nil || len(f.Members) == 0 {
		return f.Preflight, err
	}
	if f.asked.id != 0 {
		health, err := c.askPlaces(ctx, f.asked)
		if err != nil {
			return v1.Preflight{}, err
		}
		f.Health = &health
	}
	usual, err := c.usual(ctx, nameOf(f.Environment))
	if err != nil {
		return v1.Preflight{}, err
	}
	rehearse(&f.Preflight, f.rehearsed, usual)
	if chosen.back != nil { // What an upgrade would change says nothing of it.
		return f.Preflight, nil
	}
	offers, err := c.o.Store.Summaries(ctx, c.o.Tenant, report.Offer)
	if err != nil {
		return v1.Preflight{}, err
	}
	addOffers(&f.Preflight, offers, f.Release)
	return f.Preflight, nil
}

// releaseIn returns the release of a run, by its name; nil for none.
func releaseIn(pinned *release.Pin) map[string]v1.Release {
	if pinned == nil {
		return nil
	}
	r, err := pinned.Release()
	if err != nil { // The run says so when it is opened.
		return nil
	}
	return map[string]v1.Release{pinned.Name: r}
}

// addOffers adds what the members of the run offer to change. A host that the rollout leaves
// out is not upgraded, whatever it offers. A summary that cannot be read counts as no offer, as one by
// another release than that of the run does.
func addOffers(p *v1.Preflight, offers map[string]report.Summary, pinned *release.Pin) {
	for _, h := range p.Run.Hosts {
		if h.Stage == "" {
			continue
		}
		offer := v1.HostOffer{Hostname: h.Hostname}
		var summary v1.OfferSummary
		if kept, told := offers[log.Token(h.Hostname)]; told && json.Unmarshal([]byte(kept.JSON), &summary) == nil && summary.Release.DigestOf() == (goal{pin: pinned}).digest() {
			offer.OfferSummary, offer.At = summary, view.OptionalTime(view.Time(kept.At))
		}
		p.Offers = append(p.Offers, offer)
	}
}

// Offer returns what an upgrade of a host would change if it began now. The error is
// run.ErrNoHost when no host of that name is known, and run.ErrNoPlan when the host has told
// no offer.
func (c *Controller) Offer(ctx context.Context, name string) (v1.HostPlan, error) {
	if _, err := until(ctx, c, func(s *state) (struct{}, error) {
		if _, known := s.hosts.known[name]; !known {
			return struct{}{}, fmt.Errorf("host %s: %w", name, run.ErrNoHost)
		}
		return struct{}{}, nil
	}); err != nil {
		return v1.HostPlan{}, err
	}
	offer, err := c.plan(ctx, name, report.ID{Kind: report.Offer})
	if errors.Is(err, run.ErrNoPlan) {
		return v1.HostPlan{}, fmt.Errorf("host %s: %w", name, err)
	}
	return offer, err
}

// plan returns the plan in a report of a host.
func (c *Controller) plan(ctx context.Context, host string, id report.ID) (v1.HostPlan, error) {
	kept, err := c.o.Store.Report(ctx, c.o.Tenant, log.Token(host), id)
	if errors.Is(err, store.ErrNotFound) {
		return v1.HostPlan{}, run.ErrNoPlan
	}
	if err != nil {
		return v1.HostPlan{}, err
	}
	kept.At = view.Time(kept.At)
	shown, err := kept.HostPlan()
	if err != nil {
		return v1.HostPlan{}, fmt.Errorf("the %s of host %s %w", id, host, err)
	}
	return shown, nil
}

// mostMeasured is how many runs are looked at for how long a host takes.
const mostMeasured = 10

// usual returns how long the work of the last run took in which a host was upgraded, if possible a
// run of an environment; nil when there is none.
func (c *Controller) usual(ctx context.Context, environment string) (*v1.Usual, error) {
	for _, of := range [][]string{{environment}, nil} {
		usual, err := c.usualOf(ctx, v1.RunFilter{Selector: v1.Selector{Environments: of}, Limit: mostMeasured})
		if usual != nil || err != nil {
			return usual, err
		}
	}
	return nil, nil
}

// usualOf is usual of the runs that a filter chooses.
func (c *Controller) usualOf(ctx context.Context, filter v1.RunFilter) (*v1.Usual, error) {
	runs, err := c.Runs(ctx, filter)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if !r.Finished() {
			continue
		}
		full, err := c.Find(ctx, r.ID)
		if errors.Is(err, run.ErrNoRun) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if usual, known := plan.UsualOf(full); known {
			return &usual, nil
		}
	}
	return nil, nil
}

// rehearsed is an event that would open a run, and when.
type rehearsed struct {
	message.Opened
	at time.Time
	// steps are how long those of the environment have taken.
	steps run.StepTimes
}

// rehearsal returns what a start would open a run with, or why it is refused and
// what the next window would open a run with.
func (s *state) rehearsal(env *environment, now time.Time, by string, request v1.Start, chosen choice) (e rehearsed, p plan.Plan, refused string, err error) {
	opened, p, err := s.decideStart(env, now, by, request, chosen)
	e = rehearsed{Opened: opened, at: now}
	why, ok := errors.AsType[*run.Refused](err)
	if !ok {
		if err == nil {
			e.Opened = s.opening(env, e.Opened, p)
		}
		return e, p, "", err
	}
	if request.IsRollback() {
		return e, plan.Plan{}, why.Message, nil
	}
	if chosen.back != nil {
		if opened, p, err := s.planRollback(env, message.Opened{}, chosen.back); err == nil {
			e = s.nextChance(env, now, request, opened, p)
			e.Opened = s.opening(env, e.Opened, p)
			return e, p, why.Message, nil
		}
	}
	pinned, unpinned := s.releaseToStart(env, now, request, chosen.release)
	fleet := s.fleet(env, s.only(request, chosen.left))
	if errors.Join(unpinned, s.fit(fleet, pinned)) != nil {
		return e, plan.Plan{}, why.Message, nil //nolint:nilerr // why says it
	}
	p, unplanned := s.intent.plan(env.name, fleet, env.course(request, pinned))
	if unplanned != nil {
		return e, plan.Plan{}, why.Message, nil //nolint:nilerr // why says it
	}
	e = s.nextChance(env, now, request, message.Opened{Release: pinned}, p)
	e.Opened = s.opening(env, e.Opened, p)
	return e, p, why.Message, nil
}

// nextChance returns when a planned run could be opened that is refused now: in the next
// window, or else outside of the windows, at once or when the freeze in force ends.
func (s *state) nextChance(env *environment, now time.Time, request v1.Start, opened message.Opened, p plan.Plan) rehearsed {
	e := rehearsed{Opened: opened, at: now}
	span, found := s.intent.of(env.name).nextOpening(now)
	if found && (!request.OverrideWindow || !now.Before(span.Start)) {
		e.at = times.Later(now, span.Start)
		e.Trigger, e.Window, e.WindowEnd, e.NotAfter = message.TriggerWindow, span.Start, span.End, span.End.Add(-p.Reserve())
		return e
	}
	if freeze, frozen := s.intent.nextFreeze(now); frozen && freeze.Contains(now) {
		e.at = freeze.End
	}
	e.Trigger, e.NotAfter = message.TriggerManual, e.at.Add(overrideDuration)
	return e
}

// rehearse adds the run as it would be opened, and when it is expected to end.
func rehearse(p *v1.Preflight, e rehearsed, usual *v1.Usual) {
	var took run.Usual
	if usual != nil {
		took = run.Usual{Prepare: time.Duration(usual.PrepareSeconds) * time.Second, Host: time.Duration(usual.HostSeconds) * time.Second, Steps: e.steps}
	}
	opened, forecast, futile := run.Rehearse(e.at, e.Opened, took)
	shown := view.Run(opened, e.at, forecast, nil, nil)
	shown.ID, shown.Environment, shown.WaitingFor = 0, e.Environment, nil
	p.Run, p.Usual = &shown, usual
	switch {
	case futile != "":
		shown.Forecast = futile
		p.Fits = new(bool)
	case forecast != nil && (forecast.Left > 0 || forecast.Waits == ""):
		fits := forecast.Left == 0 && !forecast.End.After(e.NotAfter)
		p.Fits = &fits
	}
}

// addMissing adds what hosts and the site lack for a run. A silent host says nothing.
func (s *state) addMissing(p *v1.Preflight, planned plan.Plan, atSite []string) {
	needs := planned.Needs()
	if missing, unknown := needs.MissingAtSite(atSite); len(missing) > 0 && !unknown {
		p.Missing = append(p.Missing, v1.Missing{What: missing})
	}
	now := s.Now()
	for _, name := range planned.Hosts {
		host := s.hosts.known[name]
		if host == nil || !s.hosts.isOnline(name, now) {
			continue
		}
		missing, unknown := needs.Missing(name, host.self)
		if len(missing) > 0 {
			p.Missing = append(p.Missing, v1.Missing{Host: name, What: missing})
		}
		if unknown {
			p.Unknown = append(p.Unknown, name)
		}
	}
}
