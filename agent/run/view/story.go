package view

import (
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
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
	return e.By != "" || e.Event == message.Name(message.Frozen{}) || e.Event == message.Name(message.Finished{})
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
		e.Event, e.Text = "answered "+string(r.Action), r.Reply.Result.String()
		if r.Reply.Result.Class != "" {
			e.Text += " (class " + string(r.Reply.Result.Class) + ")"
		}
		if r.Reply.Result.UpToDate {
			e.Text += " (it was up to date)"
		}
	case r.Kind == message.ReplyRecord:
		e.Event, e.Text = "answered "+string(r.Action), r.Err.Error()
	case r.Event != nil:
		e = tellEvent(e, r.Event)
	default:
		return e, false
	}
	return e, true
}

func tellEvent(e v1.RunEvent, event message.Event) v1.RunEvent {
	e.Event = message.Name(event)
	var texts []string
	switch event := event.(type) {
	case message.Opened:
		e.By, texts = event.By, []string{event.Trigger, event.Why}
		if event.Release != nil {
			texts = append(texts, "to release "+event.Release.Name)
		}
		if event.Until != "" {
			texts = append(texts, "until stage "+event.Until)
		}
		if back := event.RollsBack(); !back.IsZero() {
			texts = append(texts, "rollback of "+back.Runs())
		}
	case message.Begun:
		e.Host, texts = event.Host, []string{event.Stage}
	case message.Ran:
		e.Event += " " + string(event.Outcome.Kind)
		texts = []string{event.Outcome.Stage, outcomeText(event.Outcome)}
	case message.Overdue:
		texts = []string{string(event.Action) + string(event.Task), "the run waits no longer"}
	case message.Late:
		texts = []string{"the run begins without them"}
		if len(event.Hosts) == 1 {
			texts = []string{"the run begins without it"}
		}
	case message.Differing:
		texts = []string{strings.Join(event.Texts(), "; ")}
		for _, r := range event.Refused {
			texts = append(texts, r.Why)
		}
	case message.Unprepared:
		texts = []string{"its stage waits no longer", event.Doing}
	case message.Cancelled:
		texts = []string{string(event.Action) + string(event.Task), "the run ends"}
		if event.AtOnce {
			texts[1] += " at once"
		}
	case message.Approved:
		e.By, texts = event.By, []string{event.Stage, event.Why}
	case message.Released:
		e.By, texts = event.By, []string{event.Why}
	case message.Paused:
		e.By, texts = event.By, []string{event.Why}
	case message.Resumed:
		e.By, texts = event.By, []string{event.Why}
	case message.Aborted:
		e.By, texts = event.By, []string{event.Why}
		if event.Now {
			texts = []string{"at once", event.Why}
		}
	case message.Busy:
		texts = []string{event.String()}
	case message.Deleted:
		e.By, texts = event.By, []string{event.Why}
	case message.Frozen:
		texts = []string{event.Freeze}
	case message.Finished:
		texts = []string{event.Result, event.Reason}
	}
	switch hosts := message.Hosts(event); len(hosts) {
	case 0:
	case 1:
		e.Host = hosts[0]
	default:
		texts = append(texts, text.List(hosts, maxListed))
	}
	e.Text = strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ": ")
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
