package run

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// site is a log with its fold, for tests that write each record by hand.
type site struct {
	t      *testing.T
	ledger Ledger
	log    []message.Record
	now    time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	return &site{t: t, now: epoch}
}

// add folds a record, and returns its sequence and why it changed nothing.
func (s *site) add(r message.Record) (uint64, error) {
	r.Seq, r.Time = uint64(len(s.log)+1), s.now
	s.log = append(s.log, r)
	return r.Seq, s.ledger.Fold(r.Decode())
}

// must adds a record that changes something.
func (s *site) must(r message.Record) uint64 {
	s.t.Helper()
	seq, err := s.add(r)
	if err != nil {
		s.t.Fatalf("record %d: %v", seq, err)
	}
	return seq
}

func (s *site) event(run uint64, e message.Event) uint64 {
	s.t.Helper()
	return s.must(message.Record{Kind: message.EventRecord, Run: run, Body: message.EncodeEvent(e)})
}

// open opens a run whose hosts may all be out of service at once.
func (s *site) open(environment string, roster []message.Entry, asOf uint64, hosts ...string) uint64 {
	s.t.Helper()
	return s.event(0, message.Opened{
		Environment: environment, Members: hosts, Roster: roster, RosterAsOf: asOf, Rollout: rollout.Default(len(hosts)), NotAfter: s.now.Add(4 * time.Hour),
	})
}

// prepare sends the prepare of a run and has all its hosts answer; it returns the id.
func (s *site) prepare(environment string, hosts ...string) uint64 {
	s.t.Helper()
	id := s.must(message.Record{
		Kind: message.CommandAll, Environment: environment, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: s.now.Add(4 * time.Hour)}.Encode(),
	})
	for _, host := range hosts {
		s.reply(id, host, message.Prepare)
	}
	return id
}

func (s *site) reply(run uint64, host string, action message.Action) uint64 {
	s.t.Helper()
	return s.must(message.Record{
		Kind: message.ReplyRecord, Run: run, Epoch: 1, Host: host, Action: action, Body: message.Reply{Action: action, Result: message.Result{Outcome: message.Done}}.Encode(),
	})
}

func (s *site) upgrade(run uint64, host string) {
	s.t.Helper()
	s.must(message.Record{Kind: message.CommandHost, Run: run, Host: host, Body: message.Command{Action: message.Upgrade, Host: host}.Encode()})
}

// owing opens a run of b1 in basel and ends it before the host has answered upgrade.
func (s *site) owing() (run uint64) {
	s.t.Helper()
	s.open("basel", nil, 0, "b1")
	run = s.prepare("basel", "b1")
	s.upgrade(run, "b1")
	s.event(run, message.Finished{Result: "aborted"})
	return run
}

func statusOf(t *testing.T, e *Environment, host string) Status {
	t.Helper()
	h, known := e.Newest().Host(host)
	if !known {
		t.Fatalf("%s is not in run %d", host, e.Newest().Key())
	}
	return h.Status
}

// TestSideBySide checks that each record changes the run that it names and no other, whichever
// was opened or prepared last.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opened := s.open("basel", nil, 0, "b1")
	s.open("", nil, 0, "h1")
	s.open("bern", nil, 0, "c1")
	def, bern := s.prepare("", "h1"), s.prepare("bern", "c1")
	basel := s.prepare("basel", "b1")
	if ids := runsUnderWay(&s.ledger); !reflect.DeepEqual(ids, []uint64{def, bern, basel}) {
		t.Errorf("in progress are %v, want %v in the order of their ids", ids, []uint64{def, bern, basel})
	}
	s.upgrade(def, "h1")
	s.event(bern, message.Aborted{By: "ann"})
	s.reply(def, "h1", message.Upgrade)
	for name, want := range map[string]Status{"": Upgraded, "basel": Prepared, "bern": Prepared} {
		if got := statusOf(t, s.ledger.Of(name), map[string]string{"": "h1", "basel": "b1", "bern": "c1"}[name]); got != want {
			t.Errorf("the host of %q is %s, want %s", name, got, want)
		}
	}
	if s.ledger.Of("basel").Current().IsAborting() || !s.ledger.Of("bern").Current().IsAborting() {
		t.Error("the abort of the run of bern has ended another, or not its own")
	}
	for _, id := range []uint64{opened, basel} {
		if r, e := s.ledger.Run(id); e != s.ledger.Of("basel") || r != e.Newest() {
			t.Errorf("run %d is that of %+v", id, e)
		}
	}
	if e := s.ledger.MemberOf("c1"); e != s.ledger.Of("bern") {
		t.Errorf("c1 is a member of the run of %+v", e)
	}
	s.event(def, message.Finished{Result: "completed"})
	if s.ledger.Current() != nil || s.ledger.Ended() == nil || len(s.ledger.UnderWay()) != 2 {
		t.Errorf("after the end of a run %v are in progress", runsUnderWay(&s.ledger))
	}
}

func runsUnderWay(l *Ledger) (ids []uint64) {
	for _, e := range l.UnderWay() {
		ids = append(ids, e.Current().Key())
	}
	return ids
}

// TestUnknownRun checks that a record of a run of which the log knows nothing any more changes
// no other run, and is counted.
func TestUnknownRun(t *testing.T) {
	t.Parallel()
	for name, environments := range map[string][]string{"one environment": {""}, "two environments": {"", "basel"}} {
		s := newSite(t)
		s.event(0, message.Skipped{To: 9})
		for n, environment := range environments {
			s.open(environment, nil, 0, []string{"h1", "b1"}[n])
			s.prepare(environment, []string{"h1", "b1"}[n])
		}
		before, ignored := *s.ledger.Newest(), s.ledger.Ignored
		for n, e := range []message.Event{message.Finished{Result: "failed"}, message.Aborted{}, message.Paused{}, message.Silent{Hosts: []string{"h1"}}} {
			if _, err := s.add(message.Record{Kind: message.EventRecord, Run: 1, Body: message.EncodeEvent(e)}); err == nil || !strings.Contains(err.Error(), "run 1") {
				t.Errorf("%s: %s of an unknown run is folded: %v", name, message.Name(e), err)
			}
			if got := s.ledger.Ignored; got != ignored+uint64(n)+1 {
				t.Errorf("%s: %d records are counted as ignored, want %d", name, got-ignored, n+1)
			}
		}
		if !reflect.DeepEqual(before, *s.ledger.Newest()) {
			t.Errorf("%s: records of an unknown run have changed run %d", name, before.ID)
		}
	}
}

// TestClockSetBackForAll checks that each run under way notices a clock that was set back,
// whichever run the next record is of.
func TestClockSetBackForAll(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.now = epoch.Add(24 * time.Hour)
	s.open("", nil, 0, "h1")
	s.open("basel", nil, 0, "b1")
	s.prepare("basel", "b1")
	def := s.prepare("", "h1")
	s.now = epoch
	s.event(def, message.Paused{By: "ann"})
	for _, e := range s.ledger.UnderWay() {
		if want := epoch.Add(4 * time.Hour); !e.Current().NotAfter.Equal(want) {
			t.Errorf("run %d ends by %s, want %s", e.Current().Key(), e.Current().NotAfter, want)
		}
	}
	if s.ledger.Last() != s.ledger.Of("") {
		t.Errorf("the last record is of %+v", s.ledger.Last())
	}
	if len(s.ledger.Touched()) != 2 {
		t.Errorf("%d environments are touched, want both", len(s.ledger.Touched()))
	}
}

// TestHostMoves checks that a host that owes something is in one roster at each moment: it
// leaves that of its old environment when the run of another one names it, with what it owes.
func TestHostMoves(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.owing()
	entries := s.ledger.Opening("bern", []string{"b1", "c1"}, nil, nil)
	if len(entries) != 1 || entries[0].Host != "b1" || entries[0].Owes.Answer != message.Upgrade || entries[0].Run != run {
		t.Fatalf("the run of bern is opened with %+v", entries)
	}
	if in := rostersWithB1(&s.ledger); !reflect.DeepEqual(in, []string{"basel"}) {
		t.Errorf("b1 is out of service in %q before its move", in)
	}
	s.open("bern", entries, 0, "b1", "c1")
	if in := rostersWithB1(&s.ledger); !reflect.DeepEqual(in, []string{"bern"}) {
		t.Errorf("b1 is out of service in %q after its move", in)
	}
	if got := s.ledger.Of("basel").Roster().Watched(); len(got) > 0 {
		t.Errorf("basel still watches %v", got)
	}
	bern := s.prepare("bern", "b1", "c1")
	if in := rostersWithB1(&s.ledger); in != nil {
		t.Errorf("b1 has answered prepare of run %d and is out of service in %q", bern, in)
	}
}

// rostersWithB1 returns the environments in which b1 is out of service.
func rostersWithB1(l *Ledger) (names []string) {
	for _, e := range l.Environments() {
		if e.Roster().OutOfService()["b1"] != "" {
			names = append(names, e.Name)
		}
	}
	return names
}

// TestMemberOfAnotherRun checks that a run is not opened with a host that is a member of a run
// under way, or counts in its stages: its commands would be of two runs.
func TestMemberOfAnotherRun(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]message.Opened{
		"a member":        {Members: []string{"b1", "c1"}, Rollout: rollout.Default(2)},
		"one that counts": {Members: []string{"c1"}, Roster: []message.Entry{{Host: "b1", Stage: "all"}}, Rollout: rollout.Default(1)},
	} {
		s := newSite(t)
		s.open("basel", nil, 0, "b1")
		e.Environment, e.NotAfter = "bern", epoch.Add(time.Hour)
		_, err := s.add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(e)})
		if err == nil || !strings.Contains(err.Error(), "b1 is a member of run 1") || s.ledger.Of("bern").Newest() != nil || s.ledger.Ignored != 1 {
			t.Errorf("%s: the run is opened: %v", name, err)
		}
	}
}

// TestAnsweredWhileOpening checks that an answer that comes while the next run is being opened
// counts there, whether the run before is still on the log or not: both give the same state.
func TestAnsweredWhileOpening(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{"the same environment": "basel", "another environment": "bern"} {
		s := newSite(t)
		run := s.owing()
		entries, asOf := s.ledger.Opening(to, []string{"b1"}, nil, nil), s.ledger.RosterAsOf(to)
		late := s.reply(run, "b1", message.Upgrade)
		s.open(to, entries, asOf, "b1")
		if in := rostersWithB1(&s.ledger); in != nil {
			t.Errorf("%s: b1 has answered and is out of service in %q", name, in)
		}
		id := s.prepare(to, "b1")
		var trimmed Ledger
		for _, r := range s.log[late-1:] {
			_ = trimmed.Fold(r.Decode())
		}
		if whole, _ := s.ledger.Run(id); !reflect.DeepEqual(whole, trimmed.Of(to).Newest()) {
			t.Errorf("%s: the trimmed log gives another state", name)
		}
	}
}

// TestAnsweredTooLateWhileOpening checks that the answer to a run before the newest one counts
// neither before a run of another environment is opened nor while that is written.
func TestAnsweredTooLateWhileOpening(t *testing.T) {
	t.Parallel()
	for _, while := range []bool{false, true} {
		s := newSite(t)
		run := s.owing()
		s.event(s.open("basel", s.ledger.Opening("basel", []string{"b2"}, nil, nil), s.ledger.RosterAsOf("basel"), "b2"), message.Finished{Result: "aborted"})
		answer := func() {
			_, _ = s.add(message.Record{Kind: message.ReplyRecord, Run: run, Epoch: 1, Host: "b1", Action: message.Upgrade, Body: message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: message.Done}}.Encode()})
		}
		if !while {
			answer()
		}
		entries, asOf := s.ledger.Opening("bern", []string{"b1"}, nil, nil), s.ledger.RosterAsOf("bern")
		if while {
			answer()
		}
		s.open("bern", entries, asOf, "b1")
		if command, of := s.ledger.Of("bern").Roster().From(0)[0].Unfinished(); command != message.Upgrade || of != run {
			t.Errorf("while the run is opened: %t: b1 has not answered %q of run %d, want upgrade of run %d", while, command, of, run)
		}
	}
}

// TestSettled checks which answers show that a host has finished what it owed.
func TestSettled(t *testing.T) {
	t.Parallel()
	owes := message.Entry{Host: "h1", Since: epoch, Owes: message.Debt{Answer: message.Upgrade}, Run: 41, Epoch: 5}
	before := message.Entry{Host: "h1", Since: epoch, Owes: message.Debt{Answer: message.Upgrade}, Run: 41}
	works := message.Entry{Host: "h1", Works: message.Reboot, Run: 41, Epoch: 5}
	for name, c := range map[string]struct {
		entry message.Entry
		reply answer
		want  message.Entry
	}{
		"the answer":                     {owes, answer{9, 41, 5, message.Upgrade, false}, message.Entry{Host: "h1"}},
		"it does not know":               {owes, answer{9, 41, 5, message.Upgrade, true}, message.Entry{Host: "h1", Since: epoch, Owes: message.Debt{Look: true}}},
		"another worker answers":         {owes, answer{9, 41, 6, message.Upgrade, false}, message.Entry{Host: "h1", Since: epoch, Owes: message.Debt{Look: true}}},
		"a later prepare":                {owes, answer{9, 57, 5, message.Prepare, false}, message.Entry{Host: "h1"}},
		"its own prepare":                {owes, answer{9, 41, 5, message.Prepare, false}, owes},
		"the answer to an older run":     {before, answer{9, 41, 5, message.Upgrade, false}, before},
		"another run":                    {owes, answer{9, 40, 5, message.Upgrade, false}, owes},
		"before the roster was made":     {owes, answer{7, 41, 5, message.Upgrade, false}, owes},
		"released, and it has finished":  {works, answer{9, 41, 5, message.Reboot, true}, message.Entry{Host: "h1"}},
		"it owes no answer, but a look":  {message.Entry{Host: "h1", Since: epoch, Owes: message.Debt{Look: true}}, answer{9, 57, 5, message.Prepare, false}, message.Entry{Host: "h1", Since: epoch, Owes: message.Debt{Look: true}}},
		"and it has fallen silent since": {message.Entry{Host: "h1", Since: epoch, Silent: true, Owes: owes.Owes, Run: 41, Epoch: 5}, answer{9, 41, 5, message.Upgrade, false}, message.Entry{Host: "h1", Since: epoch, Silent: true}},
	} {
		l := Ledger{answers: map[string][]answer{"h1": {{9, 3, 5, message.Upgrade, false}, c.reply}}}
		if got := l.settled(message.Opened{Roster: []message.Entry{c.entry}, RosterAsOf: 8}).Roster[0]; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := l.settled(message.Opened{Roster: []message.Entry{c.entry}}).Roster[0]; got != c.entry {
			t.Errorf("%s: a roster that takes all records into account becomes %+v", name, got)
		}
	}
}

// TestCarried checks that a log that begins with what is carried of an environment has the
// same windows and the same hosts out of service, and that a person can release them.
func TestCarried(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.owing()
	s.open("", nil, 0, "h1")
	carried := s.ledger.Carrying(s.ledger.Of("basel"))
	carried.Considered = epoch
	from := s.event(0, carried)
	var trimmed Ledger
	_ = trimmed.Fold(s.log[from-1].Decode())
	for which, l := range map[string]*Ledger{"whole": &s.ledger, "trimmed": &trimmed} {
		e := l.Of("basel")
		if e.Newest() != nil || e.Key() != run || !e.Minds("b1") || e.Outdated("b1", false) || e.Ended() != nil || !e.Considered().Equal(epoch) || !reflect.DeepEqual(rostersWithB1(l), []string{"basel"}) {
			t.Errorf("%s log: %+v, b1 is out of service in %v", which, e, rostersWithB1(l))
		}
		if decision := e.Next(s.now, Seen{Request: &Request{Ask: Abort}}); decision.Act != Refuse || !strings.Contains(decision.Refused.Error(), "no run is in progress; to start one") {
			t.Errorf("%s log: abort comes to %+v", which, decision)
		}
		if decision := e.Next(s.now, Seen{Request: &Request{Ask: Release, Host: "b1", By: "ann"}}); decision.Act != Note || decision.Event != (message.Released{Host: "b1", By: "ann"}) {
			t.Errorf("%s log: release comes to %+v", which, decision)
		}
	}
	s.event(run, message.Released{Host: "b1", By: "ann"})
	if in := rostersWithB1(&s.ledger); in != nil {
		t.Errorf("b1 is released and out of service in %q", in)
	}
	if _, err := s.add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Carried{Run: 7})}); err == nil || s.ledger.Current() == nil {
		t.Error("a run in progress is carried")
	}
}

// TestTurns checks who is asked when: the run that let a host leave service longest ago comes
// first, one that waits is not asked before its time or a record of its own, and one whose
// decision was not carried out stays awake.
func TestTurns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open("basel", nil, 0, "b1", "b2")
	s.open("bern", nil, 0, "c1", "c2")
	basel, bern := s.prepare("basel", "b1", "b2"), s.prepare("bern", "c1", "c2")
	var turns Turns
	turns.Wake(s.ledger.Environments()...)
	asked := func() (names []string) {
		for e := range turns.Next(s.now, func(*Environment) Seen { return Seen{} }) {
			names = append(names, e.Name)
		}
		return names
	}
	want := func(when string, names ...string) {
		t.Helper()
		if got := asked(); !reflect.DeepEqual(got, names) {
			t.Errorf("%s %q are asked, want %q", when, got, names)
		}
	}
	want("at first", "basel", "bern")
	want("while their commands are not on the log", "basel", "bern")
	s.upgrade(basel, "b1")
	turns.Wake(s.ledger.Touched()...)
	want("after a host of basel", "bern", "basel") // One may be out of service at once: basel waits.
	s.upgrade(bern, "c1")
	turns.Wake(s.ledger.Touched()...)
	want("after a host of bern", "bern")
	want("while both wait")
	if until := turns.Until(); !until.After(s.now) {
		t.Fatalf("they wait until %s", until)
	}
	s.now = turns.Until()
	want("when their time has come", "basel", "bern")
	s.reply(bern, "c1", message.Upgrade)
	turns.Wake(s.ledger.Touched()...)
	want("after an answer, and with a decision of basel that is not on the log", "basel", "bern")
}
