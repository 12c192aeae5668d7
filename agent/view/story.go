package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

const (
	// maxEvents bounds the story of one run: of what comes after it only that is
	// told which matters most.
	maxEvents = 20_000
	// maxAsks bounds the events beyond that which somebody asked for, or which
	// tell how the run went on and ended.
	maxAsks = 1000
)

// Story is what has happened in a run, in words.
type Story struct{ events []v1.RunEvent }

// Events returns the story so far. The caller owns the slice.
func (s *Story) Events() []v1.RunEvent { return slices.Clone(s.events) }

// Add tells what a record of the log says, if it says anything to people.
func (s *Story) Add(r message.Decoded) {
	if len(s.events) >= maxEvents+maxAsks {
		return
	}
	if e, some := tell(r); some && (len(s.events) < maxEvents || matters(e)) {
		s.events = append(s.events, e)
	}
}

// matters reports whether an event is told in however long a story.
func matters(e v1.RunEvent) bool {
	return e.By != "" || e.Event == message.Frozen || e.Event == message.Finished
}

// tell says in words what a record tells; false for one that says nothing to
// people.
func tell(r message.Decoded) (v1.RunEvent, bool) {
	e := v1.RunEvent{At: Time(r.Time), Host: r.Host}
	switch {
	case r.Kind == message.CommandAll:
		e.Event = string(message.Prepare)
	case r.Command != nil:
		e.Event, e.Host = string(r.Command.Action), r.Command.Host
	case r.Reply != nil:
		e.Event, e.Text = "answered "+string(r.Action), r.Reply.Result
	case r.Kind == message.ReplyRecord:
		e.Event, e.Text = "answered "+string(r.Action), r.Err.Error()
	case r.Event != nil:
		e = tellEvent(e, *r.Event)
	default:
		return e, false
	}
	return e, true
}

func tellEvent(e v1.RunEvent, event message.Event) v1.RunEvent {
	e.Event, e.By = event.Event, event.By
	var texts []string
	switch event.Event {
	case message.Opened:
		texts = append(texts, event.Trigger)
	case message.Ran:
		e.Host, e.Event = event.Outcome.Host, event.Event+" "+string(event.Outcome.Kind)
		texts = append(texts, outcomeText(*event.Outcome))
	case message.GaveUp:
		texts = append(texts, string(event.Action)+string(event.Task))
	case message.Approved:
		texts = append(texts, event.Stage)
	case message.Finished:
		texts = append(texts, event.Result)
	}
	if event.Event != message.Opened && len(event.Hosts) > 0 {
		if e.Host = event.Hosts[0]; len(event.Hosts) > 1 {
			e.Host = ""
			texts = append(texts, listed(event.Hosts))
		}
	}
	for _, more := range []string{event.Reason, event.Why} {
		if more != "" {
			texts = append(texts, more)
		}
	}
	e.Text = strings.Join(texts, ": ")
	return e
}

func outcomeText(o message.Outcome) string {
	word := "ok"
	if !o.OK {
		word = "failed"
	}
	if o.Text == "" {
		return word
	}
	return word + " (" + o.Text + ")"
}

// maxListed bounds how many hosts a text names.
const maxListed = 10

func listed(hosts []string) string {
	if len(hosts) <= maxListed {
		return strings.Join(hosts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(hosts[:maxListed], ", "), len(hosts)-maxListed)
}
