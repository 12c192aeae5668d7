package message

import (
	"fmt"
	"slices"
	"time"
)

// The facts of a run that the controller writes down.
const (
	// Opened begins a run; its prepare follows.
	Opened = "opened"
	// Recovered tells that silent hosts of the run are none any more.
	Recovered = "recovered"
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

// Event is a fact of a run. The members that count depend on Event.
type Event struct {
	Event string `json:"event"`

	// Of Opened.

	// Trigger is TriggerWindow or TriggerManual.
	Trigger string `json:"trigger,omitempty"`
	// Hosts are the members of the run, in the order in which they go; of
	// Recovered, the hosts that have recovered.
	Hosts []string `json:"hosts,omitempty"`
	// Silent are hosts that belong to the run but were not heard of when it
	// was opened: they are not upgraded (AV-79), and count as out of service
	// until they recover (design.md 5, invariant 1).
	Silent []string `json:"silent,omitempty"`
	// Window is when the window opened whose run this is; nil for a run
	// outside of all windows, and in logs from before it was written down.
	Window *time.Time `json:"window,omitempty"`
	// NotAfter is when the run ends at the latest.
	NotAfter *time.Time `json:"not-after,omitempty"`
	// By and Why are who asked for it, and the reason given (AV-81).
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`

	// Of Finished and Recovered.

	// Result is completed, partial, failed, aborted or timed-out.
	Result string `json:"result,omitempty"`
	// Reason says in words why it ended so; of Recovered it is Heard or Deleted.
	Reason string `json:"reason,omitempty"`
}

// Encode returns the event's JSON body.
func (e Event) Encode() []byte { return encode(e) }

// DecodeEvent reads an event's JSON body.
func DecodeEvent(data []byte) (Event, error) {
	var event Event
	if err := decode(data, &event); err != nil {
		return Event{}, fmt.Errorf("cannot read event: %w", err)
	}
	if err := event.check(); err != nil {
		return Event{}, err
	}
	return event, nil
}

// check tells what an event lacks.
func (e Event) check() error {
	switch {
	case e.Event != Opened && e.Event != Recovered && e.Event != Finished:
		return fmt.Errorf("cannot read event: %q is none of opened, recovered, finished", e.Event)
	case e.Event == Opened && e.NotAfter == nil:
		return fmt.Errorf("cannot read event opened: not-after is missing")
	case e.Event != Finished && len(e.Hosts) == 0:
		return fmt.Errorf("cannot read event %s: hosts is empty", e.Event)
	case e.Event == Recovered && e.Reason != Heard && e.Reason != Deleted:
		return fmt.Errorf("cannot read event recovered: reason %q is none of heard, deleted", e.Reason)
	case e.Event == Finished && e.Result == "":
		return fmt.Errorf("cannot read event finished: result is missing")
	}
	for _, host := range slices.Concat(e.Hosts, e.Silent) {
		if !ValidHost(host) {
			return fmt.Errorf("cannot read event %s: %q is not a host name", e.Event, host)
		}
	}
	return nil
}
