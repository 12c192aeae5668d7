package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// overrideDuration bounds a run that is started outside of a window and names
// no duration of its own.
const overrideDuration = 4 * time.Hour

// startHold is how long a start waits for the checks that a run asks before it prepares any host:
// less than a client waits for an answer.
const startHold = 20 * time.Second

// Start opens a run by hand and returns it once its prepare is on the log, or while it still asks
// what has to pass before: then its phase is open. by is who asks. The error is run.ErrNotConfigured, *run.Refused, *run.Ambiguous,
// *run.NoEnvironment or run.ErrNotReady.
func (c *Controller) Start(ctx context.Context, by string, request v1.Start) (v1.Run, error) {
	chosen, err := c.choose(ctx, request)
	if err != nil {
		return v1.Run{}, err
	}
	var seq uint64
	var of string // is the name on the log of its environment.
	look := func(s *state) (v1.Run, error) {
		if seq == 0 {
			env, err := s.startsIn(request, chosen, func(r v1.Start) string { return startAgain(r, "") })
			if err != nil {
				return v1.Run{}, err
			}
			of = env.name
			seq = env.repeated(request)
		}
		env := s.environment(of)
		if seq == 0 && !s.alone() && s.active && s.alarm == nil && s.isBehind() {
			return v1.Run{}, errPending // Another run was busy just now.
		}
		if seq == 0 {
			// What is begun is finished though the caller has gone: a record half
			// appended would hold up the next.
			opened, err := s.start(context.WithoutCancel(ctx), env, by, request, chosen)
			if err != nil {
				return v1.Run{}, err
			}
			seq = opened
		}
		return s.opened(env, seq)
	}
	held, release := context.WithTimeout(ctx, startHold)
	defer release()
	if r, err := until(held, c, look); ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return r, err
	}
	return until(ctx, c, func(s *state) (v1.Run, error) {
		if newest := s.environment(of).ledger.Newest(); seq != 0 && newest != nil && newest.OpenedSeq == seq && newest.AsksFirst() {
			return s.view(s.environment(of), newest), nil
		}
		return look(s)
	})
}

// repeated returns the sequence of the first record of the newest run if the same
// request has opened it: its answer was lost. It is 0 for any other.
func (e *environment) repeated(request v1.Start) uint64 {
	if newest := e.ledger.Newest(); request.RequestID != "" && newest != nil && newest.RequestID == request.RequestID {
		return newest.OpenedSeq
	}
	return 0
}

// opened returns the run that was opened by a record once its prepare is on the
// log.
func (s *state) opened(env *environment, seq uint64) (v1.Run, error) {
	newest := env.ledger.Newest()
	switch {
	case s.alarm != nil:
		return v1.Run{}, s.ready()
	case newest == nil || newest.OpenedSeq != seq || newest.ID == 0 && !newest.Over():
		return v1.Run{}, errPending
	}
	return s.view(env, newest), nil
}

// start opens a run by hand and returns the sequence of its first record.
func (s *state) start(ctx context.Context, env *environment, by string, request v1.Start, chosen choice) (uint64, error) {
	if err := s.mayWrite(); err != nil {
		return 0, err
	}
	e, planned, err := s.decideStart(env, s.Now(), by, request, chosen)
	if err != nil {
		return 0, err
	}
	s.stale, e.Traceparent = true, trace.From(ctx).String()
	if retryAt := s.open(ctx, env, e, planned); !retryAt.IsZero() {
		return 0, fmt.Errorf("%w: it could not write to the log", run.ErrNotReady)
	}
	return s.log.last, nil
}

// decideStart returns what a run that is started by hand is opened with, or why
// none is.
func (s *state) decideStart(env *environment, now time.Time, by string, request v1.Start, chosen choice) (e message.Opened, planned plan.Plan, err error) {
	request.Environment = s.inCommand(env)
	if s.intent.config == nil && s.intent.unusable[theConfig] == nil {
		return e, planned, run.ErrNotConfigured
	}
	if err := s.intent.unreadable(); err != nil {
		return e, planned, &run.Refused{Message: err.Error()}
	}
	if stages := plan.StageNames(s.intent.rolloutOf(env.name)); request.Until != "" && !slices.Contains(stages, request.Until) {
		return e, planned, v1.Problems{document.Wrong("until", request.Until, "is no stage of the rollout; use one of "+strings.Join(stages, ", "))}
	}
	switch current := env.ledger.Current(); {
	case current == nil:
	case current.ID == 0 && !current.AsksFirst():
		return e, planned, fmt.Errorf("%w: a run is just being opened", run.ErrNotReady)
	default:
		return e, planned, current.RefuseStart(now, s.inCommand(env))
	}
	freeze, err := s.nextFreeze(now)
	if err != nil {
		return e, planned, err
	}
	if e, err = s.bounds(env, now, request); err != nil {
		return e, planned, err
	}
	if !freeze.IsZero() && freeze.Before(e.NotAfter) {
		e.NotAfter = freeze
	}
	e.Trigger, e.By, e.Why, e.RequestID = message.TriggerManual, by, request.Reason, request.RequestID
	if mayGoBack(request) && s.goesBackBy(env, now, request) != chosen.byName {
		return e, planned, fmt.Errorf("%w: the release to which it goes has just changed", run.ErrNotReady)
	}
	if chosen.back != nil {
		back, planned, err := s.planRollback(env, e, chosen.back)
		if err == nil {
			err = s.rollbackStarts(now, &back, request, planned)
			return back, planned, err
		}
		if request.IsRollback() || !isRefused(err) {
			return back, planned, err
		}
	}
	if e.Release, err = s.releaseToStart(env, now, request, chosen.release); err != nil {
		return e, planned, err
	}
	if planned, err = s.planStart(env, now, request, chosen, e.Release); err != nil {
		return e, planned, err
	}
	e.Chosen = request.OfChosen() && (!s.alone() || planned.Reached != nil || e.Release != nil)
	if err = s.mayFollow(env, now, request, &e); err != nil {
		return e, planned, err
	}
	e.RetryOf = request.RetryOf
	err = reserve(now, &e, request, planned.Reserve())
	return e, planned, err
}

// rollbackStarts tells why a rollback cannot start now, and has it end before the reserve of its window.
func (s *state) rollbackStarts(now time.Time, e *message.Opened, request v1.Start, planned plan.Plan) error {
	if len(planned.Hosts) > 0 { // Else it rolls back steps alone.
		if err := s.startable(now, planned, nil); err != nil {
			return err
		}
	}
	return reserve(now, e, request, planned.Reserve())
}

// planStart plans a run that is started by hand, of the hosts that the request chooses and that may go
// to its release, if it can start now.
func (s *state) planStart(env *environment, now time.Time, request v1.Start, chosen choice, pinned *release.Pin) (plan.Plan, error) {
	only := s.only(request, chosen.left)
	fleet := s.fleet(env, only)
	if err := s.inFleet(env, fleet, request.Hosts); err != nil {
		return plan.Plan{}, err
	}
	none := only != nil && !slices.ContainsFunc(fleet, func(h plan.Host) bool { return !h.NonMember })
	if none && chosen.step == "" {
		return plan.Plan{}, &run.Refused{Run: request.RetryOf, Message: s.startsNone(env, request, chosen.left)}
	}
	if err := s.fit(fleet, pinned); err != nil {
		return plan.Plan{}, err
	}
	planned, err := s.intent.plan(env.name, fleet, env.course(request, pinned))
	if err != nil {
		return plan.Plan{}, &run.Refused{Message: err.Error()}
	}
	if none && !planned.OfSteps() {
		return planned, &run.Refused{Run: request.RetryOf, Message: env.retriesNone(request, chosen)}
	}
	if until := planned.Until; until != "" && len(planned.Rollout.Stages) == 0 && reached.GoesOn(planned.Reached) {
		return planned, &run.Refused{Run: planned.Reached.Since, Message: fmt.Sprintf(
			"nothing is left to do until stage %s: the runs since run %d have done it; name a later stage", until, planned.Reached.Since)}
	}
	return planned, s.startable(now, planned, pinned)
}

// course says where a run that is started goes on, and where it ends; by a window for the zero request.
func (e *environment) course(request v1.Start, pinned *release.Pin) reached.Course {
	c := reached.Course{Before: e.ledger.Reached(), Until: request.Until, Chosen: request.OfChosen()}
	if request.RetryOf != 0 {
		c.Before = e.ledger.ReachedToRetry()
	}
	if request.Selector().IsZero() {
		c.RetryOf = request.RetryOf
	}
	if pinned != nil {
		c.Release = pinned.Digest
	}
	return c
}

// inFleet refuses a start of a host that is none of the fleet of an environment.
func (s *state) inFleet(env *environment, fleet []plan.Host, hosts []string) error {
	for _, name := range hosts {
		if slices.ContainsFunc(fleet, func(h plan.Host) bool { return h.Name == name }) {
			continue
		}
		known := s.hosts.known[name]
		switch {
		case known == nil, known.Environment == env.name && !known.Unplaced && !s.isElsewhere(env, name):
			return &run.Refused{Message: fmt.Sprintf("host %s is not known under a listed worker application; osupgrade-agent hosts lists those that are", name)}
		case known.Unplaced:
			return &run.Refused{Message: fmt.Sprintf("host %s is in no environment, because several match it; no run upgrades it", name)}
		case s.isElsewhere(env, name):
			last := s.lastOf(name)
			return &run.Refused{Run: last.ledger.Key(), Message: fmt.Sprintf("host %s is in run %d of environment %s, which is in progress; it moves to %s after that", name, last.ledger.Key(), nameOf(last.name), nameOf(env.name))}
		}
		return &run.Refused{Message: fmt.Sprintf("host %s is in environment %s, not in %s; a run is of one environment", name, nameOf(known.Environment), nameOf(env.name))}
	}
	return nil
}

// bounds returns when a run that is started now has to end, and the window
// that it is in. Who overrides the windows and says for how long means that,
// whether one is open or not.
func (s *state) bounds(env *environment, now time.Time, request v1.Start) (message.Opened, error) {
	span, found := s.intent.of(env.name).nextOpening(now)
	var e message.Opened
	switch open := found && !now.Before(span.Start); {
	case request.IsRollback():
		e.NotAfter = now.Add(overrideDuration)
	case open:
		e.Window, e.WindowEnd, e.NotAfter = span.Start, span.End, span.End
		e.WindowUsed = usedUp(s.moment(env, now, span.Span))
	case !request.OverrideWindow && found:
		return e, &run.Refused{Message: fmt.Sprintf(
			"no maintenance window is open; the next one opens at %s; to start now: %s",
			span.Start.UTC().Format(time.RFC3339), startAnyway(request, "--override-window"))}
	case !request.OverrideWindow:
		return e, &run.Refused{Message: "no maintenance window is configured; to start now: " + startAnyway(request, "--override-window")}
	default:
		e.NotAfter = now.Add(overrideDuration)
	}
	if request.Duration == "" {
		return e, nil
	}
	length, err := window.ParseDuration(request.Duration)
	e.NotAfter = now.Add(length)
	return e, err
}

// startAnyway is the command, with flags, that starts a run of the hosts of a request
// that was refused, and of no others.
func startAnyway(request v1.Start, flags string) string {
	return run.Typed(startWords(request) + " " + flags)
}

// startWords are the words of a command that starts a run of the hosts of a request.
func startWords(request v1.Start) string {
	words := "start"
	switch {
	case request.RollbackOf != 0:
		words = fmt.Sprintf("rollback %d", request.RollbackOf)
	case request.Rollback:
		words = "rollback"
	case request.RetryOf != 0:
		words = fmt.Sprintf("retry %d", request.RetryOf)
	}
	if request.Release != "" {
		words += " --release " + request.Release
	}
	words = run.In(request.Environment, words)
	if selector := request.Selector(); !selector.IsZero() {
		words += " " + selector.String()
	}
	if request.Until != "" {
		words += " --until " + request.Until
	}
	return words
}

// startAgain is the command of a start, with further flags.
func startAgain(request v1.Start, flags string) string {
	words := startWords(request)
	if request.OverrideWindow {
		words += " --override-window"
	}
	if request.Duration != "" {
		words += " --duration " + request.Duration
	}
	if words += flags; request.Reason != "" {
		return run.Typed(words)
	}
	return run.Command(words)
}

// nextFreeze refuses a start in a freeze, which wins over whoever starts, and returns when
// the next one begins; zero when there is none. It is asked before anything else, so that
// nobody is sent to override a window in vain.
func (s *state) nextFreeze(now time.Time) (time.Time, error) {
	freeze, found := s.intent.nextFreeze(now)
	switch {
	case !found:
		return time.Time{}, nil
	case freeze.Contains(now):
		return time.Time{}, &run.Refused{Message: fmt.Sprintf("a freeze is on until %s, and wins over every window and every start: %s; to start now, change or delete its calendar: %s",
			freeze.End.UTC().Format(time.RFC3339), freezeName(freeze), run.Command("edit calendar/"+freeze.First.Origin.Calendar))}
	}
	return freeze.Start, nil
}

// reserve has a run that ends with its window end so much earlier.
func reserve(now time.Time, e *message.Opened, request v1.Start, span time.Duration) error {
	if e.Window.IsZero() || request.Duration != "" {
		return nil
	}
	end := e.NotAfter.Add(-span)
	if !now.Before(end) {
		return &run.Refused{Message: fmt.Sprintf(
			"the window ends at %s, and the rollout's reserve of %s has begun; to start now: %s",
			e.NotAfter.UTC().Format(time.RFC3339), span, startAnyway(request, "--override-window --duration 1h"))}
	}
	e.NotAfter = end
	return nil
}

// startable tells why a run cannot start as it was planned.
func (s *state) startable(now time.Time, p plan.Plan, pinned *release.Pin) error {
	silent := slices.IndexFunc(p.Others, func(e message.Entry) bool { return e.Silent })
	switch {
	case p.OfSteps() && len(p.Hosts) == 0:
	case len(p.Hosts) == 0 && len(p.Exempt) > 0:
		return &run.Refused{Message: leavesAll(p, pinned)}
	case len(p.Hosts) == 0:
		return &run.Refused{Message: "no host of a listed worker application is known; start a worker under one of worker-applications first"}
	case silent >= 0 && now.Before(s.started.Add(gracePeriod)):
		return s.unheard(p.Others[silent].Host)
	case len(p.Silent) > 0 && now.Before(s.started.Add(gracePeriod)):
		return s.unheard(p.Silent[0])
	case len(p.Hosts) == len(p.Silent) && !p.OfSteps():
		return &run.Refused{Message: fmt.Sprintf("none of %s is online; host %s was not heard of for %s; to see since when: %s",
			text.Count(len(p.Silent), "host", "hosts"), p.Silent[0], message.Silence, run.Command("hosts"))}
	}
	return nil
}

// unheard is the error of what depends on whether a host is there, while a
// controller that has just started cannot know that.
func (s *state) unheard(name string) error {
	return fmt.Errorf("%w: it has just started and has not heard of host %s yet; ask again at %s", run.ErrNotReady, name, view.Time(s.started.Add(gracePeriod)).Format(time.RFC3339))
}

// choice is what a retry is of: the hosts that an ended run left, and its environment. Of another
// start it is zero: left is nil for all hosts. step is the first step that failed in the run, release is that
// of the run.
type choice struct {
	environment string
	left        map[string]bool
	step        string
	release     *release.Pin
	// back is what a rollback undoes; nil for any other start. byName is the newest of the runs that a start
	// rolls back by the release to which it goes, also if they have no way back; 0 for none.
	back   *rollbackScope
	byName uint64
}

// choose returns what a start is of.
func (c *Controller) choose(ctx context.Context, request v1.Start) (choice, error) {
	switch {
	case request.IsRollback():
		return c.chooseRollback(ctx, request)
	case request.RetryOf != 0:
		return c.leftOf(ctx, request.RetryOf)
	case mayGoBack(request):
		return c.backByName(ctx, request)
	}
	return choice{}, nil
}

// startsIn returns the environment in which a run is started. A request that names none means that of
// the retried run, or the only one that has hosts to upgrade. again is the command for one of several
// environments, in an error.
func (s *state) startsIn(request v1.Start, chosen choice, again func(v1.Start) string) (*environment, error) {
	name := cmp.Or(request.Environment, chosen.environment)
	switch {
	case name != "":
		return s.declared(name)
	case s.alone():
		return s.standard(), nil
	}
	for _, env := range s.inOrder {
		if env.repeated(request) != 0 {
			return env, nil
		}
	}
	return s.onlyWithHosts(request, again)
}

// onlyWithHosts returns the only environment that has hosts which a start chooses; default if none
// has.
func (s *state) onlyWithHosts(request v1.Start, again func(v1.Start) string) (*environment, error) {
	env, only, found := s.standard(), s.only(request, nil), ambiguity{}
	for _, candidate := range s.inOrder {
		hosts := s.fleet(candidate, only)
		hosts = slices.DeleteFunc(hosts, func(h plan.Host) bool { return h.NonMember })
		if len(hosts) == 0 || !s.isDeclared(candidate.name) {
			continue
		}
		env, request.Environment = candidate, nameOf(candidate.name)
		choice := v1.Choice{Environment: request.Environment, Command: again(request)}
		if current := env.ledger.Current(); current != nil {
			choice.Run = current.Key()
		}
		found.add(choice, "%s with %s", choice.Environment, text.Count(len(hosts), "host", "hosts"))
	}
	if len(found.choices) > 1 {
		return nil, found.of("a run is of one environment, and several have hosts to upgrade: %s; say which you mean: %s")
	}
	return env, nil
}

// declared is existing of an environment that runs can be started in: one that was deleted has no
// hosts.
func (s *state) declared(name string) (*environment, error) {
	env, err := s.existing(name)
	if err == nil && !s.isDeclared(env.name) {
		err = s.noEnvironment(name)
	}
	return env, err
}

// only returns the known hosts that a start is of: those that it chooses, and of a retry those
// that were left; nil for all.
func (s *state) only(request v1.Start, left map[string]bool) map[string]bool {
	selector := request.Selector()
	if selector.IsZero() {
		return left
	}
	only := map[string]bool{}
	for _, host := range fitting(s.hosts.sorted(), selector.Matcher(), 0) {
		if left == nil || left[host.Name] {
			only[host.Name] = true
		}
	}
	return only
}

// startsNone says why a start that is not of all hosts is of none.
func (s *state) startsNone(env *environment, request v1.Start, left map[string]bool) string {
	selector := request.Selector()
	switch chosen := fitting(s.hosts.sorted(), selector.Matcher(), 0); {
	case selector.IsZero():
		if moved := s.firstElsewhere(env, left); moved != nil {
			in := nameOf(moved.Environment)
			anew := v1.Start{Environment: in, Hosts: []string{moved.Name}, OverrideWindow: request.OverrideWindow, Duration: request.Duration, Reason: request.Reason}
			return fmt.Sprintf("none of %s that run %d left is in environment %s any more: %s is in environment %s; to start a run of it: %s",
				text.Count(len(left), "host", "hosts"), request.RetryOf, nameOf(env.name), moved.Name, in, startAgain(anew, ""))
		}
		return fmt.Sprintf("none of %s that run %d left is known any more under a listed worker application", text.Count(len(left), "host", "hosts"), request.RetryOf)
	case len(chosen) == 0:
		return s.matchesNone(selector)
	case !slices.ContainsFunc(chosen, func(h *host) bool { return left == nil || left[h.Name] }):
		return fmt.Sprintf("run %d left no host to retry that matches %s", request.RetryOf, selector)
	}
	return fmt.Sprintf("no host that matches %s is known under a listed worker application", selector)
}

// retriesNone says why there is nothing to retry of a run that left no host that is known, and a step that
// failed.
func (e *environment) retriesNone(request v1.Start, chosen choice) string {
	if e.ledger.Reached() != nil {
		return fmt.Sprintf("run %d left no host to retry; the next run of all hosts takes step %s again", request.RetryOf, chosen.step)
	}
	return fmt.Sprintf("run %d left no host to retry, and its step %s is not left any more: a later run has taken it, or has begun with the first stage", request.RetryOf, chosen.step)
}

// firstElsewhere returns the first of the hosts that a run left which is in another environment by
// now; nil if none is.
func (s *state) firstElsewhere(env *environment, left map[string]bool) *host {
	for _, host := range s.hosts.sorted() {
		if left[host.Name] && host.Environment != env.name && !host.Unplaced {
			return host
		}
	}
	return nil
}

// leftOf returns the hosts that an ended run did not upgrade and the step that failed in it, for a run that
// retries them, and their environment.
func (c *Controller) leftOf(ctx context.Context, id uint64) (chosen choice, err error) {
	r, err := c.Find(ctx, id)
	if err != nil {
		return chosen, err
	}
	if !r.Finished() {
		in, err := ask(ctx, c, func(s *state) string { return s.inCommand(s.environment(r.Environment)) })
		return chosen, cmp.Or(err, error(&run.Refused{Run: id, Message: fmt.Sprintf("run %d is in progress; it can be retried once it has ended; to end it: %s", id, run.TypedIn(in, "abort"))}))
	}
	if r.RollbackOf != 0 { // A retry upgrades: it would bring back what the rollback has rolled back.
		return chosen, &run.Refused{Run: id, Message: fmt.Sprintf("run %d is a rollback, and a retry upgrades; to go on with the rollback: %s", id, run.Typed(fmt.Sprintf("rollback %d", r.RollbackOf)))}
	}
	left := map[string]bool{}
	for _, h := range r.Hosts {
		if h.Status != string(run.Upgraded) && !exempt(h) {
			left[h.Hostname] = true
		}
	}
	step := failedStep(r)
	if len(left) == 0 && step == "" {
		return chosen, &run.Refused{Run: id, Message: fmt.Sprintf("run %d left no host to retry", id)}
	}
	return choice{environment: nameOf(r.Environment), left: left, step: step, release: r.Release.Pin()}, nil
}

// failedStep returns the first step that failed in a run; empty if none did. That a step could not be undone
// is no matter of a retry, which goes forwards.
func failedStep(r v1.Run) string {
	for _, s := range r.Stages {
		if s.Step != nil && !s.Step.Undo && s.Phase == run.StageFailed {
			return s.Name
		}
	}
	return ""
}

// exempt reports whether a host was left out by the rollout: it was no member.
func exempt(h v1.RunHost) bool { return h.Stage == "" }
