package decide

import (
	"errors"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

var (
	now   = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	later = now.Add(time.Hour)
)

// late is the refusal of a command that was sent before not-after.
const late = "not-after 2026-11-21T01:00:00Z has passed: it is 2026-11-21T01:00:00Z by this host's clock, and the command was sent at 2026-11-21T00:59:00Z by the site's"

// prepared is the journal of a host that has answered prepare of run 10.
func prepared() Journal {
	return Journal{Run: 10, NotAfter: later, Seq: 10, Action: message.Prepare, Phase: Answered, BootID: "boot-1", Result: message.ResultOf("done")}
}

func upgradedWith[S ~string](result S) Journal {
	return Journal{Run: 10, NotAfter: later, Seq: 11, Action: message.Upgrade, Phase: Answered, BootID: "boot-1", Result: message.ResultOf(string(result))}
}

func commandAt(seq, run uint64, action message.Action, host string) message.Record {
	return message.Record{Seq: seq, Time: now.Add(-time.Minute), Kind: message.CommandHost, Run: run, Body: message.Command{Action: action, Host: host}.Encode()}
}

func prepareAt(seq uint64, end time.Time, hosts ...string) message.Record {
	return message.Record{Seq: seq, Time: now.Add(-time.Minute), Kind: message.CommandAll, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: end}.Encode()}
}

func inEpoch7(j Journal) Journal {
	j.Epoch = 7
	return j
}

func ofEpoch(epoch uint64, r message.Record) message.Record {
	r.Epoch = epoch
	return r
}

// TestReceive checks which commands count.
func TestReceive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		journal Journal
		record  message.Record
		phase   Phase
		refused string
	}{
		"prepare":                             {Journal{}, prepareAt(10, later, "h01", "h02"), Preparing, ""},
		"prepare of other hosts":              {Journal{}, prepareAt(10, later, "h02"), "", "the run is of other hosts"},
		"prepare past not-after":              {Journal{}, prepareAt(10, now, "h01"), "", late},
		"prepare again":                       {prepared(), prepareAt(10, later, "h01"), "", "the command was accepted before"},
		"prepare of an older run":             {prepared(), prepareAt(9, later, "h01"), "", "the command was accepted before"},
		"prepare of a new run":                {upgradedWith("no space left"), prepareAt(20, later, "h01"), Preparing, ""},
		"upgrade":                             {prepared(), commandAt(11, 10, message.Upgrade, "h01"), Upgrading, ""},
		"upgrade of another host":             {prepared(), commandAt(11, 10, message.Upgrade, "h02"), "", "the command is for h02"},
		"upgrade of another run":              {prepared(), commandAt(11, 9, message.Upgrade, "h01"), "", "the command is of run 9, and this host prepared run 10"},
		"upgrade without prepare":             {Journal{}, commandAt(11, 10, message.Upgrade, "h01"), "", "the command is of run 10, and this host prepared run 0"},
		"upgrade after an upgrade":            {upgradedWith(message.Done), commandAt(12, 10, message.Upgrade, "h01"), "", `the last action was upgrade with result "done"`},
		"upgrade past not-after":              {expired(prepared()), commandAt(11, 10, message.Upgrade, "h01"), "", late},
		"upgrade of the same epoch":           {inEpoch7(prepared()), ofEpoch(7, commandAt(11, 10, message.Upgrade, "h01")), Upgrading, ""},
		"upgrade of an epoch before":          {inEpoch7(prepared()), ofEpoch(6, commandAt(11, 10, message.Upgrade, "h01")), Answering, ""},
		"upgrade of an epoch after":           {inEpoch7(prepared()), ofEpoch(8, commandAt(11, 10, message.Upgrade, "h01")), Answering, ""},
		"reboot of an epoch before":           {inEpoch7(upgradedWith(message.RebootRequired)), ofEpoch(6, commandAt(12, 10, message.Reboot, "h01")), Answering, ""},
		"reboot that was asked for":           {upgradedWith(message.RebootRequired), commandAt(12, 10, message.Reboot, "h01"), Rebooting, ""},
		"reboot that was not asked for":       {upgradedWith(message.Done), commandAt(12, 10, message.Reboot, "h01"), "", `the last action was upgrade with result "done"`},
		"reboot before the upgrade":           {prepared(), commandAt(12, 10, message.Reboot, "h01"), "", `the last action was prepare with result "done"`},
		"prepare of another log":              {expired(prepared()), ofLog("B", prepareAt(3, later, "h01")), Preparing, ""},
		"prepare of others on another log":    {prepared(), ofLog("B", prepareAt(30, later, "h02")), "", "the run is of other hosts"},
		"upgrade of another log":              {prepared(), ofLog("B", commandAt(11, 10, message.Upgrade, "h01")), Answering, ""},
		"upgrade of others on another log":    {prepared(), ofLog("B", commandAt(11, 10, message.Upgrade, "h02")), "", "the run is of other hosts"},
		"prepare after a position alone":      {Journal{Seq: 9}, prepareAt(10, later, "h01"), Preparing, ""},
		"prepare before a position alone":     {Journal{Seq: 10}, prepareAt(10, later, "h01"), "", "the command was accepted before"},
		"upgrade after a journal was lost":    {lost(prepared()), commandAt(11, 10, message.Upgrade, "h01"), Answering, ""},
		"reboot after a journal was lost":     {lost(upgradedWith("")), commandAt(12, 10, message.Reboot, "h01"), Answering, ""},
		"upgrade of lost journal, too late":   {lost(expired(prepared())), commandAt(11, 10, message.Upgrade, "h01"), "", late},
		"upgrade after a prepare that failed": {failed(prepared()), commandAt(11, 10, message.Upgrade, "h01"), "", `the last action was prepare with result "no mirror"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next, refused := c.journal.receive(c.record, "h01", "boot-1", now)
			if text := errorText(refused); text != c.refused {
				t.Fatalf("refused with %q, not %q", text, c.refused)
			}
			if refused != nil && next != c.journal {
				t.Errorf("a command that was refused changed the journal to %+v", next)
			}
			if refused == nil && next.Phase != c.phase {
				t.Errorf("phase is %q, not %q", next.Phase, c.phase)
			}
			if refused == nil && next.check() != nil {
				t.Errorf("the journal would not be read again: %v", next.check())
			}
			if refused == nil && (next.Log != c.record.Log || next.BootID != "boot-1") {
				t.Errorf("the journal is of log %q and boot %q", next.Log, next.BootID)
			}
		})
	}
}

func expired(j Journal) Journal {
	j.NotAfter = now
	return j
}

// lost is the journal of a host that had no journal when it got this command.
func lost(j Journal) Journal {
	j.Result = cannotKnow(unknownPast)
	return j
}

func ofLog(log string, r message.Record) message.Record {
	r.Log = log
	return r
}

func failed(j Journal) Journal {
	j.Result = message.ResultOf("no mirror")
	return j
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAfter checks the next action and the reply for each outcome.
func TestAfter(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		phase   Phase
		done    Do
		outcome strategy.Outcome
		err     error
		now     time.Time
		next    Phase
		result  string
	}{
		"prepare done":                    {Preparing, DoPrepare, 0, nil, now, Answering, "done"},
		"prepare failed":                  {Preparing, DoPrepare, 0, broken, now, Answering, "broken"},
		"upgrade done":                    {Upgrading, DoUpgrade, strategy.Done, nil, now, Verifying, ""},
		"upgrade wants a reboot":          {Upgrading, DoUpgrade, strategy.RebootRequired, nil, now, Answering, "reboot-required"},
		"upgrade failed":                  {Upgrading, DoUpgrade, 0, broken, now, RollingBack, "broken"},
		"upgrade with no known outcome":   {Upgrading, DoUpgrade, 0, nil, now, Answering, "the strategy gave the unknown outcome 0"},
		"resume says done":                {Upgrading, DoResume, strategy.Done, nil, now, Verifying, ""},
		"resume says again":               {Upgrading, DoResume, strategy.NotDone, nil, now, Upgrading, ""},
		"resume says again, but too late": {Upgrading, DoResume, strategy.NotDone, nil, later, Answering, "the upgrade was interrupted before it had an effect, and not-after has passed"},
		"verified":                        {Verifying, DoVerify, 0, nil, now, Answering, "done"},
		"verify failed":                   {Verifying, DoVerify, 0, broken, now, RollingBack, "broken"},
		"rolled back":                     {RollingBack, DoRollback, 0, nil, now, Answering, "; rolled back"},
		"booted":                          {Rebooting, DoBooted, 0, nil, now, Verifying, ""},
		"reboot accepted":                 {Rebooting, DoReboot, 0, nil, now, Rebooting, ""},
		"reboot failed":                   {Rebooting, DoReboot, 0, broken, now, Answering, "broken"},
		"reboot awaited in vain":          {Rebooting, DoAwaitReboot, 0, broken, now, Answering, "broken"},
		"too late to reboot":              {Rebooting, DoMissReboot, 0, nil, now, Answering, "the worker was interrupted before it asked for the reboot, and not-after has passed"},
		"an error that says done":         {Preparing, DoPrepare, 0, errors.New("done"), now, Answering, "failed: done"},
		"an error that says nothing":      {Preparing, DoPrepare, 0, errors.New(""), now, Answering, "failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := Journal{Run: 10, NotAfter: later, Seq: 11, Action: message.Upgrade, Phase: c.phase}
			next := j.after(c.done, c.outcome, c.err, c.now)
			if next.Phase != c.next || next.Result.String() != c.result {
				t.Errorf("phase %q with result %q, not %q with %q", next.Phase, next.Result, c.next, c.result)
			}
		})
	}
}

// TestNothingWasChanged checks the reply of an upgrade that has failed and changed nothing,
// by the end of its rollback: it was not rolled back, and the system that runs is well.
func TestNothingWasChanged(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		outcome strategy.Outcome
		err     error
		next    Phase
		result  string
	}{
		"nothing to undo":   {strategy.Done, nil, Answering, "broken; nothing was changed"},
		"no rollback":       {0, strategy.ErrNoRollback, Answering, "broken; nothing was changed"},
		"rollback fails":    {0, errors.New("no mirror"), Answering, "broken; rollback failed: no mirror"},
		"it needs a reboot": {strategy.RebootRequired, nil, Rebooting, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := Journal{Run: 10, NotAfter: later, Seq: 11, Action: message.Upgrade, Phase: Upgrading}
			j = j.after(DoUpgrade, 0, Unchanged(broken), now)
			if j.Phase != RollingBack || !j.Unchanged || j.Result.Text != "broken" {
				t.Fatalf("the failure leaves %+v", j)
			}
			s, _ := State{Journal: j, Unconfirmed: WholeBoot}.After(Ended{Do: DoRollback, Outcome: c.outcome, Err: c.err}, "boot-1", now)
			if s.Phase != c.next || s.Result.String() != c.result || s.Result.Outcome == message.RolledBack {
				t.Errorf("phase %q with result %q, not %q with %q", s.Phase, s.Result, c.next, c.result)
			}
			if s.Unconfirmed != WholeBoot {
				t.Error("the system that runs is not confirmed")
			}
		})
	}
}

// TestNext checks that an interrupted upgrade is resumed, never started again, and
// that only a new boot id proves a reboot.
func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase  Phase
		reboot RebootState
		fresh  bool
		boot   string
		now    time.Time
		want   Do
	}{
		"nothing to do":                         {Answered, NotAsked, true, "boot-1", now, Nothing},
		"upgrade that begins":                   {Upgrading, NotAsked, true, "boot-1", now, DoUpgrade},
		"upgrade interrupted":                   {Upgrading, NotAsked, false, "boot-1", now, DoResume},
		"upgrade that rebooted":                 {Upgrading, NotAsked, false, "boot-2", now, DoResume},
		"reboot that begins":                    {Rebooting, NotAsked, true, "boot-1", now, DoReboot},
		"reboot that begins late":               {Rebooting, NotAsked, true, "boot-1", later, DoReboot},
		"reboot not asked for":                  {Rebooting, NotAsked, false, "boot-1", now, DoReboot},
		"reboot not asked for, too late":        {Rebooting, NotAsked, false, "boot-1", later, DoMissReboot},
		"reboot asked for by a worker before":   {Rebooting, Asked, false, "boot-1", now, DoReboot},
		"reboot asked for before, too late":     {Rebooting, Asked, false, "boot-1", later, DoAwaitReboot},
		"reboot asked for by this worker":       {Rebooting, Asked, true, "boot-1", now, DoAwaitReboot},
		"reboot asked for twice":                {Rebooting, AskedAgain, false, "boot-1", now, DoAwaitReboot},
		"reboot accepted":                       {Rebooting, Accepted, true, "boot-1", now, DoAwaitReboot},
		"reboot accepted before":                {Rebooting, Accepted, false, "boot-1", now, DoAwaitReboot},
		"reboot happened":                       {Rebooting, Accepted, false, "boot-2", later, DoBooted},
		"reboot happened that nobody asked for": {Rebooting, NotAsked, false, "boot-2", later, DoBooted},
		"reply not sent":                        {Answering, NotAsked, false, "boot-1", now, DoReply},
		"verify interrupted":                    {Verifying, NotAsked, false, "boot-1", now, DoVerify},
		"rollback interrupted":                  {RollingBack, NotAsked, false, "boot-1", now, DoRollback},
		"prepare interrupted":                   {Preparing, NotAsked, false, "boot-1", now, DoPrepare},
		"before the first start":                {Idle, NotAsked, false, "boot-1", now, Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := Journal{Phase: c.phase, Reboot: c.reboot, BootID: "boot-1", NotAfter: later}
			if got := j.next(c.fresh, c.boot, c.now); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}

// TestReleaseStaysPinned checks that each command of a run goes by the release that its prepare named,
// once the host has its text, and that a run without one has none.
func TestReleaseStaysPinned(t *testing.T) {
	t.Parallel()
	pinned := release.Release{Data: []byte(`{"a":1}`)}.Pin("spring")
	prepare := prepareAt(10, later, "h01")
	prepare.Release = pinned.Ref().String()
	s, err := State{}.Receive(prepare, Seen{Host: "h01"}, now)
	if err != nil || s.next(true, "", now) != DoGetRelease || s.Release.Ref() != pinned.Ref() || len(s.Release.Text) != 0 {
		t.Fatalf("after prepare the journal is %+v, %v", s.Journal, err)
	}
	failed, _ := s.After(Ended{Do: DoGetRelease, Err: errors.New("no such release")}, "", now)
	if failed.Phase != Answering || failed.Result.Outcome != message.Failed {
		t.Errorf("without its text the host answers %+v", failed.Result)
	}
	s, _ = s.After(Ended{Do: DoGetRelease, Release: &pinned}, "", now)
	if s.Phase != Preparing || s.next(true, "", now) != DoPrepare {
		t.Fatalf("with its text the journal is %+v", s.Journal)
	}
	s, _ = s.After(Ended{Do: DoPrepare}, "", now)
	s, _ = s.After(Ended{Do: DoReply}, "", now)
	for _, c := range []message.Record{commandAt(11, 10, message.Upgrade, "h01"), commandAt(12, 10, message.Reboot, "h01")} {
		if s, err = s.Receive(c, Seen{Host: "h01"}, now); err != nil || s.Release == nil || string(s.Release.Text) != string(pinned.Text) {
			t.Fatalf("after command %d the journal is %+v, %v", c.Seq, s.Journal, err)
		}
		s.Phase, s.Result = Answered, message.Result{Outcome: message.RebootRequired}
	}
	if again := s.again(); again.Release == nil || string(again.Release.Text) != string(pinned.Text) {
		t.Errorf("on a restored log the journal is %+v", again)
	}
	if s, err = s.Receive(prepareAt(20, later, "h01"), Seen{Host: "h01"}, now); err != nil || s.Release != nil {
		t.Errorf("the next run has the release %+v, %v", s.Release, err)
	}
	prepare.Seq, prepare.Release = 30, "spring"
	if _, err = s.Receive(prepare, Seen{Host: "h01"}, now); err == nil {
		t.Error("a prepare with a release without its digest is received")
	}
}
