package decide

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestTrial checks the rules of a trial.
func TestTrial(t *testing.T) {
	t.Parallel()
	now := time.Now()
	runs := func(version string) strategy.Boot { return strategy.Boot{Running: version} }
	install := func(b Boots, versions ...string) Boots { return b.commanded(true, versions, now) }
	for name, c := range map[string]struct {
		after Boots
		boot  strategy.Boot
		want  bool
	}{
		"no run has checks":                  {Boots{}.commanded(false, []string{"2"}, now), runs("2"), false},
		"the run has checks":                 {install(Boots{}, "2"), runs("2"), true},
		"the old system runs":                {install(Boots{}, "2"), runs("1"), false},
		"the machine went back to it":        {install(Boots{}, "2"), strategy.Boot{Running: "2", Failed: "3"}, false},
		"the host does not tell what runs":   {install(Boots{}, "2"), strategy.Boot{}, false},
		"the next run has checks":            {install(Boots{}, "2").commanded(true, nil, now), runs("2"), true},
		"the next run has none":              {install(Boots{}, "2").commanded(false, nil, now), runs("2"), false},
		"the next run installs another":      {install(install(Boots{}, "2"), "3"), runs("2"), true},
		"they passed":                        {install(Boots{}, "2").endTrial(message.Task{Run: 1}), runs("2"), false},
		"they passed, and the next prepares": {install(Boots{}, "2").endTrial(message.Task{Run: 1}).commanded(true, nil, now), runs("2"), false},
		"they passed before the next":        {install(install(Boots{}, "2").endTrial(message.Task{Run: 1}), "3"), runs("2"), false},
		"it was given up":                    {install(Boots{}, "2", "3").reject(Rejected{Version: "2"}), runs("2"), false},
		"the other one was given up":         {install(Boots{}, "2", "3").reject(Rejected{Version: "2"}), runs("3"), true},
		"another worker has installed it":    {Boots{}.takenOver(now.Add(1)), runs("2"), true},
		"that run is over":                   {Boots{}.takenOver(now), runs("2"), false},
		"another worker, in no run":          {install(Boots{}, "2").takenOver(time.Time{}), runs("2"), false},
		"it gave up what another installed":  {Boots{}.takenOver(now.Add(1)).reject(Rejected{Version: "2"}), runs("1"), false},
	} {
		if got := c.after.OnTrial(c.boot, now); got != c.want {
			t.Errorf("%s: %+v is on trial: %t, with %+v", name, c.boot, got, c.after.Trial)
		}
	}
	task := message.Task{Run: 1, Kind: message.AfterHost}
	if ended := install(Boots{}, "2").endTrial(task); !ended.PassedIn(task) || ended.commanded(true, nil, now).PassedIn(task) {
		t.Errorf("the next run knows of passed checks: %+v", ended.commanded(true, nil, now).Trial)
	}
	many := Boots{}
	for range maxOnTrial + 10 {
		many = install(many, time.Now().String())
	}
	if n := len(many.Trial.Versions); n > maxOnTrial+1 {
		t.Errorf("%d versions are remembered", n)
	}
}

// rules is a worker whose machine starts and which gets commands, without any file.
type rules struct {
	t    *testing.T
	s    State
	seen Seen
	now  time.Time
	seq  uint64
}

// boot starts the machine and its worker anew.
func (r *rules) boot() {
	r.seen.BootID += "+"
	r.s = Start(r.s.Journal, r.s.Blank, r.s.Boots, r.s.Kept, r.seen)
}

// command comes from the site, and is begun.
func (r *rules) command(action message.Action, checks bool, installs string) {
	r.t.Helper()
	r.seq++
	record := message.Record{Seq: r.seq, Time: r.now, Kind: message.CommandHost, Run: r.s.Run, Checks: checks, Body: message.Command{Action: action, Host: "h01"}.Encode()}
	if action == message.Prepare {
		record.Kind, record.Run = message.CommandAll, 0
		record.Body = message.Command{Action: action, Hosts: []string{"h01"}, NotAfter: r.now.Add(time.Hour)}.Encode()
	}
	r.seen.Prepared = KeptPlan{Run: r.s.Run, RunAt: r.s.RunAt, Plan: message.ChangeSet{Changes: []message.Change{{Name: "image", From: "1", To: installs}}}}
	next, err := r.s.Receive(record, r.seen, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	r.s = next
}

func (r *rules) answers(result string) {
	r.s.Journal = r.s.answer(message.ResultOf(result)).after(DoReply, 0, nil, r.now)
}

func (r *rules) prepare(checks bool) {
	r.t.Helper()
	r.command(message.Prepare, checks, "")
	r.answers("done")
}

// run upgrades the host to a version, in a run with or without checks.
func (r *rules) run(checks bool, version string) {
	r.t.Helper()
	r.prepare(checks)
	r.command(message.Upgrade, checks, version)
	r.answers("done")
}

// does takes actions until one has to do with the system that runs, or no such action is left.
func (r *rules) does(boot strategy.Boot) string {
	for range 5 {
		decision := r.s.Next(r.now, r.seen)
		switch r.s = decision.State; decision.Do {
		case DoAccept:
		case DoConfirm:
			r.s = r.s.Judge(boot, true, r.seen, r.now)
			return map[Confirmation]string{NothingLeft: "leaves it on trial", WholeBoot: "confirms it", GivenUp: "confirms it, and forgets no failure"}[r.s.Unconfirmed]
		default:
			return "goes on to " + string(decision.Do)
		}
	}
	return "decides nothing"
}

// TestRulesOfATrial checks by each rule of a trial what a worker does about the system that has
// started: each row begins with a host that was upgraded from 1 to 2 in a run with checks, and
// has started anew.
func TestRulesOfATrial(t *testing.T) {
	t.Parallel()
	const leaves, confirms = "leaves it on trial", "confirms it"
	runs := func(version string) strategy.Boot { return strategy.Boot{Running: version} }
	task := message.Task{Run: 1, Kind: message.AfterHost, Host: "h01"}
	for name, c := range map[string]struct {
		then func(r *rules)
		boot strategy.Boot
		want string
	}{
		"what a run with checks has installed is on trial":  {func(*rules) {}, runs("2"), leaves},
		"and after each further start":                      {func(r *rules) { r.boot() }, runs("2"), leaves},
		"the old system is not, if the machine starts that": {func(*rules) {}, runs("1"), confirms},
		"what runs is looked at once in a process":          {func(r *rules) { r.does(runs("2")) }, runs("2"), "goes on to nothing"},
		"nobody looks before the upgrade is over": {func(r *rules) {
			r.prepare(true)
			r.command(message.Upgrade, true, "3")
			r.boot()
		}, runs("3"), "goes on to interrupted"},
		"the start of the machine right after the upgrade was taken": {func(r *rules) {
			r.prepare(true)
			r.command(message.Upgrade, true, "3")
			r.answers("reboot-required")
			r.boot()
		}, runs("3"), leaves},
		"the prepare of a run without checks ends it":                  {func(r *rules) { r.prepare(false) }, runs("2"), confirms},
		"the upgrade of a run without checks ends it":                  {func(r *rules) { r.run(false, "3"); r.boot() }, runs("3"), confirms},
		"the prepare of a run with checks does not":                    {func(r *rules) { r.prepare(true) }, runs("2"), leaves},
		"nor does its upgrade, for what was on trial before":           {func(r *rules) { r.run(true, "3"); r.boot() }, runs("2"), leaves},
		"nor the end of the run":                                       {func(r *rules) { r.now = r.now.Add(48 * time.Hour) }, runs("2"), leaves},
		"nor a site that cannot be reached":                            {func(r *rules) { r.seen.Lease = Unanswered }, runs("2"), leaves},
		"checks that have passed end it":                               {func(r *rules) { r.s.Boots = r.s.Boots.endTrial(task) }, runs("2"), confirms},
		"whatever runs":                                                {func(r *rules) { r.s.Boots = r.s.Boots.endTrial(task) }, runs("1"), confirms},
		"what is installed after they have passed is on trial":         {func(r *rules) { r.s.Boots = r.s.Boots.endTrial(task); r.run(true, "3"); r.boot() }, runs("3"), leaves},
		"what the machine went back to is confirmed, on trial or not":  {func(r *rules) { r.run(true, "3"); r.s.Boots = r.s.Boots.reject(Rejected{Version: "3"}); r.boot() }, strategy.Boot{Running: "2", Failed: "3"}, confirms},
		"a person who accepts the version ends it":                     {func(r *rules) { r.seen.Accepted = acceptedAt(r.now.Add(time.Minute), "2") }, runs("2"), confirms},
		"also in the process that has left it on trial":                {func(r *rules) { r.does(runs("2")); r.seen.Accepted = acceptedAt(r.now.Add(time.Minute), "2") }, runs("2"), confirms},
		"one who accepts another does not":                             {func(r *rules) { r.seen.Accepted = acceptedAt(r.now.Add(time.Minute), "3") }, runs("2"), leaves},
		"nor one who accepted it before it was installed":              {func(r *rules) { r.seen.Accepted = acceptedAt(r.now.Add(-time.Minute), "2") }, runs("2"), leaves},
		"a worker that stands by confirms nothing":                     {func(r *rules) { r.seen.Lease = Taken; r.s.Boots = r.s.Boots.endTrial(task) }, runs("2"), "goes on to note"},
		"nor does one after another worker":                            {func(r *rules) { r.s.Away = true; r.s.Boots = r.s.Boots.endTrial(task) }, runs("2"), "goes on to take over"},
		"a worker that takes over forgets the trial with the run over": {func(r *rules) { r.s = r.s.TakeOver(nil, r.seen, r.now); r.boot() }, runs("2"), confirms},
		"a host with one system has none":                              {func(r *rules) { r.seen.Confirms = false; r.boot() }, runs("2"), "goes on to nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &rules{t: t, now: time.Now().UTC().Round(0), seen: Seen{Host: "h01", BootID: "boot", Confirms: true, Lease: Held}}
			r.run(true, "2")
			r.boot()
			c.then(r)
			if got := r.does(c.boot); got != c.want {
				t.Errorf("the worker %s, with the trial %+v in phase %q", got, r.s.Boots.Trial, r.s.Phase)
			}
		})
	}
}

func acceptedAt(at time.Time, version string) AcceptedVersions {
	return AcceptedVersions{Versions: []AcceptedVersion{{version, at}}}
}

// TestPassBeforeAnUpgrade checks that checks which began before an upgrade was accepted (seed
// 3002183), or while it was not done, say nothing of what it has installed when they are settled
// after it, and that those which began after it do.
func TestPassBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	upgraded := Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: Answering}
	for what, c := range map[string]struct {
		began Journal
		told  bool
	}{
		"before it":       {Journal{Log: "log", Seq: 10, Action: message.Upgrade, Phase: Answered}, false},
		"on another log":  {Journal{Log: "other", Seq: 12, Action: message.Upgrade, Phase: Answered}, false},
		"while deferred":  {Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: Deferred}, false},
		"in the upgrade":  {Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: Upgrading}, false},
		"in its rollback": {Journal{Log: "log", Seq: 12, Action: message.Upgrade, Phase: RollingBack}, false},
		"after it":        {upgraded, true},
	} {
		decision := State{Journal: upgraded, Fresh: true}.Next(time.Now(), Seen{Lease: Held, Passed: &Pass{Began: c.began}})
		if want := map[bool]Do{true: DoSettle, false: DoDrop}[c.told]; decision.Do != want {
			t.Errorf("checks that began %s: the next action is to %s, not to %s", what, decision.Do, want)
		}
	}
}
