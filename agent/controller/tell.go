package controller

import (
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// maxEvents bounds the story of one run: of what comes after it only that is
// told which matters most.
const maxEvents = 20_000

// maxAsks bounds the events beyond that which somebody asked for, or which tell
// how the run went on and ended.
const maxAsks = 1000

// tell adds a record to the story of the newest run.
func (s *state) tell(r message.Record) {
	if len(s.events) >= maxEvents+maxAsks {
		return
	}
	if e, some := story(r); some && (len(s.events) < maxEvents || matters(e)) {
		s.events = append(s.events, e)
	}
}

// matters reports whether an event is told in however long a story.
func matters(e v1.RunEvent) bool {
	return e.By != "" || e.Event == message.Frozen || e.Event == message.Finished
}

// story says in words what a record tells; false for one that says nothing to
// people.
func story(r message.Record) (v1.RunEvent, bool) {
	e := v1.RunEvent{At: stamp(r.Time), Host: r.Host}
	switch r.Kind {
	case message.CommandAll:
		e.Event = string(message.Prepare)
	case message.CommandHost:
		command, err := message.DecodeCommand(r.Body)
		if err != nil {
			return e, false
		}
		e.Event, e.Host = string(command.Action), command.Host
	case message.ReplyRecord:
		reply, err := message.DecodeReply(r.Body)
		e.Event = "answered " + string(r.Action)
		if e.Text = reply.Result; err != nil {
			e.Text = err.Error()
		}
	case message.EventRecord:
		event, err := message.DecodeEvent(r.Body)
		return tellEvent(e, event), err == nil
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
