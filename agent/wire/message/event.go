package message

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Event is a fact that the controller writes on the log: one of the types below.
type Event interface {
	// name is what the event is called on the log.
	name() string
}

// What made a run begin.
const (
	TriggerWindow = "window"
	TriggerManual = "manual"
)

// Who paused or resumed a run when nobody did.
const (
	// ByRollout is the rollout's member "paused".
	ByRollout = "rollout"
	// ByAgent is the agent, while it cannot read the configuration, a calendar or
	// the rollout. Nobody gives a token such a name.
	ByAgent = "the agent itself"
)

// GoesOn reports whether a run that somebody has paused goes on by itself once
// they let it.
func GoesOn(by string) bool { return by == ByRollout || by == ByAgent }

// Opened begins a run; its prepare follows.
type Opened struct {
	// Environment is the environment of the run; empty for the default one.
	Environment string `json:"environment,omitempty"`
	// Trigger is TriggerWindow or TriggerManual.
	Trigger string `json:"trigger"`
	// Members are the hosts that the run upgrades, in the order in which they go. A run of steps has
	// none.
	Members []string `json:"members"`
	// Roster are the hosts, members or not, that are out of service now, and the
	// hosts that are no members and count in a stage.
	Roster []Entry `json:"roster,omitempty"`
	// RosterAsOf is the last record that Roster takes into account: hosts may have replied
	// after it. 0 means that it takes all records before this one into account.
	RosterAsOf uint64 `json:"roster-as-of,omitempty"`
	// Exempt are the hosts that the rollout leaves out, and why.
	Exempt []rollout.Exempt `json:"exempt,omitempty"`
	// Budgets identifies the disruption budgets of the tenant; empty when there are none. Cells
	// are what they count together, with those hosts that are members or in the roster. If the
	// budgets are not those of the record before, they also have the hosts in the rosters of all
	// other environments.
	Budgets string `json:"budgets,omitempty"`
	Cells   []Cell `json:"cells,omitempty"`
	// Rollout is how the run goes about its hosts.
	Rollout rollout.Resolved `json:"policy"`
	// Release is what the run installs; nil for a run without a release, whose hosts install the
	// newest that they find.
	Release *release.Pin `json:"release,omitempty"`
	// RetryOf is the run that this one retries: the hosts that it did not upgrade, and the steps that failed.
	RetryOf uint64 `json:"retry-of,omitempty"`
	// RollbackOf is the newest run that this one rolls back, RollbackSince the oldest if there are
	// several. Each host goes back to what it had before them, so the run has no release.
	RollbackOf    uint64 `json:"rollback-of,omitempty"`
	RollbackSince uint64 `json:"rollback-since,omitempty"`
	// Outputs are those of the steps that the runs which are rolled back have done, in this order.
	Outputs []StepOutputs `json:"outputs,omitempty"`
	// RequestID is the id that whoever asked for the run gave to the request.
	RequestID string `json:"request-id,omitempty"`
	// Traceparent is the span of that request (W3C Trace Context), so that the run is a
	// part of its trace also after a restart of the site; empty when nobody traces it. One
	// that is damaged is ignored (trace.Parse).
	Traceparent string `json:"traceparent,omitempty"`
	// Window is when the window opened whose run this is, WindowEnd when that
	// closes, as far as is known; zero for a run outside of all windows.
	Window    time.Time `json:"window,omitzero"`
	WindowEnd time.Time `json:"window-end,omitzero"`
	// WindowUsed tells that an earlier run has used up the window; see run.UsesWindow.
	WindowUsed bool `json:"window-used,omitempty"`
	// Considered is when the last window opened that had its run or was missed,
	// before this run; zero when none did.
	Considered time.Time `json:"considered,omitzero"`
	// Chosen tells that somebody has chosen some hosts of the environment for the run. It is
	// written only if there are several environments, or it decides to where the next run goes on or
	// which release the environment goes to.
	Chosen bool `json:"chosen,omitempty"`
	// Follows are the runs of other environments that the run follows. A run that follows none
	// repeats those of the run before it, so that they are still known when that is trimmed.
	Follows []Follow `json:"follows,omitempty"`
	// OverrideAfter is why somebody started the run before the environments that this one comes
	// after had completed theirs; empty when they had.
	OverrideAfter string `json:"override-after,omitempty"`
	// Completed are the runs of this environment that others may follow, oldest first; absent if
	// none comes after it.
	Completed []Completion `json:"completed,omitempty"`
	// Until is the stage after which the run ends; empty if it goes on to the last one. It has no
	// stage after that.
	Until string `json:"until,omitempty"`
	// Reached is what earlier runs have done of the same rollout; nil if the next run does not go
	// on where this one ends. It has no stage that they have done.
	Reached *Reached `json:"reached,omitempty"`
	// Promotion is how far the environment has come to a release by the runs before; nil if none has
	// gone to one.
	Promotion *Promotion `json:"promotion,omitempty"`
	// NotAfter is when the run ends at the latest.
	NotAfter time.Time `json:"not-after"`
	// By and Why are who asked for the run, and the reason given.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Silent tells that hosts have not been heard of for a while.
type Silent struct {
	Hosts []string `json:"hosts"`
	// Cells are the cells of those hosts that are not in the roster of the run, and only share
	// a cell with hosts that are.
	Cells []Cell `json:"cells,omitempty"`
}

// Recovered tells that silent hosts have been heard of again.
type Recovered struct {
	Hosts []string `json:"hosts"`
}

// Busy tells that the run passes a host over, because a program on it says "not now".
type Busy struct {
	Host string `json:"host"`
	NotNow
}

// Idle tells that a host which was busy is so no more.
type Idle struct {
	Host string `json:"host"`
}

// Deleted tells that somebody deleted hosts, so that nobody waits for them.
type Deleted struct {
	Hosts []string `json:"hosts"`
	By    string   `json:"by,omitempty"`
	Why   string   `json:"why,omitempty"`
}

// Released tells that somebody took a host from the run by force, and freed its slot.
type Released struct {
	Host string `json:"host"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Admitted tells that a host may go: it is checked before anything else.
type Admitted struct {
	Host string `json:"host"`
}

// Slot tells that a host takes a slot: it is drained next.
type Slot struct {
	Host string `json:"host"`
}

// Begun tells that the step of a stage begins.
type Begun struct {
	Stage string `json:"stage"`
	// Host is the host on which it is done; empty at the site.
	Host string `json:"host,omitempty"`
}

// Ran tells how a task came out.
type Ran struct {
	Outcome Outcome `json:"outcome"`
}

// Overdue tells that hosts have taken longer for a command or a task than its
// limit: nobody waits for them any longer.
type Overdue struct {
	Hosts []string `json:"hosts"`
	Awaited
}

// Late tells that the run begins without the hosts that have yet to answer prepare: each
// joins its stage as soon as it is prepared.
type Late struct {
	Hosts []string `json:"hosts"`
}

// Unprepared tells that a stage no longer waits for a host that is late.
type Unprepared struct {
	Host string `json:"host"`
	// Doing is what the host has told last of its prepare; empty when it has told nothing.
	Doing string `json:"doing,omitempty"`
}

// Cancelled tells that hosts are not waited for, or not sent what they were to
// be sent, because the run ends.
type Cancelled struct {
	Hosts []string `json:"hosts"`
	Awaited
	// AtOnce tells that the run ends at once: the hosts are left as they are, and
	// those that are drained stay so.
	AtOnce bool `json:"at-once,omitempty"`
}

// Awaited is what a host is waited for: the answer to a command, or the outcome
// of a task.
type Awaited struct {
	Action Action   `json:"action,omitempty"`
	Task   TaskKind `json:"task,omitempty"`
}

// Approved tells that somebody approved a stage.
type Approved struct {
	Stage string `json:"stage"`
	By    string `json:"by,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Paused tells that somebody holds the run up.
type Paused struct {
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Resumed tells that somebody lets the run go on.
type Resumed struct {
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// KeepsFailures tells that the hosts that have failed go on to count against max-failures,
	// also if a person resumes the run. Versions that did not write this forgot them.
	KeepsFailures bool `json:"keeps-failures,omitempty"`
}

// Aborted tells that somebody ends the run. Without Now it waits for the hosts under
// way.
type Aborted struct {
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	Now bool   `json:"now,omitempty"`
}

// Frozen tells that a freeze ends the run earlier: NotAfter is when the freeze
// begins, Until when it ends.
type Frozen struct {
	Freeze   string    `json:"freeze"`
	NotAfter time.Time `json:"not-after"`
	Until    time.Time `json:"until"`
}

// Missed tells of a window that has closed without a run, and why.
type Missed struct {
	// Environment is the environment of the window; empty for the default one.
	Environment string    `json:"environment,omitempty"`
	Window      time.Time `json:"window"`
	WindowEnd   time.Time `json:"window-end"`
	Reason      string    `json:"reason,omitempty"`
	// Release is the release of the environment, as release.Ref.String has it, if the window needed no
	// run because all hosts had that. It was not missed then.
	Release string `json:"release,omitempty"`
}

// UpToDate reports whether the window needed no run.
func (m Missed) UpToDate() bool { return m.Release != "" }

// Skipped tells that a person had the log go on beyond its end, because hosts may know
// records that it has lost. It belongs to no run: so many of them follow one another
// that no sequence is given out twice.
type Skipped struct {
	// To is the first sequence after them.
	To uint64 `json:"to"`
}

// Carried keeps what is known of an environment whose last run was long ago, so that the
// records of that run can be trimmed. It belongs to no run.
type Carried struct {
	// Environment is empty for the default one.
	Environment string `json:"environment,omitempty"`
	// Run is the last run of the environment: what still happens to its hosts bears this
	// number.
	Run uint64 `json:"run"`
	// Considered is when the last window opened that had its run or was missed; zero when
	// none did.
	Considered time.Time `json:"considered,omitzero"`
	// Follows and Completed are those of the environment (Opened).
	Follows   []Follow     `json:"follows,omitempty"`
	Completed []Completion `json:"completed,omitempty"`
	// Reached and Promotion are those of the environment (Opened).
	Reached   *Reached   `json:"reached,omitempty"`
	Promotion *Promotion `json:"promotion,omitempty"`
	// Roster are the hosts that are out of service, or were released and may still be at
	// work.
	Roster []Entry `json:"roster,omitempty"`
	// Budgets identifies the disruption budgets of the tenant; empty when there are none. Cells
	// are those of the hosts in the roster.
	Budgets string `json:"budgets,omitempty"`
	Cells   []Cell `json:"cells,omitempty"`
}

// Finished ends a run.
type Finished struct {
	// Result is completed, partial, failed, aborted or timed-out.
	Result string `json:"result"`
	Reason string `json:"reason,omitempty"`
}

func (Opened) name() string     { return "opened" }
func (Silent) name() string     { return "silent" }
func (Recovered) name() string  { return "recovered" }
func (Busy) name() string       { return "busy" }
func (Idle) name() string       { return "idle" }
func (Deleted) name() string    { return "deleted" }
func (Released) name() string   { return "released" }
func (Admitted) name() string   { return "admitted" }
func (Slot) name() string       { return "slot" }
func (Begun) name() string      { return "begun" }
func (Ran) name() string        { return "ran" }
func (Overdue) name() string    { return "overdue" }
func (Late) name() string       { return "late" }
func (Unprepared) name() string { return "unprepared" }
func (Differing) name() string  { return "differing" }
func (Cancelled) name() string  { return "cancelled" }
func (Approved) name() string   { return "approved" }
func (Paused) name() string     { return "paused" }
func (Resumed) name() string    { return "resumed" }
func (Aborted) name() string    { return "aborted" }
func (Frozen) name() string     { return "frozen" }
func (Budgeted) name() string   { return "budgeted" }
func (Missed) name() string     { return "missed" }
func (Skipped) name() string    { return "skipped" }
func (Carried) name() string    { return "carried" }
func (Finished) name() string   { return "finished" }

// readers read the members of each event, by its name.
var readers = map[string]func([]byte) (Event, error){
	"opened": read[Opened], "silent": read[Silent], "recovered": read[Recovered], "busy": read[Busy], "idle": read[Idle], "deleted": read[Deleted], "released": read[Released],
	"admitted": read[Admitted], "slot": read[Slot], "begun": read[Begun], "ran": read[Ran], "overdue": read[Overdue], "late": read[Late], "unprepared": read[Unprepared], "differing": read[Differing], "cancelled": read[Cancelled],
	"approved": read[Approved], "paused": read[Paused], "resumed": read[Resumed], "aborted": read[Aborted],
	"frozen": read[Frozen], "budgeted": read[Budgeted], "missed": read[Missed], "skipped": read[Skipped], "carried": read[Carried], "finished": read[Finished],
	"locked": read[Locked], "unlocked": read[Unlocked],
}

// Name is what an event is called on the log.
func Name(e Event) string { return e.name() }

// OfNoRun reports whether an event belongs to no run.
func OfNoRun(e Event) bool {
	switch e.(type) {
	case Missed, Skipped, Carried, Budgeted, Locked, Unlocked:
		return true
	}
	return false
}

// Hosts are the hosts that an event is about; none of one that is about the
// whole run.
func Hosts(e Event) []string {
	switch e := e.(type) {
	case Silent:
		return e.Hosts
	case Recovered:
		return e.Hosts
	case Deleted:
		return e.Hosts
	case Overdue:
		return e.Hosts
	case Late:
		return e.Hosts
	case Unprepared:
		return []string{e.Host}
	case Differing:
		var hosts []string
		for _, r := range e.Refused {
			hosts = append(hosts, r.Hosts...)
		}
		return hosts
	case Cancelled:
		return e.Hosts
	case Busy:
		return []string{e.Host}
	case Idle:
		return []string{e.Host}
	case Released:
		return []string{e.Host}
	case Admitted:
		return []string{e.Host}
	case Slot:
		return []string{e.Host}
	case Locked:
		return []string{e.Host}
	case Unlocked:
		return []string{e.Host}
	case Ran:
		if e.Outcome.Host != "" {
			return []string{e.Outcome.Host}
		}
	}
	return nil
}

// The JSON of an event begins with its name, so that it is read once.
const nameFirst = `{"event":"`

// EncodeEvent returns the JSON body of an event.
func EncodeEvent(e Event) []byte {
	members := encode(e)
	body := make([]byte, 0, len(nameFirst)+len(members)+len(e.name())+2)
	body = append(append(append(body, nameFirst...), e.name()...), `",`...)
	if len(members) == len("{}") {
		body = body[:len(body)-1]
	}
	return append(body, members[1:]...)
}

// DecodeEvent reads the JSON body of an event.
func DecodeEvent(body []byte) (Event, error) {
	rest, found := bytes.CutPrefix(body, []byte(nameFirst))
	name, rest, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended {
		return nil, fmt.Errorf("cannot read event: it does not begin with %s", nameFirst)
	}
	reader := readers[string(name)]
	if reader == nil {
		return nil, fmt.Errorf("cannot read event %.40q: there is no such event", name)
	}
	members := append([]byte("{"), bytes.TrimPrefix(rest, []byte(","))...)
	event, err := reader(members)
	if err != nil {
		return nil, fmt.Errorf("cannot read event %q: %w", name, err)
	}
	return event, nil
}

func read[E Event](members []byte) (Event, error) {
	var e E
	if err := json.Unmarshal(members, &e); err != nil {
		return nil, err
	}
	if o, opened := any(&e).(*Opened); opened {
		o.Rollout.AddMissing()
	}
	return e, check(e)
}

// check tells what an event lacks.
func check(e Event) error {
	switch e := e.(type) {
	case Opened:
		return e.check()
	case Ran:
		return cmp.Or(present("outcome", e.Outcome.Key() != Key{}), e.Outcome.Outputs.checkSealed())
	case Begun:
		if e.Host != "" && !names.ValidHost(e.Host) {
			return fmt.Errorf("%q is not a host name", e.Host)
		}
		return present("stage", e.Stage != "")
	case Overdue:
		return checkAwaited(e.Hosts, e.Awaited)
	case Cancelled:
		return checkAwaited(e.Hosts, e.Awaited)
	case Busy:
		return cmp.Or(checkHosts(Hosts(e)), present("reason", e.Reason != ""), present("until", !e.Until.IsZero()))
	case Silent:
		return cmp.Or(checkHosts(e.Hosts), e.checkCells())
	case Budgeted:
		return checkCells(e.Cells, nil)
	case Recovered, Late, Unprepared, Idle, Deleted, Released, Admitted, Slot, Unlocked:
		return checkHosts(Hosts(e))
	case Locked:
		return e.check()
	case Differing:
		return e.check()
	case Approved:
		return present("stage", e.Stage != "")
	case Frozen:
		return cmp.Or(present("not-after", !e.NotAfter.IsZero()), present("until", !e.Until.IsZero()))
	case Missed:
		return cmp.Or(checkEnvironment(e.Environment), present("window", !e.Window.IsZero()), present("window-end", !e.WindowEnd.IsZero()))
	case Skipped:
		return present("to", e.To != 0)
	case Carried:
		return e.check()
	case Finished:
		return present("result", e.Result != "")
	}
	return nil
}

func present(member string, there bool) error {
	if there {
		return nil
	}
	return fmt.Errorf("%s is missing", member)
}

func checkAwaited(hosts []string, a Awaited) error {
	if !a.Action.Known() && !a.Task.Known() {
		return fmt.Errorf("neither action %q nor task %q is known", a.Action, a.Task)
	}
	return checkHosts(hosts)
}

// checkHosts tells what is wrong with a list of hosts, of which there is at least
// one.
func checkHosts(hosts []string) error {
	if len(hosts) == 0 {
		return errors.New("hosts is empty")
	}
	seen := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		switch {
		case !names.ValidHost(host):
			return fmt.Errorf("%q is not a host name", host)
		case seen[host]:
			return fmt.Errorf("%s is named twice", host)
		}
		seen[host] = true
	}
	return nil
}

func (e Opened) check() error {
	if err := checkEnvironment(e.Environment); err != nil {
		return err
	}
	if err := checkHosts(e.Members); err != nil && !e.ofSteps() {
		return fmt.Errorf("members: %w", err)
	}
	if err := cmp.Or(present("not-after", !e.NotAfter.IsZero()), checkOrder(e.Environment, e.Follows, e.Completed), e.checkReached(), checkPromotion(e.Promotion)); err != nil {
		return err
	}
	if err := e.Rollout.Check(len(e.Members)); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if err := e.checkStart(); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if err := e.checkRoster(); err != nil {
		return fmt.Errorf("roster: %w", err)
	}
	if err := e.checkRelease(); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	if err := e.checkRollback(); err != nil {
		return err
	}
	return checkCells(e.Cells, nil)
}

// checkRelease returns an error for a release without its text, or with another one than its digest
// says.
func (e Opened) checkRelease() error {
	if e.Release == nil {
		return nil
	}
	return cmp.Or(present("text", len(e.Release.Text) > 0), e.Release.Check())
}

// ofSteps reports whether the run has steps and no hosts.
func (e Opened) ofSteps() bool { return len(e.Members) == 0 && len(e.Rollout.Stages) > 0 }

// checkStart returns an error for checks before a run that ask a host which is no member.
func (e Opened) checkStart() error {
	if len(e.Rollout.Start) == 0 {
		return nil
	}
	members := make(map[string]bool, len(e.Members))
	for _, host := range e.Members {
		members[host] = true
	}
	for n, g := range e.Rollout.Start {
		for _, host := range g.Hosts {
			if !members[host] {
				return fmt.Errorf("start[%d].hosts: %s is no member", n, host)
			}
		}
	}
	return nil
}
