package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestAllow checks what a worker does with its journal in each state of the lease.
func TestAllow(t *testing.T) {
	t.Parallel()
	prepare, upgrade := Journal{Action: message.Prepare}, Journal{Action: message.Upgrade}
	asked := Journal{Action: message.Reboot, Reboot: Asked}
	for name, c := range map[string]struct {
		journal Journal
		do      Do
		state   leaseState
		away    bool
		want    Do
	}{
		"the site may answer yet":            {upgrade, DoResume, requesting, false, DoWait},
		"with the lease, nothing to do":      {upgrade, Nothing, held, false, Nothing},
		"with the lease, an upgrade":         {upgrade, DoUpgrade, held, false, DoUpgrade},
		"with the lease, a reply":            {upgrade, DoReply, held, false, DoReply},
		"cut off, nothing to do":             {upgrade, Nothing, unanswered, false, DoWait},
		"cut off, an upgrade in hand":        {upgrade, DoUpgrade, unanswered, false, DoUpgrade},
		"cut off, a reply":                   {upgrade, DoReply, unanswered, false, DoWait},
		"cut off and away, to prepare":       {prepare, DoPrepare, unanswered, true, DoWait},
		"cut off and away, an upgrade":       {upgrade, DoUpgrade, unanswered, true, DoWait},
		"cut off and away, interrupted":      {upgrade, DoResume, unanswered, true, DoResume},
		"taken, nothing to do":               {upgrade, Nothing, taken, true, DoWait},
		"taken, to prepare":                  {prepare, DoPrepare, taken, true, DoWait},
		"taken, an upgrade not begun":        {upgrade, DoUpgrade, taken, true, DoWait},
		"taken, an upgrade interrupted":      {upgrade, DoResume, taken, true, DoResume},
		"taken, to verify":                   {upgrade, DoVerify, taken, true, DoVerify},
		"taken, to roll back":                {upgrade, DoRollback, taken, true, DoRollback},
		"taken, to reboot":                   {Journal{Action: message.Reboot}, DoReboot, taken, true, DoWait},
		"with the lease, a reboot again":     {asked, DoReboot, held, false, DoReboot},
		"cut off, a reboot again":            {asked, DoReboot, unanswered, false, DoReboot},
		"cut off and away, a reboot again":   {asked, DoReboot, unanswered, true, DoAwaitReboot},
		"taken, a reboot again":              {asked, DoReboot, taken, false, DoAwaitReboot},
		"taken, a reboot under way":          {asked, DoAwaitReboot, taken, true, DoAwaitReboot},
		"taken, too late to reboot":          {Journal{Action: message.Reboot}, DoMissReboot, taken, true, DoWait},
		"taken, booted":                      {asked, DoBooted, taken, true, DoBooted},
		"taken, a reply":                     {upgrade, DoReply, taken, true, DoWait},
		"back, nothing to do":                {upgrade, Nothing, held, true, DoTakeOver},
		"back, to prepare":                   {prepare, DoPrepare, held, true, DoTakeOver},
		"back, the reply to prepare":         {prepare, DoReply, held, true, DoTakeOver},
		"back, the reply to upgrade":         {upgrade, DoReply, held, true, DoReply},
		"back, an upgrade not begun":         {upgrade, DoUpgrade, held, true, DoTakeOver},
		"back, an upgrade interrupted":       {upgrade, DoResume, held, true, DoResume},
		"back, to reboot":                    {Journal{Action: message.Reboot}, DoReboot, held, true, DoTakeOver},
		"back, a reboot again":               {asked, DoReboot, held, true, DoAwaitReboot},
		"cut off before there was a journal": {Journal{}, Nothing, unanswered, true, DoWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.journal.allow(c.do, c.state, c.away); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}

// TestTakeOver checks where a worker goes on that takes over from another worker.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	answer := func(seq uint64, action message.Action) Journal {
		return Journal{Run: 10, NotAfter: later, Seq: seq, Action: action, Phase: Answering, Result: anothersPast}
	}
	for name, c := range map[string]struct {
		records []message.Record
		want    Journal
	}{
		"its own run goes on":         {[]message.Record{prepareAt(10, later, "h01")}, answer(11, message.Prepare)},
		"a command is not answered":   {[]message.Record{prepareAt(10, later, "h01"), commandAt(12, 10, message.Reboot, "h01")}, answer(12, message.Reboot)},
		"a run of others":             {[]message.Record{prepareAt(20, later, "h02")}, Journal{Seq: 20}},
		"a run that is over":          {[]message.Record{prepareAt(10, now, "h01")}, Journal{Seq: 11}},
		"nothing is on the log":       {nil, Journal{Seq: 11}},
		"another log, from its start": {[]message.Record{ofLog("B", prepareAt(3, later, "h02"))}, Journal{Log: "B", Seq: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := upgradedWith(message.RebootRequired).TakeOver(c.records, "h01", now)
			if want := timed(c.want, c.records); got != want {
				t.Errorf("%+v, not %+v", got, want)
			}
			if err := got.check(); err != nil {
				t.Errorf("it would not be read again: %v", err)
			}
		})
	}
}

// guarded is a host log whose lease another worker may hold.
type guarded struct {
	*fakeLog
	taken *atomic.Bool
}

func (g guarded) no() error {
	if g.taken.Load() {
		return fmt.Errorf("%w: OTHER, since noon", log.ErrTaken)
	}
	return nil
}

func (g guarded) Lease(context.Context, string) (uint64, error) { return 0, g.no() }

func (g guarded) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	if err := g.no(); err != nil {
		return err
	}
	return g.fakeLog.Reply(ctx, run, reply)
}

// guard gives the lease to another worker. leased receives what the workers report about
// it.
func (r *rig) guard() (taken *atomic.Bool, leased *lockedText) {
	taken, leased = new(atomic.Bool), &lockedText{}
	taken.Store(true)
	r.change = func(o *Options) {
		o.HostLog = guarded{r.hostLog, taken}
		o.Leased = func(held bool) { _, _ = fmt.Fprintln(leased, held) }
	}
	return taken, leased
}

// TestStandby checks that a worker without the lease does nothing, says so once, and
// goes to work when the lease is free (AV-15).
func TestStandby(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		taken, leased := r.guard()
		r.prepare()
		r.hostLog.ask(taskOf(10, message.BeforeHost))
		quiet := time.Now().Add(time.Minute)
		free := quiet.Add(message.Heartbeat)
		r.life(func() bool {
			if time.Now().Before(quiet) {
				return false
			}
			if taken.Load() && (r.hostLog.heartbeats() > 0 || len(r.hostLog.wanted()) == 0 || len(r.hostLog.reports()) > 0 || r.hostLog.answer(message.Prepare) != "") {
				t.Error("something was heard of a worker that stands by")
			}
			taken.Store(false)
			return r.hostLog.answer(message.Prepare) != "" && r.hostLog.heartbeats() > 0 && len(r.hostLog.wanted()) == 0
		})
		if time.Now().After(free.Add(taskEvery)) {
			t.Errorf("it goes to work %s after the lease is free", time.Since(quiet))
		}
		if got := r.hostLog.answer(message.Prepare); got != unknownPast {
			t.Errorf("what was sent before is answered %q", got)
		}
		if n := r.log.lines("level=WARN", "another worker works for host h01; standing by", "OTHER, since noon"); n != 1 {
			t.Errorf("it is told %d times, not once:\n%s", n, r.log.String())
		}
		if got := leased.String(); got != "false\ntrue\n" {
			t.Errorf("leased: %q", got)
		}
	})
}

// TestStandbyFinishes checks a worker that stands by from its start with an interrupted
// upgrade: it finishes the upgrade, does not begin it again, and replies what is true
// once it may.
func TestStandbyFinishes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.leave(upgrading())
		if err := r.host.SetFaults(map[string]string{"upgrade": "crash-after"}); err != nil {
			t.Fatal(err)
		}
		r.life(func() bool { return false })
		taken, _ := r.guard()
		r.life(func() bool {
			return r.journal().Phase == Answering && r.log.lines("the reply was refused", "run=10") > 0
		})
		if j := r.journal(); !j.Away || j.Result != message.RebootRequired {
			t.Errorf("the journal is %+v", j)
		}
		taken.Store(false)
		expect(r, message.Upgrade, message.RebootRequired)
		if n := r.effects("upgrade"); n != 1 {
			t.Errorf("the host was upgraded %d times", n)
		}
	})
}

// TestLeaseRefused checks that a worker that may not ask for the lease ends.
func TestLeaseRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["lease"] = true
		if err := r.run(); errorText(err) != "cannot ask for this host's lease: lease: refused by the site" {
			t.Errorf("the worker ends with %v", err)
		}
	})
}

// TestHeartbeat checks what a heartbeat says about its worker.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.Role, o.Labels, o.Version = "edge", map[string]string{"ring": "0"}, "1.2.3" }
		r.leave(prepared())
		r.life(func() bool { return r.hostLog.heartbeats() > 1 })
		name, err := readIdentity(filepath.Join(r.dir, "state", "identity.json"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := r.hostLog.last
		if got.Worker != name || got.Role != "edge" || got.Labels["ring"] != "0" || got.AgentVersion != "1.2.3" {
			t.Errorf("it tells %+v", got)
		}
	})
}

// TestIdentity checks that a state directory is named once, that each has
// another name, and that a damaged name is none.
func TestIdentity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "identity.json")
	first, err := readIdentity(path, durable.WriteFile)
	if err != nil || len(first) != identityLength {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := readIdentity(path, durable.WriteFile); err != nil || again != first {
		t.Errorf("%q after %q: %v", again, first, err)
	}
	if other, err := readIdentity(path+"2", durable.WriteFile); err != nil || other == first {
		t.Errorf("two directories are named %q: %v", other, err)
	}
	for _, name := range []string{"", first[1:], first + "A", strings.ToLower(first), strings.Repeat("\x00", identityLength)} {
		for _, damaged := range []string{name, fmt.Sprintf(`{"format":1,"worker":%q}`, name)} {
			if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			if name, err := readIdentity(path, durable.WriteFile); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
				t.Errorf("%q reads as %q: %v", damaged, name, err)
			}
		}
	}
	if err := os.WriteFile(path, []byte(`{"format":2,"name":"`+first+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := readIdentity(path, durable.WriteFile); err == nil || !strings.Contains(err.Error(), "written by format 2, this version reads 1") {
		t.Errorf("a name of another format reads as %q: %v", name, err)
	}
	written, err := format.Identity.Encode(identityFile{Worker: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/identity.json", append(written, '\n'))
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := readIdentity(path, durable.WriteFile); err != nil || name != "ABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		t.Errorf("the name of format 1 reads as %q: %v", name, err)
	}
	full := errors.New("no space")
	if _, err := readIdentity(path+"3", func(string, []byte, os.FileMode) error { return full }); !errors.Is(err, full) {
		t.Errorf("the error is %v", err)
	}
}

// TestLeaseInAnotherEpoch checks that a worker that asks for the lease that it believes
// to hold, and gets it in another epoch, begins anew: another worker held it meanwhile.
// In the same epoch nothing changes.
func TestLeaseInAnotherEpoch(t *testing.T) {
	t.Parallel()
	s := lease{run: t.Context()}
	s.is.state = requesting
	s.is.ctx, s.is.end = context.WithCancel(t.Context())
	first, changed := s.change(held, 1, requesting)
	if !changed || first.epoch != 1 {
		t.Fatalf("the first lease is %+v, changed: %t", first, changed)
	}
	if _, changed := s.change(held, 1, requesting); changed || first.ctx.Err() != nil {
		t.Errorf("the same epoch changes something: %t, %v", changed, first.ctx.Err())
	}
	if now, changed := s.change(held, 3, requesting); !changed || now.epoch != 3 || first.ctx.Err() == nil {
		t.Errorf("another epoch changes: %t; the lease is %+v, what was done in the first one ends with %v", changed, now, first.ctx.Err())
	}
}

// foreign is a host log of a site with which the worker has no protocol in common.
type foreign struct {
	*fakeLog
	upgraded *atomic.Bool
}

func (f foreign) Lease(ctx context.Context, worker string) (uint64, error) {
	if !f.upgraded.Load() {
		return 0, fmt.Errorf("lease: %w: 2 and 3", log.ErrProtocol)
	}
	return f.fakeLog.Lease(ctx, worker)
}

// TestSiteOfAnotherProtocol checks that a worker finishes what it has begun while
// it has no protocol in common with its site, says so now and then, and goes to
// work once the site is upgraded.
func TestSiteOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.leave(upgrading())
		if err := r.host.SetFaults(map[string]string{"upgrade": "crash-after"}); err != nil {
			t.Fatal(err)
		}
		r.life(func() bool { return false })
		heard := r.hostLog.heartbeats()
		site := foreign{r.hostLog, new(atomic.Bool)}
		r.change = func(o *Options) { o.HostLog = site }
		until := time.Now().Add(25 * time.Minute)
		r.life(func() bool {
			return r.journal().Phase == Answering && time.Now().After(until)
		})
		if got := r.hostLog.answer(message.Upgrade); got != "" || r.hostLog.heartbeats() > heard {
			t.Errorf("the site hears %q and %d heartbeats", got, r.hostLog.heartbeats()-heard)
		}
		if n := r.log.lines("level=ERROR", "the site speaks another protocol: 2 and 3"); n != 3 {
			t.Errorf("in 25 minutes it is told %d times:\n%s", n, r.log.String())
		}
		site.upgraded.Store(true)
		expect(r, message.Upgrade, message.RebootRequired)
		if n := r.effects("upgrade"); n != 1 {
			t.Errorf("the host was upgraded %d times", n)
		}
	})
}
