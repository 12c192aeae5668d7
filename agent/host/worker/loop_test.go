package worker

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestRefusedReply checks that a reply that the site refuses counts as sent, so that the
// host takes part in the next run.
func TestRefusedReply(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["reply"] = true
		r.leave(upgrading())
		r.life(func() bool { return r.journal().Phase == decide.Answered })
		if n := r.log.lines("level=WARN", "the reply was refused", "run=10", "refused by the site"); n != 1 {
			t.Errorf("it is told %d times, not once", n)
		}
		r.hostLog.refused["reply"] = false
		next := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
		r.hostLog.send(message.Record{Seq: 20, Kind: message.CommandAll, Body: next.Encode()})
		expect(r, message.Prepare, message.Done)
	})
}

// brokenLog is a log that gives up each reply.
type brokenLog struct{ *fakeLog }

func (brokenLog) Reply(context.Context, uint64, message.Reply) error { return errors.New("broken") }

// TestLostReply checks that a reply that is not on the log never counts as sent.
func TestLostReply(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.HostLog = brokenLog{r.hostLog} }
		r.leave(upgrading())
		if err := r.run(); errorText(err) != "broken" {
			t.Errorf("the worker ends with %v", err)
		}
		if phase := r.journal().Phase; phase != decide.Answering {
			t.Errorf("the journal says %s", phase)
		}
	})
}

// TestAnotherLog checks that a host whose journal is ahead of the log, because the log
// is new, follows the log and reports it.
func TestAnotherLog(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		ahead := prepared()
		ahead.Log, ahead.Run, ahead.Seq = "A", 500, 501
		r.leave(ahead)
		body := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}.Encode()
		r.hostLog.send(message.Record{Log: "B", Seq: 10, Time: time.Now(), Kind: message.CommandAll, Body: body})
		expect(r, message.Prepare, message.Done)
		r.hostLog.send(message.Record{Log: "B", Seq: 11, Run: 10, Kind: message.CommandHost, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()})
		expect(r, message.Upgrade, message.RebootRequired)
		if j := r.journal(); j.Log != "B" || j.Run != 10 {
			t.Errorf("the journal is of run %d of log %q", j.Run, j.Log)
		}
		if n := r.log.lines("level=WARN", "the log is not the one in this host's journal", "log=B", "known=A"); n != 1 {
			t.Errorf("it is told %d times, not once", n)
		}
	})
}

// TestIgnoredCommand checks that a refused command is logged once if somebody waits
// for its answer, and not otherwise.
func TestIgnoredCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record              message.Record
		ignored, foreignLog int
	}{
		"a prepare that came too late":       {prepareAt(600, now, "h01"), 1, 0},
		"a prepare of others":                {prepareAt(600, now, "h02"), 0, 0},
		"a command from before":              {commandAt(9, 8, message.Upgrade, "h01"), 0, 0},
		"a command of another run":           {commandAt(600, 8, message.Upgrade, "h01"), 1, 0},
		"a prepare of others of another log": {ofLog("B", prepareAt(600, now, "h02")), 0, 1},
		"a late prepare of another log":      {ofLog("B", prepareAt(600, now, "h01")), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.now = func() time.Time { return now }
				r.leave(prepared())
				r.hostLog.send(c.record)
				// The command is delivered again and again.
				pokes := 0
				r.life(func() bool {
					r.hostLog.poke()
					pokes++
					return pokes > 10
				})
				for text, want := range map[string]int{"command ignored": c.ignored, "the log is not the one in this host's journal": c.foreignLog} {
					if n := r.log.lines("level=WARN", text, "host=h01"); n != want {
						t.Errorf("%s: told %d times, not %d", text, n, want)
					}
				}
			})
		})
	}
}

// TestHostileCommands checks that invalid commands change nothing and are counted at
// each delivery.
func TestHostileCommands(t *testing.T) {
	t.Parallel()
	body := func(kind message.Kind, text string) message.Record {
		return message.Record{Seq: 600, Run: 10, Kind: kind, Time: now, Body: []byte(text)}
	}
	for name, record := range map[string]message.Record{
		"a replay":             prepareAt(10, later, "h01"),
		"an older run":         commandAt(600, 9, message.Upgrade, "h01"),
		"another host":         commandAt(600, 10, message.Upgrade, "h02"),
		"a reboot too early":   commandAt(600, 10, message.Reboot, "h01"),
		"not JSON":             body(message.CommandHost, "upgrade"),
		"nothing":              body(message.CommandHost, ""),
		"nested":               body(message.CommandHost, strings.Repeat("[", 100_000)),
		"a command in another": body(message.CommandHost, `{"action":{"action":"upgrade","host":"h01"}}`),
		"two commands":         body(message.CommandHost, `{"action":"upgrade","host":"h02"}{"action":"upgrade","host":"h01"}`),
		"more members":         body(message.CommandHost, `{"action":"upgrade","host":"h01","force":true}`),
		"two actions":          body(message.CommandHost, `{"action":"upgrade","host":"h01","hosts":["h01"]}`),
		"an unknown action":    body(message.CommandHost, `{"action":"format","host":"h01"}`),
		"oversized":            body(message.CommandHost, `{"action":"upgrade","host":"`+strings.Repeat("h", 1<<20)+`"}`),
		"a reply":              body(message.CommandHost, `{"action":"upgrade","result":"done"}`),
		"an endless prepare":   body(message.CommandAll, `{"action":"prepare","hosts":["h01"],"not-after":"never"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.now = func() time.Time { return now }
				r.leave(prepared())
				r.hostLog.send(record)
				w, err := Open(r.t.Context(), r.options())
				if err != nil {
					r.t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(r.t.Context(), time.Minute)
				defer stop()
				if err := errors.Join(w.Run(ctx), w.Close()); err != nil {
					r.t.Fatal(err)
				}
				// The log delivers it twice, and twice when it is poked.
				if n := w.Ignored(); n != 4 {
					t.Errorf("%d were ignored, not 4", n)
				}
				if n := len(r.log.String()); n > 2*message.MaxText {
					t.Errorf("it fills the log with %d bytes", n)
				}
				if j := r.journal(); j != prepared() || len(r.hostLog.replies) > 0 || r.effects("upgrade")+r.effects("reboot") > 0 {
					t.Errorf("it changed the journal to %+v and was answered %v", j, r.hostLog.replies)
				}
			})
		})
	}
}

// belated is a strategy whose upgrade returns after its time limit, as after a pause
// of the process.
type belated struct {
	strategy.Strategy
	err error
}

func (s belated) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	<-ctx.Done()
	if s.err != nil {
		return 0, s.err
	}
	return s.Strategy.Upgrade(context.WithoutCancel(ctx), job)
}

// TestEndIsKnownLate checks that the outcome of an action counts even if it is known
// after the time limit.
func TestEndIsKnownLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"done":   {nil, "reboot-required"},
		"failed": {errors.New("no room"), "no room; nothing was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.change = func(o *Options) { o.Strategy = belated{o.Strategy, c.err} }
				j := prepared()
				j.NotAfter = time.Now().Add(time.Hour)
				r.leave(j)
				r.command(11, message.Upgrade)
				expect(r, message.Upgrade, c.want)
			})
		})
	}
}

// TestCommandQueue checks that the newest command of each kind is kept, also when
// the log behind it becomes another one.
func TestCommandQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  []message.Record
		want []uint64
	}{
		"the newest of a kind":      {[]message.Record{prepareAt(10, later, "a"), prepareAt(20, later, "a"), prepareAt(15, later, "a")}, []uint64{20}},
		"one of each, oldest first": {[]message.Record{commandAt(11, 10, message.Upgrade, "a"), prepareAt(10, later, "a")}, []uint64{10, 11}},
		"another log begins anew":   {[]message.Record{ofLog("A", prepareAt(500, later, "a")), ofLog("B", prepareAt(3, later, "a"))}, []uint64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newCommandQueue()
			for _, r := range c.put {
				q.put(r)
			}
			for _, want := range c.want {
				if r, found := q.take(t.Context(), nil); !found || r.Seq != want {
					t.Errorf("command %d comes, not %d", r.Seq, want)
				}
			}
			if left := q.Take(); len(left) != 0 {
				t.Errorf("command %d comes after all", left[0].Value.Seq)
			}
		})
	}
}

// witness is a log that looks into the journal whenever a reply is sent.
type witness struct {
	*fakeLog
	r *rig
}

func (w witness) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	j, err := ReadJournal(filepath.Join(w.r.dir, "state", "journal.json"))
	if err != nil || j.Phase != decide.Answering || j.Run != run || j.Action != reply.Action || j.Result != reply.Result {
		w.r.t.Errorf("%s of run %d is answered %q, and the journal says %+v, %v", reply.Action, run, reply.Result, j, err)
	}
	return w.fakeLog.Reply(ctx, run, reply)
}

// TestReplyComesAfterItsJournal checks that no reply is sent before its journal is on
// disk: after a kill in between, the next worker could come to another result, but
// the log would keep the first.
func TestReplyComesAfterItsJournal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.HostLog = witness{r.hostLog, r} }
		if !wholeRun(r) {
			t.Error("the reboot is lost without a crash")
		}
	})
}
