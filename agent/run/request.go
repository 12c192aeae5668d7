package run

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Ask is what somebody asks of the run under way: the last word of the path
// of the request.
type Ask string

// What can be asked.
const (
	// Pause holds the run up, Resume lets it go on.
	Pause  Ask = "pause"
	Resume Ask = "resume"
	// Abort ends the run.
	Abort Ask = "abort"
	// Approve lets a stage begin that waits for it.
	Approve Ask = "approve"
	// Release takes a host from the run by force, and frees its slot.
	Release Ask = "release"
)

// Request is what somebody asks of the run under way.
type Request struct {
	Ask Ask
	// By is who asks, Why the reason given.
	By, Why string
	// Environment names the environment in commands that a refusal tells; empty if there is no other.
	Environment string
	// Stage is of Approve, Host of Release.
	Stage, Host string
	// Now is of Abort: the run does not wait for the hosts under way.
	Now bool
	// ResetFailures is of Resume: the hosts that have failed so far no longer count.
	ResetFailures bool
}

// decide returns the event that a request comes to. The error is *Refused and
// says what stands in the way, until when, and what to do instead.
func (s *State) decide(q Request, now time.Time) (message.Event, error) {
	if err := s.refuses(q, now); err != nil {
		return nil, err
	}
	why := message.CleanText(q.Why)
	switch q.Ask {
	case Pause:
		return message.Paused{By: q.By, Why: why}, nil
	case Resume:
		return message.Resumed{By: q.By, Why: why, KeepsFailures: !q.ResetFailures}, nil
	case Abort:
		return message.Aborted{By: q.By, Why: why, Now: q.Now}, nil
	case Approve:
		return message.Approved{Stage: q.Stage, By: q.By, Why: why}, nil
	case Release:
		return message.Released{Host: q.Host, By: q.By, Why: why}, nil
	}
	return nil, s.refused("a run cannot be asked to %q", q.Ask)
}

func (s *State) refuses(q Request, now time.Time) error {
	switch {
	case q.Ask == Release:
		return s.refusesRelease(q.Host)
	case s.Over():
		return s.refused("no run is in progress: run %d ended at %s as %s; to start one: %s", s.Key(), stamp(s.EndedAt), s.Result, TypedIn(q.Environment, "start --override-window"))
	case s.atOnce:
		return s.refused("run %d is being ended at once, by %s", s.Key(), s.aborted.By)
	case s.aborted != nil && (q.Ask != Abort || !q.Now):
		return s.refused("%s", s.standing(now, q.Environment))
	}
	switch q.Ask {
	case Pause:
		return s.refusesPause(q.Environment)
	case Resume:
		return s.refusesResume(now, q.Environment)
	case Approve:
		return s.refusesApproval(q.Stage)
	case Abort, Release:
	}
	return nil
}

func (s *State) refusesPause(in string) error {
	switch p := s.Paused; {
	case p == nil:
		return nil
	case message.GoesOn(p.By):
		return s.refused("run %d is paused already, by %s since %s; it waits for %s", s.Key(), p.By, stamp(p.At), p.waiting().Detail)
	default:
		return s.refused("run %d is paused already, by %s since %s; to have it proceed: %s", s.Key(), p.By, stamp(p.At), TypedIn(in, "resume"))
	}
}

func (s *State) refusesResume(now time.Time, in string) error {
	switch {
	case s.Paused == nil:
		return s.refused("run %d is not paused%s", s.Key(), s.waits(now))
	case s.Paused.By == message.ByAgent:
		return s.refused("run %d is paused by the agent itself and proceeds after the repair: %s", s.Key(), s.Paused.Why)
	case s.Paused.By == message.ByRollout:
		return s.refused(`run %d is paused by the rollout; to have it proceed, set its member "paused" to false: %s`, s.Key(), editRollout(in))
	}
	return nil
}

// editRollout is the command that edits the rollout of a run. in is Request.Environment: an
// environment may have a rollout of its own.
func editRollout(in string) string {
	edit := Command("edit rollout")
	if in == "" || in == v1.DefaultEnvironment {
		return edit
	}
	return Command("edit environment/"+in) + ", or " + edit
}

func (s *State) refusesApproval(name string) error {
	switch g := s.stages.named(name); {
	case g == nil:
		return s.refused("run %d has no stage %q; %s", s.Key(), name, s.stages.toApprove())
	case !g.Approval:
		return s.refused("stage %s of run %d needs no approval; %s", name, s.Key(), s.stages.toApprove())
	case !g.approvedAt.IsZero():
		return s.refused("stage %s of run %d is approved already, since %s; %s", name, s.Key(), stamp(g.approvedAt), s.stages.toApprove())
	}
	return nil
}

// toApprove says which stages can be approved.
func (s *stages) toApprove() string {
	var names []string
	for n := range s.list {
		if !s.list[n].approved() {
			names = append(names, s.list[n].Name)
		}
	}
	if len(names) == 0 {
		return "no stage has to be approved"
	}
	return "to be approved: " + list(names)
}

// refusesRelease refuses to release a host that holds no slot and has come to its end in the
// run. Any other can be released whatever it does, because it may never answer.
func (s *State) refusesRelease(host string) error {
	i, known := s.roster.Index(host)
	switch {
	case s.Over() && (!known || !s.roster.CountsAsOut(i)):
		return s.refused("host %s holds no slot since run %d, and no run is in progress; there is nothing to release", host, s.Key())
	case !known:
		return s.refused("host %s is not in run %d and holds no slot; to see the hosts: %s", host, s.Key(), Command("hosts"))
	case s.roster.CountsAsOut(i), s.isMember(i) && s.members[i].final == "":
		return nil
	case s.isMember(i):
		return s.refused("host %s holds no slot in run %d: it is %s; there is nothing to release", host, s.Key(), s.members[i].status())
	}
	return s.refused("host %s holds no slot in run %d; there is nothing to release", host, s.Key())
}

// RefuseStart refuses to start a run while this one is under way. in is Request.Environment.
func (s *State) RefuseStart(now time.Time, in string) error {
	return s.refused("%s", s.standing(now, in))
}

func (s *State) refused(format string, args ...any) error {
	return &Refused{Message: fmt.Sprintf(format, args...), Run: s.Key()}
}

// standing says how a run under way stands, until when, and what to type to have it
// otherwise. in is Request.Environment.
func (s *State) standing(now time.Time, in string) string {
	until := stamp(s.EndsBy())
	switch {
	case s.aborted != nil:
		return fmt.Sprintf("run %d is aborting until %s at the latest%s; to end it now: %s", s.Key(), until, s.working(), TypedIn(in, "abort --now"))
	case s.overAt(now):
		return fmt.Sprintf("run %d sends no command since %s and ends by %s at the latest%s; to end it now: %s", s.Key(), stamp(s.NotAfter), until, s.working(), TypedIn(in, "abort --now"))
	case s.Paused != nil && message.GoesOn(s.Paused.By):
		return fmt.Sprintf("run %d is in progress until %s at the latest, and waits for %s; to end it: %s", s.Key(), until, s.Paused.waiting().Detail, TypedIn(in, "abort"))
	case s.Paused != nil:
		return fmt.Sprintf("run %d is paused by %s, until %s at the latest; to have it proceed: %s; to end it: %s", s.Key(), s.Paused.By, until, TypedIn(in, "resume"), TypedIn(in, "abort"))
	case s.blocker(now) == approval:
		name := s.stages.current().Name
		return fmt.Sprintf("run %d waits for the approval of stage %s, until %s at the latest; to approve it: %s; to end the run: %s",
			s.Key(), name, stamp(s.stages.approvalEnds(s.NotAfter)), TypedIn(in, "approve "+name), TypedIn(in, "abort"))
	}
	return fmt.Sprintf("run %d is in progress until %s at the latest%s; to end it: %s", s.Key(), until, s.waits(now), TypedIn(in, "abort"))
}

// waits says what the run waits for; empty when it waits for nothing.
func (s *State) waits(now time.Time) string {
	if w, some := s.Waiting(now); some {
		return ", and waits for " + w.Detail
	}
	return ""
}

// working names the hosts, or the step, that a run which is ending waits for.
func (s *State) working() string {
	var names []string
	if t, underWay := s.stepTask(); underWay {
		names = append(names, "step "+t.Stage+" is in progress")
	}
	for i := range s.members {
		if m := &s.members[i]; m.underWay() {
			does := string(m.status())
			if m.phase == undraining {
				does = "being undrained"
			}
			names = append(names, m.Name+" is "+does)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + list(names) + ")"
}

// Command is a command as an operator types it.
func Command(words string) string { return "osupgrade-agent " + words }

// Typed is a command that needs a reason, as an operator types it.
func Typed(words string) string { return Command(words) + " --reason …" }

// In is the words of a command that names an environment; an empty one is not named, because there
// is no other.
func In(environment, words string) string {
	if environment == "" {
		return words
	}
	return words + " --environment " + environment
}

// TypedIn is Typed of a command that names an environment, as In does.
func TypedIn(environment, words string) string { return Typed(In(environment, words)) }

// IsAborting reports whether somebody aborted the run, which waits for the
// hosts under way.
func (s *State) IsAborting() bool { return s.aborted != nil && !s.Over() }

// AwaitsNobody reports whether somebody aborted the run and no host is under way any
// more, so that it ends with the next record.
func (s *State) AwaitsNobody() bool {
	return s.IsAborting() && (s.atOnce || s.counts.underWay == 0)
}

// Errors about runs on which somebody decides.
var (
	// ErrNotReady means that the controller is starting or stopping, or does
	// not trust its log; try again later.
	ErrNotReady = errors.New("the controller is not ready")
	// ErrNotConfigured means that the tenant has no os-upgrade configuration.
	ErrNotConfigured = errors.New("there is no os-upgrade configuration; to write one: " + Command("edit config"))
	// ErrNoHealth means that no request for the health of that id is known, or known any more.
	ErrNoHealth = errors.New("there is no such request for the health")
	// ErrNoRun means that there is no run of that id.
	ErrNoRun = errors.New("there is no such run")
	// ErrNoPlan means that no plan of a host is kept.
	ErrNoPlan = errors.New("there is no plan of this host")
	// ErrNoHost means that no host of that name is known.
	ErrNoHost = errors.New("there is no such host")
)

// Refused means that a request cannot be met as things stand.
type Refused struct {
	Message string
	// Run is the run that stands in the way, or 0. Frozen tells that it freezes changes.
	Run    uint64
	Frozen bool
}

// Error implements error.
func (r *Refused) Error() string { return r.Message }

// Ambiguous means that a request names no environment and may mean several.
type Ambiguous struct {
	Message string
	Choices []v1.Choice
}

// Error implements error.
func (a *Ambiguous) Error() string { return a.Message }

// maxEnvironments is how many environments an error names.
const maxEnvironments = 20

// NoEnvironment means that there is no environment of a name.
type NoEnvironment struct {
	Name string
	// Known are the names of those that there are.
	Known []string
}

// Error implements error.
func (n *NoEnvironment) Error() string {
	return fmt.Sprintf("there is no environment %s; there are: %s", n.Name, text.List(n.Known, maxEnvironments))
}

// Failure is that a request of several runs could not be carried out in one environment.
type Failure struct {
	Environment string
	Err         error
}

// Partly means that a request of several runs could not be carried out in some environments. Done
// are the runs of the others.
type Partly struct {
	Done   []v1.Run
	Failed []Failure
}

// Error implements error.
func (p *Partly) Error() string {
	var failed, done []string
	for _, f := range p.Failed {
		failed = append(failed, fmt.Sprintf("environment %s: %v", f.Environment, f.Err))
	}
	for _, r := range p.Done {
		done = append(done, cmp.Or(r.Environment, v1.DefaultEnvironment))
	}
	if len(done) == 0 {
		return text.List(failed, maxEnvironments)
	}
	return fmt.Sprintf("%s; it succeeded in: %s", text.List(failed, maxEnvironments), text.List(done, maxEnvironments))
}

// Unwrap lets errors.Is and errors.As see why it failed.
func (p *Partly) Unwrap() (all []error) {
	for _, f := range p.Failed {
		all = append(all, f.Err)
	}
	return all
}
