package decide

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// onLogA is a journal of log A, of records of noon.
func onLogA(j Journal) Journal {
	j.Log, j.RunAt, j.At = "A", prepareAt(10, later).Time, prepareAt(10, later).Time
	return j
}

func at(t time.Time, r message.Record) message.Record {
	r.Time = t
	return r
}

// answers shows records to a journal as its loop does, and returns its replies.
func answers(j *Journal, records ...message.Record) (replies []string) {
	for _, r := range records {
		next, refused := j.receive(r, "h01", "boot-1", now)
		if refused != nil {
			replies = append(replies, "ignored: "+refused.Error())
			continue
		}
		*j = next
		if next.Phase != Answering {
			replies = append(replies, "begins "+string(next.Phase))
			continue
		}
		replies = append(replies, string(next.Action)+": "+next.Result.String())
		*j = next.after(DoReply, 0, nil, now)
	}
	return replies
}

// TestRestoredLog checks what a host replies on a log that was restored: it does
// nothing twice, and ignores no command to it.
func TestRestoredLog(t *testing.T) {
	t.Parallel()
	prepare := ofLog("B", prepareAt(10, later, "h01"))
	upgrade, reboot := ofLog("B", commandAt(2010, 10, message.Upgrade, "h01")), ofLog("B", commandAt(2011, 10, message.Reboot, "h01"))
	rebooted := upgradedWith(message.Done)
	rebooted.Action = message.Reboot
	later10 := upgradedWith(message.Done) // A later run, which the log has lost.
	later10.Run, later10.Seq = 30, 31
	another := onLogA(later10)
	another.RunAt, another.At = now, now
	for name, c := range map[string]struct {
		journal Journal
		records []message.Record
		want    []string
	}{
		"prepared": {onLogA(prepared()), []message.Record{prepare, upgrade}, []string{"prepare: done", "begins upgrading"}},
		"could not prepare": {
			onLogA(failed(prepared())),
			[]message.Record{prepare, upgrade},
			[]string{"prepare: no mirror", `ignored: the last action was prepare with result "no mirror"`},
		},
		"upgraded": {onLogA(upgradedWith(message.Done)), []message.Record{prepare, upgrade}, []string{"prepare: done", "upgrade: done"}},
		"failed":   {onLogA(upgradedWith("no space left")), []message.Record{prepare, upgrade}, []string{"prepare: done", "upgrade: no space left"}},
		"to reboot": {
			onLogA(upgradedWith(message.RebootRequired)),
			[]message.Record{prepare, upgrade, reboot},
			[]string{"prepare: done", "upgrade: reboot-required", "begins rebooting"},
		},
		"rebooted":          {onLogA(rebooted), []message.Record{prepare, upgrade}, []string{"prepare: done", "upgrade: done"}},
		"rebooted, in turn": {onLogA(rebooted), []message.Record{prepare, reboot}, []string{"prepare: done", "reboot: done"}},
		"does not know": {
			onLogA(lost(prepared())),
			[]message.Record{prepare, upgrade},
			[]string{"prepare: " + unknownPast, "upgrade: " + unknownPast},
		},
		"a later run, which was lost": {another, []message.Record{prepare, upgrade}, []string{"prepare: " + lostPast, "upgrade: " + lostPast}},
		"another run of this number": {
			onLogA(prepared()),
			[]message.Record{at(prepare.Time.Add(-time.Second), prepare), upgrade},
			[]string{"prepare: " + lostPast, "upgrade: " + lostPast},
		},
		"a new run":                {another, []message.Record{at(now.Add(time.Second), ofLog("B", prepareAt(2010, later, "h01")))}, []string{"begins preparing"}},
		"a new run of this number": {onLogA(prepared()), []message.Record{at(now, prepare)}, []string{"begins preparing"}},
		"a command alone":          {onLogA(prepared()), []message.Record{upgrade}, []string{"upgrade: " + lostPast}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := c.journal
			got := answers(&j, c.records...)
			for i := range max(len(got), len(c.want)) {
				if i >= len(got) || i >= len(c.want) || got[i] != c.want[i] {
					t.Fatalf("it replies %q, not %q", got, c.want)
				}
			}
			if err := j.check(); err != nil || j.Log != "B" {
				t.Errorf("the journal of log %s would not be read again: %v", j.Log, err)
			}
		})
	}
}

// TestRestoredNeverTwice checks that no action of a run is taken twice, whatever commands
// of the run a restored log repeats.
func TestRestoredNeverTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		did := map[message.Action]int{}
		var j Journal
		seq := uint64(10)
		for life := range rapid.IntRange(1, 5).Draw(rt, "lives of the log") {
			name := string(rune('A' + life))
			show := func(r message.Record) {
				next, refused := j.receive(ofLog(name, r), "h01", "boot-1", now)
				if refused != nil {
					return
				}
				if j = next; j.Phase == Upgrading || j.Phase == Rebooting {
					did[j.Action]++
					j = j.answer(message.ResultOf(rapid.SampledFrom([]string{"done", "reboot-required", "it failed"}).Draw(rt, "result")))
				}
				if j.Phase == Preparing {
					j = j.answer(message.ResultOf("done"))
				}
				j = j.after(DoReply, 0, nil, now)
			}
			show(prepareAt(10, later, "h01"))
			for range rapid.IntRange(0, 4).Draw(rt, "commands") {
				seq++
				show(commandAt(seq, 10, rapid.SampledFrom([]message.Action{message.Upgrade, message.Reboot}).Draw(rt, "command"), "h01"))
			}
		}
		if did[message.Upgrade] > 1 || did[message.Reboot] > 1 {
			rt.Errorf("it did %v", did)
		}
	})
}
