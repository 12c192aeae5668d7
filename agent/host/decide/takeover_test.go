package decide

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestBlank checks where a host without a journal begins, and what it
// answers: it must not do an action a second time.
func TestBlank(t *testing.T) {
	t.Parallel()
	asked := func(seq uint64, action message.Action) Journal {
		return Journal{Run: 10, NotAfter: later, Seq: seq, Action: action, Phase: Answering, Result: cannotKnow(unknownPast)}
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
			if got, want := blank(c.records, "h01", now), timed(c.want, c.records); got != want {
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
		j := blank(records, "h01", now)
		if err := j.check(); err != nil {
			rt.Fatalf("%+v cannot be read again: %v", j, err)
		}
		if do := j.next(false, "boot-1", now); do != Nothing && do != DoReply {
			rt.Fatalf("%+v makes the worker %s", j, do)
		}
		if j.Phase == Answering {
			j = j.after(DoReply, 0, nil, now)
		}
		for _, r := range records {
			if next, err := j.receive(r, "h01", "boot-1", now); err == nil {
				rt.Fatalf("%+v takes up command %d as %+v", j, r.Seq, next)
			}
		}
		next, err := j.receive(commandAt(seq+1, run, action.Draw(rt, "next"), "h01"), "h01", "boot-1", now)
		if err == nil && next.Phase != Answering {
			rt.Fatalf("%+v carries out what follows as %+v", j, next)
		}
	})
}

// TestTakeOver checks where a worker goes on that takes over from another worker.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	answer := func(seq uint64, action message.Action) Journal {
		return Journal{Run: 10, NotAfter: later, Seq: seq, Action: action, Phase: Answering, Result: cannotKnow(anothersPast)}
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
			got := upgradedWith(message.RebootRequired).takeOver(c.records, "h01", now)
			if want := timed(c.want, c.records); got != want {
				t.Errorf("%+v, not %+v", got, want)
			}
			if err := got.check(); err != nil {
				t.Errorf("it would not be read again: %v", err)
			}
		})
	}
}
