package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// newest asks for the newest commands of a host.
func newest(t *testing.T, g *gate.Gate, host string) []gate.Command {
	t.Helper()
	r := g.Answer(t.Context(), host, gate.Request{Verb: []string{"newest"}})
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	return r.Commands
}

// TestPrepareForOne checks that the prepare of a host names no other member, that a
// host that is no member gets one that says so, and that both forms of a prepare can be
// read.
func TestPrepareForOne(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		all := prepare("h01", "h02", "h03")
		run := r.add(all)
		g := r.gate(r.log)
		whole, err := message.DecodeCommand(all.Body)
		if err != nil {
			t.Fatal(err)
		}
		for host, member := range map[string]bool{"h01": true, "h03": true, "h09": false, "another-host": false, "some-other-host": false} {
			commands := newest(t, g, host)
			got, err := message.DecodeCommand(commands[0].Body)
			if err != nil || commands[0].Seq != run || commands[0].Kind != message.CommandAll || !got.NotAfter.Equal(whole.NotAfter) {
				t.Fatalf("host %s gets record %d, %+v, %v", host, commands[0].Seq, got, err)
			}
			if len(got.Hosts) != 1 || slices.Contains(got.Hosts, host) != member || !member && slices.Contains(whole.Hosts, got.Hosts[0]) {
				t.Errorf("host %s is told of the hosts %v", host, got.Hosts)
			}
		}
	})
}

// TestGateAfterRestart checks that a second gate serves the commands that are on the
// log: those of the newest run, in the order of the log, with their epochs.
func TestGateAfterRestart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		for _, record := range []message.Record{
			prepare("h01", "h02"),
			{Kind: message.CommandHost, Host: "h02", Run: 1, Body: []byte(`"old"`)},
			prepare("h01", "h02"),
			{Kind: message.CommandHost, Host: "h01", Run: 3, Epoch: 7, Body: []byte(`"upgrade"`)},
			{Kind: message.CommandHost, Host: "h01", Run: 3, Epoch: 7, Checks: true, Body: []byte(`"reboot"`)},
			{Kind: message.EventRecord, Body: []byte("admitted")},
		} {
			r.add(record)
		}
		g := r.gate(r.log)
		text := func(all []gate.Command) string {
			var b strings.Builder
			for _, c := range all {
				fmt.Fprintf(&b, "%d %d %d %d %t %s;", c.Kind, c.Seq, c.Run, c.Epoch, c.Checks, c.Body)
			}
			return b.String()
		}
		one := text([]gate.Command{
			{Kind: message.CommandAll, Seq: 3, Body: prepare("h01").Body}, {Kind: message.CommandHost, Seq: 5, Run: 3, Epoch: 7, Checks: true, Body: []byte(`"reboot"`)},
		})
		if got := text(newest(t, g, "h01")); got != one {
			t.Errorf("h01 is told %s", got)
		}
		two := text([]gate.Command{{Kind: message.CommandAll, Seq: 3, Body: prepare("h02").Body}})
		if got := text(newest(t, g, "h02")); got != two {
			t.Errorf("h02 is told %s", got)
		}
	})
}

// deafLog is a log whose follower may miss records: a value on deaf ends the follow
// with log.ErrStale.
type deafLog struct {
	gate.Log
	deaf chan struct{}
}

func (l deafLog) FollowCommands(ctx context.Context, from uint64, deliver func(message.Record)) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-l.deaf:
			cancel()
		}
	}()
	if err := l.Log.FollowCommands(limited, from, deliver); ctx.Err() != nil {
		return err
	}
	return log.ErrStale
}

// TestStale checks that a gate whose follower may have missed a record follows the log
// again, and that its hosts get the missed commands once.
func TestStale(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		deaf := make(chan struct{})
		g := r.gate(deafLog{r.log, deaf})
		p := r.process(g, "h01")
		r.acquire(p, "one")
		var mu sync.Mutex
		delivered := map[uint64]bool{}
		go func() {
			_ = p.Commands(t.Context(), func(c message.Record) {
				mu.Lock()
				defer mu.Unlock()
				delivered[c.Seq] = true
			})
		}()
		got := func(seq uint64) bool {
			mu.Lock()
			defer mu.Unlock()
			return delivered[seq]
		}
		synctest.Wait()
		run := r.add(prepare("h01"))
		synctest.Wait()
		deaf <- struct{}{}
		synctest.Wait()
		upgrade := r.add(message.Record{Kind: message.CommandHost, Host: "h01", Run: run, Body: []byte(`{}`)})
		synctest.Wait()
		if got(upgrade) {
			t.Error("the gate is not deaf")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !got(upgrade) {
			t.Error("the host does not get the upgrade")
		}
		reboot := r.add(message.Record{Kind: message.CommandHost, Host: "h01", Run: run, Body: []byte(`{}`)})
		synctest.Wait()
		if !got(reboot) {
			t.Error("the host does not get the reboot")
		}
	})
}

// TestNewestAtGateBehind checks that a gate never gives a worker that starts anew an
// older run than the newest one on the log: the worker would take a command that its
// host has executed for a new one. A gate that has not followed that far does not
// answer.
func TestNewestAtGateBehind(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		r.add(prepare("h01"))
		deaf := make(chan struct{})
		p := r.process(r.gate(deafLog{r.log, deaf}), "h01")
		r.acquire(p, "one")
		deaf <- struct{}{}
		synctest.Wait()
		r.add(prepare("h01"))
		upgrade := r.add(message.Record{Kind: message.CommandHost, Host: "h01", Run: 2, Body: []byte(`{}`)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all, err := p.Newest(ctx)
		if err != nil || len(all) != 2 || all[0].Seq != 2 || all[1].Seq != upgrade {
			t.Errorf("the worker is told %v, %v", all, err)
		}
	})
}

// TestReplies checks which replies the gate appends: a valid one to the newest run,
// once, with the epoch of the lease, also if the gate has not seen that run yet.
func TestReplies(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		deaf := deafLog{r.log, make(chan struct{})}
		g := r.gate(deaf)
		p := r.process(g, "h01")
		epoch := r.acquire(p, "one")
		reply := message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}
		if err := p.Reply(t.Context(), 1, reply); !errors.Is(err, log.ErrRefused) {
			t.Errorf("a reply before the first run gets %v", err)
		}
		r.add(prepare("h01"))
		synctest.Wait()
		deaf.deaf <- struct{}{}
		run := r.add(prepare("h01"))
		for name, c := range map[string]struct {
			run  uint64
			body []byte
		}{
			"to no run":        {run + 7, reply.Encode()},
			"to the run of 0":  {0, reply.Encode()},
			"that is too long": {run, []byte(strings.Repeat("x", gate.MaxReply+1))},
		} {
			if err := p.ReplyRaw(t.Context(), c.run, message.Prepare, c.body); !errors.Is(err, log.ErrRefused) {
				t.Errorf("a reply %s gets %v", name, err)
			}
		}
		if err := p.ReplyRaw(t.Context(), run, "sell", reply.Encode()); !errors.Is(err, log.ErrRefused) {
			t.Errorf("a reply to no command gets %v", err)
		}
		if err := p.Reply(t.Context(), run, reply); err != nil {
			t.Errorf("a reply to a run that the gate has not seen gets %v", err)
		}
		if got, _ := r.log.At(run + 1); got.Kind != message.ReplyRecord || got.Run != run || got.Host != "h01" || got.Epoch != epoch {
			t.Errorf("the reply is %+v", got)
		}
		if err := p.Reply(t.Context(), run, reply); !errors.Is(err, log.ErrAnswered) {
			t.Errorf("the second reply gets %v", err)
		}
	})
}

// TestReplyToARunBefore checks that a reply that comes when the next run is prepared is
// refused, although its command was given and has no answer.
func TestReplyToARunBefore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process(r.gate(r.log), "h01")
		r.acquire(p, "one")
		old := r.add(prepare("h01"))
		r.add(message.Record{Kind: message.CommandHost, Host: "h01", Run: old, Body: message.Command{Action: message.Upgrade}.Encode()})
		r.add(prepare("h01"))
		synctest.Wait()
		for _, action := range []message.Action{message.Prepare, message.Upgrade} {
			if err := p.Reply(t.Context(), old, message.Reply{Action: action, Result: message.Result{Outcome: message.Done}}); !errors.Is(err, log.ErrRefused) {
				t.Errorf("a reply to %s of the run before gets %v", action, err)
			}
		}
	})
}

// TestPushed checks that a push that is no command of the host is not delivered, and
// that a host that was pushed more than its buffer holds asks for the missed commands.
func TestPushed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process(r.gate(r.log), "h01")
		r.acquire(p, "one")
		got := make(chan message.Record, 1000)
		go func() { _ = p.Commands(t.Context(), func(c message.Record) { got <- c }) }()
		synctest.Wait()
		for _, body := range []string{"{", `{}`, `{"command":{"kind":2,"seq":7,"run":3,"epoch":4,"body":{}}}`} {
			p.Pushed([]byte(body))
		}
		synctest.Wait()
		if len(got) != 1 {
			t.Fatalf("%d records are delivered", len(got))
		}
		if c := <-got; c.Seq != 7 || c.Run != 3 || c.Host != "h01" || c.Kind != message.CommandHost || c.Epoch != 4 {
			t.Errorf("it is read as %+v", c)
		}
		for range 1000 {
			p.Pushed([]byte(`{}`))
		}
		run := r.add(prepare("h01"))
		synctest.Wait()
		if c := <-got; c.Seq != run {
			t.Errorf("record %d comes, not %d", c.Seq, run)
		}
	})
}

// TestOutput checks which outputs a gate keeps: those of a known action of the newest
// run, or in place of one that is kept, of the worker that holds the lease, clean, and no larger
// than allowed.
func TestOutput(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		p := r.process(g, "h01")
		r.acquire(p, "one")
		old := r.add(prepare("h01"))
		run := r.add(prepare("h01"))
		synctest.Wait()
		begun := report.Report{ID: report.ID{Kind: report.Output, Run: old, Part: "prepare"}, Body: []byte("begun before the next run")}
		if err := r.keeper.PutReport(t.Context(), "", log.Token("h01"), begun); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			run    uint64
			action string
			text   []byte
			cut    bool
			want   string
		}{
			"of the newest run":      {run, "upgrade", []byte("\x1b[1mone\n"), true, ""},
			"of an earlier run":      {old, "upgrade", []byte("a"), false, "is not the newest"},
			"more of an earlier run": {old, "prepare", []byte("begun before the next run, and going on"), false, ""},
			"of no run":              {0, "upgrade", []byte("a"), false, "is not the newest"},
			"of another action":      {run, "versions", []byte("a"), false, "is no action"},
			"as large as it may be":  {run, "prepare", bytes.Repeat([]byte("a"), message.MaxOutput), false, ""},
			"too large":              {run, "verify", bytes.Repeat([]byte("a"), message.MaxOutput+1), false, "at most 65536 bytes"},
		} {
			id := report.ID{Kind: report.Output, Run: c.run, Part: c.action}
			err := p.Report(t.Context(), report.Report{ID: id, Cut: c.cut, Body: c.text})
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, log.ErrRefused) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := r.keeper.Report(t.Context(), "", log.Token("h01"), id); (err == nil) != (c.want == "") {
				t.Errorf("%s: it is kept: %v", name, err == nil)
			}
		}
		if o, err := r.keeper.Report(t.Context(), "", log.Token("h01"), report.ID{Kind: report.Output, Run: run, Part: "upgrade"}); err != nil || string(o.Body) != "[1mone\n" || !o.Cut {
			t.Errorf("%q is kept, cut: %v, %v", o.Body, o.Cut, err)
		}
		if a := g.Answer(t.Context(), "h01", gate.Request{Verb: []string{"report", "output", fmt.Sprint(run), "upgrade"}, Worker: "two", Incarnation: "x"}); !a.Taken {
			t.Errorf("a worker without the lease is answered %+v", a)
		}
		for _, verb := range [][]string{{"report", "output"}, {"report", "output", fmt.Sprint(run)}, {"report", "output", "x", "upgrade"}, {"report", "output", fmt.Sprint(run), "upgrade", "whole"}, {"last-report", "output"}} {
			if a := g.Answer(t.Context(), "h01", gate.Request{Verb: verb, Worker: "one", Incarnation: p.Incarnation}); !a.Refused {
				t.Errorf("%q is answered %+v", verb, a)
			}
		}
	})
}

// TestOffer checks which offers a gate keeps: those that can be read, the last in place of the
// one before, also while there is no run; and that a host learns which one is kept.
func TestOffer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		p, other := r.process(g, "h01"), r.process(g, "h02")
		r.acquire(p, "one")
		r.acquire(other, "two")
		if told, err := p.LastReport(t.Context(), report.Offer); err != nil || told != (report.Told{}) {
			t.Errorf("before the first offer %+v is kept, %v", told, err)
		}
		for _, to := range []string{"1.1", "1.2"} {
			packed, err := message.PackPlan(message.ChangeSet{Changes: []message.Change{{Name: "kernel", From: "1.0", To: to}}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			at := time.Now()
			if err := p.Report(t.Context(), report.Offer.Of(packed)); err != nil {
				t.Fatal(err)
			}
			if told, err := p.LastReport(t.Context(), report.Offer); err != nil || told.Digest != report.Digest(packed) || !told.At.Equal(at) {
				t.Errorf("%+v is kept, %v", told, err)
			}
			if kept, err := r.keeper.Report(t.Context(), "", log.Token("h01"), report.ID{Kind: report.Offer}); err != nil || !bytes.Equal(kept.Body, packed) {
				t.Errorf("another offer is kept, %v", err)
			}
		}
		if told, err := other.LastReport(t.Context(), report.Offer); err != nil || told.Digest != "" {
			t.Errorf("of another host %+v is kept, %v", told, err)
		}
		for _, q := range []gate.Request{{Verb: []string{"report", "offer"}, Body: []byte("no gzip")}, {Verb: []string{"report", "offer", "7"}}, {Verb: []string{"last-report", "offer", "h02"}}} {
			q.Worker, q.Incarnation = "one", p.Incarnation
			if a := g.Answer(t.Context(), "h01", q); !a.Refused {
				t.Errorf("%q is answered %+v", q.Verb, a)
			}
		}
		q := gate.Request{Verb: []string{"report", "offer"}, Worker: "two", Incarnation: other.Incarnation}
		if a := g.Answer(t.Context(), "h01", q); !a.Taken {
			t.Errorf("the worker of another host is answered %+v", a)
		}
	})
}

// TestInventory checks which inventories a gate keeps: those that can be read, the last in
// place of the one before; and that a host learns which one is kept.
func TestInventory(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		p, other := r.process(g, "h01"), r.process(g, "h02")
		r.acquire(p, "one")
		r.acquire(other, "two")
		if told, err := p.LastReport(t.Context(), report.Inventory); err != nil || told != (report.Told{}) {
			t.Errorf("before the first inventory %+v is kept, %v", told, err)
		}
		for memory := range int64(2) {
			body, err := inventory.Inventory{MemoryBytes: memory}.Encode()
			if err == nil {
				err = p.Report(t.Context(), report.Inventory.Of(body))
			}
			if err != nil {
				t.Fatal(err)
			}
			if told, err := p.LastReport(t.Context(), report.Inventory); err != nil || told.Digest != report.Digest(body) || !told.At.Equal(time.Now()) {
				t.Errorf("%+v is kept, %v", told, err)
			}
		}
		if told, err := other.LastReport(t.Context(), report.Inventory); err != nil || told.Digest != "" {
			t.Errorf("of another host %+v is kept, %v", told, err)
		}
		for _, q := range []gate.Request{
			{Verb: []string{"report", "inventory"}, Body: []byte("{}")},
			{Verb: []string{"report", "inventory"}, Body: []byte(`{"format":1,"machine":{"kind":"\u001b"}}`)},
			{Verb: []string{"report", "inventory", "h02"}, Body: []byte(`{"format":1}`)},
			{Verb: []string{"last-report", "inventory", "h02"}},
		} {
			q.Worker, q.Incarnation = "one", p.Incarnation
			if a := g.Answer(t.Context(), "h01", q); !a.Refused {
				t.Errorf("%q of %s is answered %+v", q.Verb, q.Body, a)
			}
		}
		q := gate.Request{Verb: []string{"report", "inventory"}, Worker: "two", Incarnation: other.Incarnation, Body: []byte(`{"format":1}`)}
		if a := g.Answer(t.Context(), "h01", q); !a.Taken {
			t.Errorf("the worker of another host is answered %+v", a)
		}
	})
}

// TestPlan checks which plans a gate keeps, and tells of: those of the newest run that can be read, also
// one of 3,000 packages.
func TestPlan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		var stored []string
		g.Stored = func(host string, id report.ID) { stored = append(stored, host+" "+id.String()) }
		p := r.process(g, "h01")
		r.acquire(p, "one")
		old := r.add(prepare("h01"))
		run := r.add(prepare("h01"))
		synctest.Wait()
		var large message.ChangeSet
		for i := range 3000 {
			large.Changes = append(large.Changes, message.Change{Name: fmt.Sprintf("package-%05d", i), From: "1.0", To: fmt.Sprint("1.1-", i)})
		}
		put := func(run uint64, plan message.ChangeSet) error {
			packed, err := message.PackPlan(plan)
			if err != nil {
				t.Fatal(err)
			}
			return p.Report(t.Context(), report.Report{ID: report.ID{Kind: report.Plan, Run: run}, Body: packed})
		}
		if err := put(run, large); err != nil {
			t.Fatal(err)
		}
		kept, err := r.keeper.Report(t.Context(), "", log.Token("h01"), report.ID{Kind: report.Plan, Run: run})
		if got, unpacking := message.UnpackPlan(kept.Body); err != nil || unpacking != nil || len(got.Changes) != 3000 {
			t.Errorf("%d changes are kept, %v: %v", len(got.Changes), err, unpacking)
		}
		before := report.Report{ID: report.ID{Kind: report.Plan, Run: old}, Body: kept.Body}
		if err := r.keeper.PutReport(t.Context(), "", log.Token("h01"), before); err != nil {
			t.Fatal(err)
		}
		if err := put(old, large); !errors.Is(err, log.ErrRefused) || !strings.Contains(err.Error(), "is not the newest") {
			t.Errorf("the plan of an earlier run: %v", err)
		}
		bad := message.ChangeSet{Changes: []message.Change{{Name: "a"}}}
		if err := put(run, bad); !errors.Is(err, log.ErrRefused) || !strings.Contains(err.Error(), `"a" has neither from nor to`) {
			t.Errorf("a plan that says nothing: %v", err)
		}
		for _, q := range []gate.Request{{Verb: []string{"report", "plan"}}, {Verb: []string{"report", "plan", "x"}}, {Verb: []string{"report", "plan", fmt.Sprint(run)}, Body: []byte("no gzip")}, {Verb: []string{"report"}}, {Verb: []string{"report", "nonsense"}}} {
			q.Worker, q.Incarnation = "one", p.Incarnation
			if a := g.Answer(t.Context(), "h01", q); !a.Refused {
				t.Errorf("%q is answered %+v", q.Verb, a)
			}
		}
		if want := "h01 " + (report.ID{Kind: report.Plan, Run: run}).String(); len(stored) != 1 || stored[0] != want {
			t.Errorf("the site is told of %q, want %s", stored, want)
		}
	})
}

// TestReportsOfADay checks that a host which does not count itself is refused what is beyond the
// limit of a day, that the site keeps what it had, and that neither the next day, a repeated call
// nor another host or kind is refused.
func TestReportsOfADay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		p, other := r.process(g, "h01"), r.process(g, "h02")
		r.acquire(p, "one")
		r.acquire(other, "two")
		body := func(n int) []byte {
			var disks []inventory.Disk
			for i := range 40 {
				disks = append(disks, inventory.Disk{Name: fmt.Sprintf("d%d-%d", n, i), Model: strings.Repeat("x", 60)})
			}
			encoded, err := inventory.Inventory{Disks: disks}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			return encoded
		}
		total, newest := 0, []byte(nil)
		for n := range 1000 {
			next := body(n)
			err := p.Report(t.Context(), report.Inventory.Of(next))
			if err != nil {
				if !errors.Is(err, log.ErrRefused) || !strings.Contains(err.Error(), "at most 262144 bytes of its inventory in a day") {
					t.Fatalf("report %d: %v", n, err)
				}
				break
			}
			total, newest = total+len(next), next
			for range 10 { // The answer was lost.
				if err := p.Report(t.Context(), report.Inventory.Of(next)); err != nil {
					t.Fatalf("report %d again: %v", n, err)
				}
			}
		}
		if total > report.Inventory.MaxDay || total < report.Inventory.MaxDay-2*len(newest) {
			t.Errorf("in a day %d bytes were taken", total)
		}
		if told, err := p.LastReport(t.Context(), report.Inventory); err != nil || told.Digest != report.Digest(newest) {
			t.Errorf("what is kept is %+v, %v", told, err)
		}
		packed, err := message.PackPlan(message.ChangeSet{Changes: []message.Change{{Name: "a", To: "1"}}})
		if err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"another host": other.Report(t.Context(), report.Inventory.Of(body(0))), "another kind": p.Report(t.Context(), report.Offer.Of(packed)),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(24 * time.Hour)
		r.acquire(p, "one")
		if err := p.Report(t.Context(), report.Inventory.Of(body(2000))); err != nil {
			t.Errorf("the next day: %v", err)
		}
	})
}
