package message

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// The facts of a run that the controller writes down.
const (
	// Opened begins a run; its prepare follows.
	Opened = "opened"
	// Silent tells that members of the run are not heard of any more.
	Silent = "silent"
	// Recovered tells that silent members are none any more.
	Recovered = "recovered"
	// Released tells that somebody freed the slot of a host by force.
	Released = "released"
	// Turn tells that it is a host's turn: it is checked before anything else.
	Turn = "turn"
	// Slot tells that a host takes a slot: it is drained next.
	Slot = "slot"
	// Ran tells how a task came out.
	Ran = "ran"
	// GaveUp tells that hosts are waited for no longer.
	GaveUp = "gave-up"
	// Approved, Paused, Resumed and Aborted are what somebody asked for.
	Approved = "approved"
	Paused   = "paused"
	Resumed  = "resumed"
	Aborted  = "aborted"
	// Frozen tells that a freeze ends the run earlier: NotAfter is when it
	// begins, Until when it ends, Reason its name.
	Frozen = "frozen"
	// Missed tells of a window that has closed without a run: Window and NotAfter
	// are when it was open, Reason why.
	Missed = "missed"
	// Finished ends a run.
	Finished = "finished"
)

// What made a run begin.
const (
	TriggerWindow = "window"
	TriggerManual = "manual"
)

// Why a silent host has recovered, the Reason of Recovered.
const (
	// Heard means that its worker was heard of again.
	Heard = "heard"
	// Deleted means that somebody deleted it, so that nobody waits for it.
	Deleted = "deleted"
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

// Event is a fact of a run. The members that count depend on Event.
type Event struct {
	Event string `json:"event"`

	// Of Opened, but for Hosts.

	// Trigger is TriggerWindow or TriggerManual.
	Trigger string `json:"trigger,omitempty"`
	// Hosts are the members of the run, in the order in which they go; of
	// Silent, Recovered, Released, Turn, Slot and GaveUp those that it tells of.
	Hosts []string `json:"hosts,omitempty"`
	// Silent are the members that were not heard of when it was opened: they
	// count as out of service until they recover (design.md 5, invariant 1).
	Silent []string `json:"silent,omitempty"`
	// Unwell are hosts, members or not, that were out of service when the run
	// before ended and have not been well since: they still are (design.md 5,
	// invariant 1).
	Unwell []Unwell `json:"unwell,omitempty"`
	// Exempt are hosts that are no members, and why.
	Exempt []policy.Exempt `json:"exempt,omitempty"`
	// Policy is how the run goes about its hosts; nil is policy.Default.
	Policy *policy.Resolved `json:"policy,omitempty"`
	// RetryOf is the run whose failed and skipped hosts these are.
	RetryOf uint64 `json:"retry-of,omitempty"`
	// Window is when the window opened whose run this is; nil for a run
	// outside of all windows, and in logs from before it was written down.
	Window *time.Time `json:"window,omitempty"`
	// WindowEnd is when that window closes, as far as was known then; nil as
	// Window, and then NotAfter stands for it.
	WindowEnd *time.Time `json:"window-end,omitempty"`
	// Considered is when the last window opened that had its run or was missed,
	// before this run; nil when none did.
	Considered *time.Time `json:"considered,omitempty"`
	// NotAfter is when the run ends at the latest; of Opened, Frozen and Missed.
	NotAfter *time.Time `json:"not-after,omitempty"`
	// Until is when the freeze ends, of Frozen; nil in logs from before it was
	// written down.
	Until *time.Time `json:"until,omitempty"`

	// By and Why are who asked for it, and the reason given (AV-81).
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`

	// Action is the command whose reply is given up, Task the kind of task; of
	// GaveUp, one of them.
	Action Action   `json:"action,omitempty"`
	Task   TaskKind `json:"task,omitempty"`
	// Outcome is of Ran.
	Outcome *Outcome `json:"outcome,omitempty"`
	// Stage is the name of the stage that is approved.
	Stage string `json:"stage,omitempty"`
	// Result is completed, partial, failed, aborted or timed-out; of Finished.
	Result string `json:"result,omitempty"`
	// Reason says in words why it ended so; of Recovered it is Heard or Deleted.
	Reason string `json:"reason,omitempty"`
}

// Encode returns the event's JSON body.
func (e Event) Encode() []byte { return encode(e) }

// DecodeEvent reads an event's JSON body.
func DecodeEvent(data []byte) (Event, error) {
	var event Event
	if err := json.Unmarshal(data, &event); err != nil {
		return Event{}, fmt.Errorf("cannot read event: %w", err)
	}
	if event.Policy != nil {
		event.Policy.AddParts()
	}
	if err := event.check(); err != nil {
		return Event{}, fmt.Errorf("cannot read event %.40q: %w", event.Event, err)
	}
	return event, nil
}

// eventNames are all that Event.Event may be, and whether it tells of hosts.
var eventNames = map[string]bool{
	Opened: true, Silent: true, Recovered: true, Released: true, Turn: true, Slot: true,
	Ran: false, GaveUp: false, Approved: false, Paused: false, Resumed: false, Aborted: false,
	Frozen: false, Missed: false, Finished: false,
}

// check tells what an event lacks.
func (e Event) check() error {
	ofHosts, known := eventNames[e.Event]
	switch {
	case !known:
		return fmt.Errorf("there is no such event")
	case ofHosts && len(e.Hosts) == 0:
		return fmt.Errorf("hosts is empty")
	case e.Event == Missed && e.Window == nil:
		return fmt.Errorf("window is missing")
	case (e.Event == Opened || e.Event == Frozen || e.Event == Missed) && e.NotAfter == nil:
		return fmt.Errorf("not-after is missing")
	case e.Event == Recovered && e.Reason != Heard && e.Reason != Deleted:
		return fmt.Errorf("reason %q is none of heard, deleted", e.Reason)
	case e.Event == Finished && e.Result == "":
		return fmt.Errorf("result is missing")
	case e.Event == Approved && e.Stage == "":
		return fmt.Errorf("stage is missing")
	case e.Event == Ran && e.Outcome == nil:
		return fmt.Errorf("outcome is missing")
	case e.Event == GaveUp && !e.Action.Known() && !e.Task.Known():
		return fmt.Errorf("neither action %q nor task %q is known", e.Action, e.Task)
	}
	seen := make(map[string]bool, len(e.Hosts))
	for _, host := range e.Hosts {
		switch {
		case !names.ValidHost(host):
			return fmt.Errorf("%q is not a host name", host)
		case seen[host]:
			return fmt.Errorf("%s is named twice", host)
		}
		seen[host] = true
	}
	if e.Policy != nil {
		for _, stage := range e.Policy.Stages {
			for _, host := range stage.Aside {
				if !names.ValidHost(host) || seen[host] {
					return fmt.Errorf("policy: stage %s has %q aside, which is not the name of a host or named before", stage.Name, host)
				}
				seen[host] = true
			}
		}
	}
	for _, host := range e.Silent {
		if !seen[host] {
			return fmt.Errorf("silent names %q, which is none of hosts, nor aside", host)
		}
	}
	if e.Policy != nil {
		if err := e.Policy.Check(len(e.Hosts)); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	}
	return checkUnwell(e.Unwell)
}
