package worker

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestBlank checks where a host without a journal begins, and what it
// answers (design.md 5, invariant 2).
func TestBlank(t *testing.T) {
	t.Parallel()
	asked := func(seq uint64, action message.Action) Journal {
		return Journal{Run: 10, NotAfter: later, Seq: seq, Action: action, Phase: Answering, Result: unknownPast}
	}
	for name, c := range map[string]struct {
		records []message.Record
		want    Journal
	}{
		"an empty log":             {nil, Journal{}},
		"prepared, maybe":          {[]message.Record{prepareAt(10, later, "h01")}, asked(10, message.Prepare)},
		"upgraded, maybe":          {[]message.Record{prepareAt(10, later, "h01"), commandAt(11, 10, message.Upgrade, "h01")}, asked(11, message.Upgrade)},
		"rebooted, maybe":          {[]message.Record{prepareAt(10, later, "h01"), commandAt(12, 10, message.Reboot, "h01")}, asked(12, message.Reboot)},
		"a run of other hosts":     {[]message.Record{prepareAt(10, later, "h02")}, Journal{Seq: 10}},
		"a run that is over":       {[]message.Record{prepareAt(10, now, "h01"), commandAt(11, 10, message.Upgrade, "h01")}, Journal{Seq: 11}},
		"a new run after an old":   {[]message.Record{commandAt(7, 5, message.Upgrade, "h01"), prepareAt(10, later, "h01")}, asked(10, message.Prepare)},
		"others after an old":      {[]message.Record{commandAt(7, 5, message.Upgrade, "h01"), prepareAt(10, later, "h02")}, Journal{Seq: 10}},
		"a prepare nobody reads":   {[]message.Record{{Seq: 10, Body: []byte("{")}, commandAt(11, 10, message.Upgrade, "h01")}, Journal{Seq: 11}},
		"a command nobody reads":   {[]message.Record{prepareAt(10, later, "h01"), {Seq: 11, Body: []byte("{")}}, asked(11, message.Prepare)},
		"the log that it is of":    {[]message.Record{ofLog("A", prepareAt(10, later, "h02"))}, Journal{Log: "A", Seq: 10}},
		"a command of another run": {[]message.Record{prepareAt(10, later, "h01"), commandAt(11, 9, message.Upgrade, "h01")}, asked(11, message.Prepare)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, want := Blank(c.records, "h01", now), timed(c.want, c.records); got != want {
				t.Errorf("%+v, not %+v", got, want)
			}
		})
	}
}

// timed returns a journal with the times of the records that it is of.
func timed(j Journal, records []message.Record) Journal {
	for _, r := range records {
		if r.Seq == j.Seq {
			j.At = r.Time
		}
		if r.Seq == j.Run {
			j.RunAt = r.Time
		}
	}
	return j
}

// TestBlankNeverActs checks that a worker without a journal never carries out a command
// that was there before it, that its new journal can be read again, and that later
// commands of the same run are answered and not carried out.
func TestBlankNeverActs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		run := rapid.Uint64Range(1, 50).Draw(rt, "run")
		seq := run + rapid.Uint64Range(1, 50).Draw(rt, "after")
		end := now.Add(time.Duration(rapid.IntRange(-2, 2).Draw(rt, "end")) * time.Minute)
		host := rapid.SampledFrom([]string{"h01", "h02"})
		action := rapid.SampledFrom([]message.Action{message.Upgrade, message.Reboot})
		all := []message.Record{
			prepareAt(run, end, host.Draw(rt, "member")),
			commandAt(seq, rapid.SampledFrom([]uint64{run, run - 1}).Draw(rt, "of"), action.Draw(rt, "action"), host.Draw(rt, "host")),
		}
		records := all[rapid.IntRange(0, 1).Draw(rt, "first"):rapid.IntRange(1, 2).Draw(rt, "end of records")]
		j := Blank(records, "h01", now)
		if err := j.check(); err != nil {
			rt.Fatalf("%+v cannot be read again: %v", j, err)
		}
		if do := j.Next(false, "boot-1", now); do != Nothing && do != DoReply {
			rt.Fatalf("%+v makes the worker %s", j, do)
		}
		if j.Phase == Answering {
			j = j.After(DoReply, 0, nil, now)
		}
		for _, r := range records {
			if next, err := j.Receive(r, "h01", "boot-1", now); err == nil {
				rt.Fatalf("%+v takes up command %d as %+v", j, r.Seq, next)
			}
		}
		next, err := j.Receive(commandAt(seq+1, run, action.Draw(rt, "next"), "h01"), "h01", "boot-1", now)
		if err == nil && next.Phase != Answering {
			rt.Fatalf("%+v carries out what follows as %+v", j, next)
		}
	})
}

// TestLostJournal loses the journal of a host in the middle of a run and after
// it, and checks that nothing is done twice and nobody waits for an answer.
func TestLostJournal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.forget()
		r.bear()
		r.command(12, message.Reboot)
		expect(r, message.Reboot, unknownPast)
		r.forget()
		r.bear()
		r.life(func() bool { return r.journal().Phase == Answered })
		if up, boots := r.effects("upgrade"), r.effects("reboot"); up != 1 || boots != 0 {
			t.Errorf("the host was upgraded %d times and rebooted %d times", up, boots)
		}
		if n := r.log.lines("level=WARN", "no journal found in a run"); n != 2 {
			t.Errorf("it is told %d times, not 2", n)
		}
	})
}

// TestBlankIsSilent checks that nothing is heard of a host before it has a
// journal, so that no run begins with it.
func TestBlankIsSilent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.slow["newest"] = true
		end := time.Now().Add(time.Minute)
		r.life(func() bool { return time.Now().After(end) })
		if r.hostLog.alive != 0 || len(r.hostLog.versions) != 0 {
			t.Errorf("%d heartbeats and %d reports came from a host without a journal", r.hostLog.alive, len(r.hostLog.versions))
		}
		r.hostLog.slow["newest"] = false
		r.bear()
		r.life(func() bool { return r.hostLog.heartbeats() > 0 })
	})
}

// TestBlankRefused checks that a worker that may not ask ends and says why.
func TestBlankRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["newest"] = true
		const want = "cannot ask the log where this host, which has no journal, begins: newest: refused by the site"
		if err := r.run(); errorText(err) != want {
			t.Errorf("the error is %v, not %s", err, want)
		}
	})
}
