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
	// Finished ends a run.
	Finished = "finished"
)

// What made a run begin.
const (
	TriggerWindow = "window"
	TriggerManual = "manual"
)

// Event is a fact of a run. The members that count depend on Event.
type Event struct {
	Event string `json:"event"`

	// Of Opened.

	// Trigger is TriggerWindow or TriggerManual.
	Trigger string `json:"trigger,omitempty"`
	// Hosts are the members of the run, in the order in which they go.
	Hosts []string `json:"hosts,omitempty"`
	// Silent are hosts that belong to the run but were not heard of when it
	// was opened, so that they are left out of it (AV-79).
	Silent []string `json:"silent,omitempty"`
	// NotAfter is when the run ends at the latest.
	NotAfter *time.Time `json:"not-after,omitempty"`
	// By and Why are who asked for it, and the reason given (AV-81).
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`

	// Of Finished.

	// Result is completed, partial, failed, aborted or timed-out.
	Result string `json:"result,omitempty"`
	// Reason says in words why it ended so.
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
	switch {
	case event.Event == Opened && event.NotAfter == nil:
		return Event{}, fmt.Errorf("cannot read event opened: not-after is missing")
	case event.Event == Opened && len(event.Hosts) == 0:
		return Event{}, fmt.Errorf("cannot read event opened: hosts is empty")
	case event.Event == Finished && event.Result == "":
		return Event{}, fmt.Errorf("cannot read event finished: result is missing")
	case event.Event != Opened && event.Event != Finished:
		return Event{}, fmt.Errorf("cannot read event: %q is none of opened, finished", event.Event)
	}
	for _, host := range slices.Concat(event.Hosts, event.Silent) {
		if !ValidHost(host) {
			return Event{}, fmt.Errorf("cannot read event %s: %q is not a host name", event.Event, host)
		}
	}
	return event, nil
}
