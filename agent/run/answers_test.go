package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func taskText(task message.Task, from time.Time) string {
	text := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", task.Kind, task.Stage, task.Host)), " ") + fmt.Sprintf(" (%d)", task.Attempt)
	if !from.IsZero() {
		text += " from " + from.Sub(epoch).String()
	}
	return text
}

// answer prints how something stands.
func (p *player) answer(question string) {
	run := p.in().Newest()
	switch question {
	case "hosts":
		for _, h := range run.Hosts() {
			fmt.Fprintf(&p.out, "= %s\n", hostText(h))
		}
	case "stages":
		for _, s := range run.Stages(p.now) {
			if s.Step != nil {
				fmt.Fprintf(&p.out, "= %s %s, step, begun %d times%s\n", s.Name, s.Phase, s.Doing.Attempt, reason(s.Doing.Trouble))
				continue
			}
			fmt.Fprintf(&p.out, "= %s %s, %d out of service, %d upgraded, %d failed\n", s.Name, s.Phase, s.OutOfService, s.Upgraded, s.Failed)
		}
		if back := run.WayBack(); !back.Closed.IsZero() {
			fmt.Fprintf(&p.out, "= no way back since %s, stage %s\n", back.Closed.Sub(epoch), back.Stage)
		} else if back.Stage != "" {
			fmt.Fprintf(&p.out, "= there is a way back until stage %s\n", back.Stage)
		}
	case "tasks":
		for _, h := range run.Hosts() {
			if task, from, wanted := run.Task(h.Name); wanted {
				fmt.Fprintf(&p.out, "= %s\n", taskText(task, from))
			}
		}
	case "overdue":
		for _, o := range run.Overdue(p.now, p.away) {
			fmt.Fprintf(&p.out, "= %s, since %s, overdue since %s, others took %s\n", o.Detail, o.Since.Sub(epoch), o.From.Sub(epoch), o.Usual)
		}
		if next := run.nextOverdue(p.now); !next.IsZero() {
			fmt.Fprintf(&p.out, "= the next at %s\n", next.Sub(epoch))
		}
	case "forecast":
		f, known := run.Forecast(p.now)
		if !known {
			p.out.WriteString("= unknown\n")
			return
		}
		ends := "ends at " + f.End.Sub(epoch).String()
		if f.Waits != "" {
			ends = "waits for " + f.Waits
		}
		fmt.Fprintf(&p.out, "= %d not done in time, %s\n", f.Left, ends)
		for i, h := range run.Hosts() {
			if end := f.Hosts[i]; !end.IsZero() {
				fmt.Fprintf(&p.out, "= %s %s\n", h.Name, end.Sub(epoch))
			}
		}
	}
}

func hostText(h Host) string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s %s", h.Name, h.Status, h.Error))
	if h.Note != "" {
		text += "; " + h.Note
	}
	if !h.Slot.IsZero() {
		text += fmt.Sprintf(" [slot since %s: %s]", h.Slot.Sub(epoch), h.SlotReason)
	}
	return text
}
