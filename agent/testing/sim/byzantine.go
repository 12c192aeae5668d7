package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// keepByzantine is a byzantine host: it has credentials and no worker, and sends
// what it likes.
func (w *World) keepByzantine(m *machine) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	p := &process{w: w, name: "byzantine " + m.name, kind: "byzantine host", ctx: ctx, cancel: cancel}
	c := w.connect(m, p)
	defer c.hangUp()
	if _, err := c.client.Lease(ctx, "BYZANTINE"); err != nil {
		return
	}
	go func() { _ = c.client.Tasks(ctx, func(t message.Task) { w.falseOutcome(c, t) }) }()
	go func() {
		_ = c.client.Commands(ctx, func(r message.Record) { go w.answerFalsely(ctx, c, r) })
	}()
	for {
		_ = c.client.Alive(message.Alive{Application: application, Worker: "BYZANTINE", Role: m.role, Labels: w.labelsOf(m)})
		if sleep(ctx, message.Heartbeat) != nil {
			return
		}
		if w.rng.chance("lie/"+m.name, 0.2) {
			w.babble(ctx, c)
		}
	}
}

// answerFalsely sends any reply to a command, or to a command that was not sent.
func (w *World) answerFalsely(ctx context.Context, c *hostConn, r message.Record) {
	name := c.m.name
	command, err := message.DecodeCommand(r.Body)
	if err != nil {
		w.violated("record %d is a command that cannot be read: %v", r.Seq, err)
		return
	}
	run := r.Run
	if command.Action == message.Prepare {
		run = r.Seq
	}
	if sleep(ctx, w.rng.span("lie after/"+name, time.Millisecond, 20*time.Second)) != nil || w.rng.chance("silence/"+name, 0.1) {
		return
	}
	action := command.Action
	if w.rng.chance("other action/"+name, 0.2) {
		action = one(w.rng, "which action/"+name, message.Prepare, message.Upgrade, message.Reboot)
	}
	w.count("false replies to commands")
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_ = c.client.ReplyRaw(limited, run, action, w.falseBody(name, action))
}

func (w *World) falseBody(name string, action message.Action) []byte {
	text := func(result string) string { return fmt.Sprintf(`{"action":%q,"result":%q}`, action, result) }
	return []byte(one(w.rng, "what lie/"+name,
		text("done"), text("done"), text("done"), text("reboot-required"), text("I will not"), text(""),
		`{"action":"upgrade","result":"done","host":"h00"}`, `[{"action":"upgrade"}]`, `{`, "", `{"action":"sell","result":"done"}`,
		text(strings.Repeat("x", 5000)), text("\u202edone")))
}

// babble sends a message that nobody asked for.
func (w *World) babble(ctx context.Context, c *hostConn) {
	other := w.inOrder[w.rng.n("of whom/"+c.m.name, len(w.inOrder))].name
	run, _ := w.log.OldestPrepare(ctx)
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	w.count("messages that nobody asked for")
	switch w.rng.n("lie how/"+c.m.name, 5) {
	case 0:
		for attempt := range 3 {
			for _, kind := range message.TaskKinds() {
				_ = c.client.Outcome(message.Outcome{Run: run, Kind: kind, Host: other, Attempt: attempt, OK: true})
			}
		}
	case 1:
		_ = c.client.ReplyRaw(limited, max(run, 2)-1, message.Upgrade, []byte(`{"action":"upgrade","result":"done"}`))
	case 2:
		_ = c.client.Report(limited, report.Versions.Of([]byte(`{"base":{"version":"1"}}`)))
	case 3:
		_ = c.client.Progress(message.Progress{Run: run + 7, Percent: -5, Message: "\x1b[2J"})
	case 4:
		_ = c.client.ReplyRaw(limited, run, message.Reboot, []byte(`{"action":"reboot","result":"done"}`))
	}
}

// falseOutcome reports a random outcome of a task that it did not run.
func (w *World) falseOutcome(c *hostConn, t message.Task) {
	ok := w.rng.chance("outcome lie/"+c.m.name, 0.7)
	_ = c.client.Outcome(t.Outcome(ok, "trust me"))
}
