package run

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// ordered is a log with a canary and an environment that comes after it.
type ordered struct {
	*site
	order Order
}

// run plays a run of an environment, which ends with a result.
func (o *ordered) run(e message.Opened, host, result string) uint64 {
	o.t.Helper()
	e.Members, e.Rollout, e.NotAfter = []string{host}, rollout.Default(1), o.now.Add(4*time.Hour)
	before := o.ledger.Of(e.Environment)
	if e.Environment == "canary" {
		e.Completed = before.Completed()
	}
	o.event(0, e)
	id := o.prepare(e.Environment, host)
	if result != "completed" {
		o.event(id, message.Finished{Result: result})
		return id
	}
	o.upgrade(id, host)
	o.reply(id, host, message.Upgrade)
	o.event(id, message.Finished{Result: result})
	return id
}

func (o *ordered) canary(result string) uint64 {
	o.t.Helper()
	return o.run(message.Opened{Environment: "canary"}, "c1", result)
}

// follow plays a run of the environment that comes after the canary.
func (o *ordered) follow(result string) {
	o.t.Helper()
	s := o.predecessors(false)
	if s.Waits != "" {
		o.t.Fatalf("the run waits for %s", s.Waits)
	}
	o.run(message.Opened{Environment: "shops", Follows: s.Follows}, "s1", result)
}

// predecessors asks the whole log, and the log that begins with the newest runs.
func (o *ordered) predecessors(again bool) Predecessors {
	o.t.Helper()
	var trimmed Ledger
	for _, r := range o.log[max(1, o.ledger.NeededFrom())-1:] {
		_ = trimmed.Fold(r.Decode())
	}
	s := o.ledger.Predecessors("shops", o.order, o.now, again)
	if other := trimmed.Predecessors("shops", o.order, o.now, again); o.ledger.NeededFrom() > 0 && !reflect.DeepEqual(s, other) {
		o.t.Errorf("by the whole log it is %+v, by the trimmed one %+v", s, other)
	}
	return s
}

// waits checks what the run waits for; empty for nothing.
func (o *ordered) waits(want string) {
	o.t.Helper()
	switch got := o.predecessors(false).Waits; {
	case (got == "") != (want == ""), !strings.Contains(got, want):
		o.t.Errorf("the run waits for %q; want %q", got, want)
	}
}

// orders are runs of a canary and what a run of the environment that comes after it waits for then.
var orders = map[string]func(*ordered){
	"no run yet": func(o *ordered) { o.waits("environment canary to complete a run: it has had none") },
	"in progress": func(o *ordered) {
		o.open("canary", nil, 0, "c1")
		id := o.prepare("canary", "c1")
		o.waits("environment canary to complete: run " + fmt.Sprint(id) + " is in progress")
	},
	"soaks": func(o *ordered) {
		id := o.canary("completed")
		o.now = o.now.Add(24*time.Hour - time.Second)
		o.waits("environment canary, which soaks until 2026-11-22T01:00:00Z: run " + fmt.Sprint(id) + " completed at 2026-11-21T01:00:00Z")
		if until := o.predecessors(false).Until; !until.Equal(epoch.Add(24 * time.Hour)) {
			o.t.Errorf("it soaks until %s", until)
		}
		o.now = o.now.Add(time.Second)
		o.waits("")
	},
	"followed once": func(o *ordered) {
		id := o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.follow("completed")
		o.waits("environment canary to complete another run: run " + fmt.Sprint(id) + " was followed already")
		if s := o.predecessors(true); s.Waits != "" || s.Follows[0].Run != id {
			o.t.Errorf("a retry comes to %+v", s)
		}
		o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.waits("")
	},
	"a run that touched no host follows nothing": func(o *ordered) {
		o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.follow("failed")
		o.waits("")
	},
	"a run of chosen hosts after one that touched none follows nothing": func(o *ordered) {
		id := o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.follow("failed")
		for range 2 {
			o.run(message.Opened{Environment: "shops", Chosen: true, Follows: o.ledger.Of("shops").FollowsOfChosen()}, "s1", "completed")
			if s := o.predecessors(false); s.Waits != "" || s.Follows[0].Run != id {
				o.t.Errorf("after a run of chosen hosts it comes to %+v", s)
			}
		}
		o.follow("completed")
		o.run(message.Opened{Environment: "shops", Chosen: true, Follows: o.ledger.Of("shops").FollowsOfChosen()}, "s1", "completed")
		o.waits("to complete another run")
	},
	"a run until a stage is not followed": func(o *ordered) {
		o.canary("completed")
		id := o.run(message.Opened{Environment: "canary", Until: "all", Reached: &message.Reached{Stages: []message.ReachedStage{{Name: "all", Left: []string{"c1"}}, {Name: "rest", Left: []string{"c2"}}}}}, "c1", "completed")
		o.now = o.now.Add(24 * time.Hour)
		o.waits(fmt.Sprintf("environment canary to complete a run of all its stages: run %d ended after stage all", id))
		o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.waits("")
	},
	"a later run that soaks holds nobody up": func(o *ordered) {
		first := o.canary("completed")
		o.now = o.now.Add(20 * time.Hour)
		second := o.canary("completed")
		o.now = o.now.Add(4 * time.Hour)
		if s := o.predecessors(false); s.Waits != "" || s.Follows[0].Run != first {
			o.t.Errorf("it comes to %+v", s)
		}
		o.follow("completed")
		o.waits("which soaks until")
		o.now = o.now.Add(20 * time.Hour)
		if s := o.predecessors(false); s.Waits != "" || s.Follows[0].Run != second {
			o.t.Errorf("then it comes to %+v", s)
		}
	},
	"both have soaked, and the later one is followed": func(o *ordered) {
		o.canary("completed")
		second := o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		if s := o.predecessors(false); s.Waits != "" || s.Follows[0].Run != second {
			o.t.Errorf("it comes to %+v", s)
		}
		o.follow("completed")
		o.waits("to complete another run")
	},
	"in progress again": func(o *ordered) {
		o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.event(0, message.Opened{
			Environment: "canary", Members: []string{"c1"}, Rollout: rollout.Default(1), NotAfter: o.now.Add(time.Hour), Completed: o.ledger.Of("canary").Completed(),
		})
		o.waits("")
	},
	"a later run failed": func(o *ordered) {
		o.canary("completed")
		id := o.canary("failed")
		o.now = o.now.Add(24 * time.Hour)
		o.waits("environment canary to complete a run: run " + fmt.Sprint(id) + " ended as failed")
	},
	"a later run of chosen hosts": func(o *ordered) {
		o.canary("completed")
		id := o.run(message.Opened{Environment: "canary", Chosen: true}, "c1", "completed")
		o.now = o.now.Add(24 * time.Hour)
		o.waits("environment canary to complete a run of all its hosts: run " + fmt.Sprint(id) + " was of chosen ones")
	},
	"a retry of the canary": func(o *ordered) {
		o.run(message.Opened{Environment: "canary", RetryOf: 7}, "c1", "completed")
		o.now = o.now.Add(24 * time.Hour)
		o.waits("was of chosen ones")
	},
	"a run of chosen hosts follows nothing": func(o *ordered) {
		o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.run(message.Opened{Environment: "shops", Chosen: true, Follows: o.ledger.Of("shops").Follows()}, "s1", "completed")
		o.waits("")
	},
	"an override follows nothing": func(o *ordered) {
		o.canary("completed")
		o.run(message.Opened{Environment: "shops", OverrideAfter: "CVE"}, "s1", "completed")
		o.now = o.now.Add(24 * time.Hour)
		o.waits("")
	},
	"the clock of the log was ahead": func(o *ordered) {
		o.now = o.now.Add(1000 * time.Hour)
		o.canary("completed")
		o.now = epoch
		o.event(0, message.Missed{Environment: "bern", Window: epoch.Add(-time.Hour), WindowEnd: epoch})
		o.now = o.now.Add(24 * time.Hour)
		o.waits("")
	},
	"carried": func(o *ordered) {
		id := o.canary("completed")
		o.now = o.now.Add(24 * time.Hour)
		o.event(0, o.ledger.Carrying(o.ledger.Of("canary")))
		o.follow("completed")
		o.event(0, o.ledger.Carrying(o.ledger.Of("shops")))
		o.waits("environment canary to complete a run: none since run " + fmt.Sprint(id))
	},
	"as many runs are kept as may be": func(o *ordered) {
		for range message.MaxCompletions + 2 {
			o.canary("completed")
		}
		o.now = o.now.Add(24 * time.Hour)
		o.follow("completed")
		o.waits("to complete another run")
	},
}

// TestOrder checks when a run may follow that of another environment, on the whole log and on one
// that was trimmed.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, play := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(&ordered{newSite(t), Order{Environments: []string{"canary"}, Soak: 24 * time.Hour}})
		})
	}
}

// TestOrderOfSeveral checks that a run waits for each environment of its order, and names the
// default one to people as it is declared.
func TestOrderOfSeveral(t *testing.T) {
	t.Parallel()
	o := &ordered{newSite(t), Order{Environments: []string{"canary", ""}}}
	canary := o.canary("completed")
	o.waits("environment default to complete a run: it has had none")
	standard := o.run(message.Opened{}, "d1", "completed")
	want := []message.Follow{{Environment: "canary", Run: canary}, {Run: standard}}
	if s := o.predecessors(false); s.Waits != "" || !reflect.DeepEqual(s.Follows, want) {
		t.Errorf("it comes to %+v; want %+v", s, want)
	}
}
