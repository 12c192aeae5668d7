package worker

import (
	"context"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// TestPlanIsKept checks that the plan is on disk when prepare is answered, and is what
// each later action gets, also from another worker.
func TestPlanIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		want, err := r.host.Plan(t.Context(), strategy.Job{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]message.ChangeSet{}
		r.change = func(o *Options) { o.Strategy = planSpy{o.Strategy, got} }
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		if kept, err := readPlan(r.planPath(), r.journal()); err != nil || !reflect.DeepEqual(kept, want) {
			t.Errorf("the plan that is kept is %+v, not %+v: %v", kept, want, err)
		}
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.command(12, message.Reboot)
		expect(r, message.Reboot, message.Done)
		for _, action := range []string{"upgrade", "missing before the reboot", "missing", "verify"} {
			if !reflect.DeepEqual(got[action], want) {
				t.Errorf("%s goes by the plan %+v, not %+v", action, got[action], want)
			}
		}
	})
}

// TestUpToDate checks that a host whose plan changes nothing says so with its answer to upgrade,
// and one whose plan changes something does not.
func TestUpToDate(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]message.ChangeSet{
		"nothing to change":     {},
		"one package held back": {Held: []message.HeldPackage{{Name: "linux", Version: "1", Offered: "2", Reason: "held by apt-mark"}}},
		"a change":              {Changes: []message.Change{{Name: "a", From: "1", To: "2"}}},
		"a reboot":              {Reboot: "the kernel changes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.change = func(o *Options) { o.Strategy = planned{planless{o.Strategy}, plan} }
				r.bear()
				r.prepare()
				r.command(11, message.Upgrade)
				expect(r, message.Upgrade, message.Done)
				want := len(plan.Changes) == 0 && plan.Reboot == ""
				if got := r.journal().Result; got.UpToDate != want {
					t.Errorf("its answer is %+v", got)
				}
			})
		})
	}
}

// planned is a host with a plan that misses nothing.
type planned struct {
	planless
	plan message.ChangeSet
}

func (planned) Plans() bool { return true }

func (p planned) Prepare(context.Context, strategy.Job) (message.ChangeSet, error) {
	return p.plan, nil
}

func (planned) Missing(context.Context, strategy.Job) ([]message.Change, error) { return nil, nil }

// moving is a host whose repository has something newer at each look.
type moving struct {
	planned
	looks *int
}

func (m moving) Prepare(context.Context, strategy.Job) (message.ChangeSet, error) {
	*m.looks++
	return message.ChangeSet{Changes: []message.Change{{Name: "a", From: "0", To: strconv.Itoa(*m.looks)}}}, nil
}

// TestPlanIsToldOnceItCounts checks that a worker that ends between its plan and its journal does not
// tell that plan: it prepares anew, and the plans of a run are compared by what hosts have told.
func TestPlanIsToldOnceItCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		looks := 0
		r.change = func(o *Options) { o.Strategy = moving{planned{planless{o.Strategy}, message.ChangeSet{}}, &looks} }
		r.dieAt, r.visit = "after prepare", 1
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.idle()
		plans := r.hostLog.bodies(report.Plan)
		if looks != 2 || len(plans) == 0 {
			t.Fatalf("it looked %d times and told %d plans", looks, len(plans))
		}
		for _, body := range plans {
			if told, err := message.UnpackPlan(body); err != nil || told.Changes[0].To != "2" {
				t.Errorf("it told the plan %+v, %v; that of the second look counts", told, err)
			}
		}
	})
}

// planSpy records the plan that each action gets.
type planSpy struct {
	strategy.Strategy
	got map[string]message.ChangeSet
}

func (s planSpy) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	s.got["upgrade"] = job.Plan
	return s.Strategy.Upgrade(ctx, job)
}

func (s planSpy) Missing(ctx context.Context, job strategy.Job) ([]message.Change, error) {
	what := "missing"
	if job.Staged {
		what += " before the reboot"
	}
	s.got[what] = job.Plan
	return s.Strategy.Missing(ctx, job)
}

func (s planSpy) Verify(ctx context.Context, job strategy.Job) error {
	s.got["verify"] = job.Plan
	return s.Strategy.Verify(ctx, job)
}

// TestPlanIsLost checks that a host without the plan of its run never replies that it is
// upgraded, and that a site that is told so does not count on the host.
func TestPlanIsLost(t *testing.T) {
	t.Parallel()
	const atWork = "the plan of this run is lost, so what the upgrade did is unknown"
	const before = "the plan of this run is lost"
	lose := map[string]func(r *rig){
		"gone": func(r *rig) { remove(r) },
		"cut": func(r *rig) {
			r.spoil(func(b []byte) []byte { return b[:len(b)/2] })
		},
		"flipped": func(r *rig) {
			r.spoil(func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
		},
		"of another run": func(r *rig) {
			other := r.journal()
			other.Run++
			r.leavePlan(other)
		},
		"of another log's run of this number": func(r *rig) {
			other := r.journal()
			other.RunAt = other.RunAt.Add(time.Second)
			r.leavePlan(other)
		},
		"of a newer format": func(r *rig) {
			r.spoil(func(b []byte) []byte { return []byte(strings.Replace(string(b), `"format":1`, `"format":9`, 1)) })
		},
	}
	for name, lost := range lose {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.leave(prepared())
				r.now = func() time.Time { return now }
				lost(r)
				r.command(11, message.Upgrade)
				if got := r.until(message.Upgrade); !strings.HasPrefix(got, before) || r.hostLog.outcome(message.Upgrade) != message.Failed || !strings.Contains(got, "nothing was upgraded; start another run") {
					t.Errorf("before the upgrade it answered %q", got)
				}
				if n := r.effects("upgrade"); n != 0 {
					t.Errorf("the host was upgraded %d times", n)
				}
			})
		})
		t.Run(name+" in the upgrade", func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				j := prepared()
				j.Seq, j.Action, j.Phase, j.Result = 11, message.Upgrade, decide.Upgrading, message.Result{}
				r.leave(j)
				lost(r)
				if got := r.until(message.Upgrade); !strings.HasPrefix(got, atWork) || r.hostLog.outcome(message.Upgrade) != message.Unknown {
					t.Errorf("in the upgrade it answered %q", got)
				}
			})
		})
	}
}

func remove(r *rig) {
	if err := os.Remove(r.planPath()); err != nil {
		r.t.Fatal(err)
	}
}

// spoil changes the plan file.
func (r *rig) spoil(change func([]byte) []byte) {
	r.t.Helper()
	body, err := os.ReadFile(r.planPath())
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.planPath(), change(body), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// forgetful is a host that reports an upgrade that did not happen, as after a power cut
// that lost the package lists.
type forgetful struct {
	strategy.Strategy
	outcome strategy.Outcome
	missing []message.Change
}

func (f forgetful) Upgrade(context.Context, strategy.Job) (strategy.Outcome, error) {
	return f.outcome, nil
}

func (f forgetful) Missing(context.Context, strategy.Job) ([]message.Change, error) {
	return f.missing, nil
}

// TestDoneIsProvedByThePlan checks that a host which lacks a change of its plan does not
// answer done or reboot-required, whatever its upgrade says.
func TestDoneIsProvedByThePlan(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]strategy.Outcome{"done": strategy.Done, "reboot required": strategy.RebootRequired} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				missing := []message.Change{{Name: "kernel", From: "6.1.0", To: "6.1.1"}, {Name: "nginx", To: "1.24"}, {Name: "old", From: "1"}}
				r.change = func(o *Options) { o.Strategy = forgetful{o.Strategy, outcome, missing} }
				r.bear()
				r.prepare()
				expect(r, message.Prepare, message.Done)
				r.command(11, message.Upgrade)
				const want = "3 of 2 changes of the plan are missing: kernel 6.1.1 (it is 6.1.0), nginx 1.24, old is not removed; " +
					"see what the upgrade printed, mend the host, then start another run; rolled back"
				expect(r, message.Upgrade, want)
			})
		})
	}
}

// TestPlanIsTold checks that the site is told the plan once, whole, also when it cannot be
// reached at first, and again by the next worker.
func TestPlanIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		want, err := r.host.Plan(t.Context(), strategy.Job{})
		if err != nil {
			t.Fatal(err)
		}
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		for range 2 {
			before := len(r.hostLog.bodies(report.Plan))
			r.idle()
			plans := r.hostLog.bodies(report.Plan)
			last, err := message.UnpackPlan(plans[len(plans)-1])
			if n := len(plans); n != before+1 || err != nil || !reflect.DeepEqual(last, want) {
				t.Errorf("%d plans are told after %d, the last is %+v, %v", n, before, last, err)
			}
		}
		r.hostLog.refused["plan"] = true
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
	})
}
