package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// begun starts a run of the hosts, all of which are online and answer prepare.
func (m *memory) begun(t *testing.T, hosts ...string) (*Controller, v1.Run) {
	t.Helper()
	c, _ := m.control(t)
	m.beat(hosts...)
	r, err := c.Start(t.Context(), "test", start)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		m.reply(host, r.ID, message.Prepare)
	}
	return c, r
}

// reply is what an ask is answered with.
type reply struct {
	run v1.Run
	err error
}

// asking asks in the background and returns where the answer will be.
func asking(ctx context.Context, c *Controller, by string, what run.Ask, body v1.Ask) <-chan reply {
	answer := make(chan reply, 1)
	go func() {
		r, err := c.Ask(ctx, by, what, body)
		answer <- reply{run: r, err: err}
	}()
	synctest.Wait()
	return answer
}

// answered returns an answer that must be there by now.
func answered(t *testing.T, answer <-chan reply) reply {
	t.Helper()
	select {
	case r := <-answer:
		return r
	default:
		t.Fatal("there is no answer")
		return reply{}
	}
}

var why = v1.Ask{Reason: "a test"}

// TestAsks checks for each ask that it is answered once its event came back
// through the log, and not before, and what the run shows then.
func TestAsks(t *testing.T) {
	t.Parallel()
	approval := &v1.Rollout{Stages: []v1.Stage{{Name: "rest", Approval: true}}}
	paused := func(t *testing.T, c *Controller) {
		t.Helper()
		if _, err := c.Ask(t.Context(), "bob", run.Pause, why); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		rollout *v1.Rollout
		before  func(*testing.T, *Controller)
		ask     run.Ask
		body    v1.Ask
		event   string
		shows   func(v1.Run) bool
	}{
		"pause": {
			nil, nil, run.Pause, why, `{"event":"paused","by":"ann","why":"a test"}`,
			func(r v1.Run) bool { return r.Paused == "by ann: a test" },
		},
		"resume": {
			nil, paused, run.Resume, why, `{"event":"resumed","by":"ann","why":"a test","keeps-failures":true}`,
			func(r v1.Run) bool { return r.Paused == "" },
		},
		"resume and forget": {
			nil, paused, run.Resume,
			v1.Ask{Reason: "a test", ResetFailures: true},
			`{"event":"resumed","by":"ann","why":"a test"}`,
			func(r v1.Run) bool { return r.Paused == "" },
		},
		"abort": {
			nil, nil, run.Abort, why, `{"event":"aborted","by":"ann","why":"a test"}`,
			func(r v1.Run) bool { return !r.Finished() },
		},
		"approve": {
			approval, nil, run.Approve,
			v1.Ask{Reason: "a test", Stage: "rest"},
			`{"event":"approved","stage":"rest","by":"ann","why":"a test"}`,
			func(r v1.Run) bool { return r.Stages[0].Phase != "waiting-for-approval" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				m.rollout = c.rollout
				controller, r := m.begun(t, "h01")
				if c.before != nil {
					c.before(t, controller)
				}
				release := m.hold()
				m.reply("h77", r.ID, message.Prepare) // Folded before the event: no answer to wait for.
				answer := asking(t.Context(), controller, "ann", c.ask, c.body)
				if len(m.events(c.event)) != 1 || len(answer) != 0 {
					t.Fatalf("before it came back through the log there are %d events and %d answers", len(m.events(c.event)), len(answer))
				}
				release()
				if got := answered(t, answer); got.err != nil || got.run.ID != r.ID || !c.shows(got.run) {
					t.Errorf("answered with %+v, %v", got.run, got.err)
				}
			})
		})
	}
}

// TestRelease checks that the slot of a silent host is free once somebody says
// so, and that the run continues without it.
func TestRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c, r := blocked(t)
		answer := asking(t.Context(), c, "ann", run.Release, v1.Ask{Reason: "it is broken", Host: "h03"})
		if got := answered(t, answer); got.err != nil || got.run.Hosts[2].Status != "skipped" || got.run.Hosts[2].Slot != nil {
			t.Fatalf("answered with %+v, %v", got.run, got.err)
		}
		if want := `{"event":"released","host":"h03","by":"ann","why":"it is broken"}`; len(m.events(want)) != 1 {
			t.Errorf("the log has no event %s", want)
		}
		if want := `{"action":"upgrade","host":"h01"}`; m.last() != want {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
		m.beat("h03")
		ends(t, m, c, r, "partial", "skipped")
	})
}

// TestAbortNow checks that a run in which a host hangs is ended at once by an operator
// who reads how in the refusals, that the answer is the run that has ended, and that
// the host holds its slot in the next run until it is released.
func TestAbortNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		ask := func(what run.Ask, body v1.Ask) reply { return answered(t, asking(t.Context(), c, "ann", what, body)) }
		if got := ask(run.Abort, why); got.err != nil || got.run.Finished() || !got.run.EndsBy.Equal(r.OpenedAt.Add(time.Hour)) {
			t.Fatalf("the abort is answered with %+v, %v", got.run, got.err)
		}
		want := fmt.Sprintf("run %d is aborting until %s at the latest (h01 is upgrading); to end it now: osupgrade-agent abort --now --reason …",
			r.ID, r.OpenedAt.Add(time.Hour).Format(time.RFC3339))
		if _, err := c.Start(t.Context(), "ann", start); err == nil || err.Error() != want {
			t.Errorf("a start is refused with %v, not with %s", err, want)
		}
		if got := ask(run.Abort, why); got.err == nil || got.err.Error() != want {
			t.Errorf("a second abort is refused with %v, not with %s", got.err, want)
		}
		got := ask(run.Abort, v1.Ask{Reason: "h01 hangs", Now: true})
		if got.err != nil || got.run.ID != r.ID || got.run.Result != "aborted" || got.run.EndsBy != nil || got.run.Hosts[0].Slot == nil ||
			got.run.Reason != "aborted by ann: h01 hangs; still out of service: h01 (it has not answered upgrade)" {
			t.Fatalf("the abort is answered with %+v, %v", got.run, got.err)
		}
		if got := m.slotOfH01(t, c); got != "it has not answered upgrade of an earlier run" {
			t.Errorf("in the next run h01 has a slot because %q", got)
		}
		if got := ask(run.Release, v1.Ask{Reason: "a", Host: "h01"}); got.err != nil || got.run.Hosts[0].Slot != nil {
			t.Errorf("the release is answered with %+v, %v", got.run, got.err)
		}
	})
}

// TestAbortOfNothing checks that the answer to an abort is the run that has ended when
// no host is under way.
func TestAbortOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "rest", Approval: true}}}
		c, r := m.begun(t, "h01")
		if got := answered(t, asking(t.Context(), c, "ann", run.Abort, why)); got.err != nil || got.run.ID != r.ID || got.run.Result != "aborted" {
			t.Errorf("the abort is answered with %+v, %v", got.run, got.err)
		}
	})
}

// TestAsksThatAreRefused checks the words with which an ask is refused, and
// that it leaves nothing on the log.
func TestAsksThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask  run.Ask
		body v1.Ask
		says string
	}{
		"resume of a run that is not paused":     {run.Resume, why, "is not paused"},
		"approve of a stage that needs none":     {run.Approve, v1.Ask{Reason: "a", Stage: "all"}, "needs no approval"},
		"approve of a stage that there is not":   {run.Approve, v1.Ask{Reason: "a", Stage: "x"}, `no stage "x"`},
		"release of a host that is no member":    {run.Release, v1.Ask{Reason: "a", Host: "h77"}, "host h77 is not in run"},
		"release of a host that is done":         {run.Release, v1.Ask{Reason: "a", Host: "h02"}, "host h02 holds no slot in run 2: it is skipped"},
		"something that a run cannot be asked":   {"stop", why, `cannot be asked to "stop"`},
		"pause of a run that is paused (second)": {run.Pause, why, "is paused already, by ann"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02")
				controller, _ := m.begun(t, "h01", "h02")
				if c.ask == run.Pause || c.body.Host == "h02" { // The second is refused.
					if _, err := controller.Ask(t.Context(), "ann", c.ask, c.body); err != nil {
						t.Fatal(err)
					}
				}
				before := m.size()
				var refused *run.Refused
				got := answered(t, asking(t.Context(), controller, "bob", c.ask, c.body))
				if !errors.As(got.err, &refused) || !strings.Contains(got.err.Error(), c.says) {
					t.Errorf("answered with %v", got.err)
				}
				if m.size() != before {
					t.Errorf("the log has %s", m.last())
				}
			})
		})
	}
}

// TestAsksOfNoRun checks the answer while no run is under way, and to whom it
// ends before his turn.
func TestAsksOfNoRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c, r := m.begun(t, "h01")
		release := m.hold()
		abort := asking(t.Context(), c, "ann", run.Abort, why)
		m.reply("h01", r.ID, message.Upgrade)
		pause := asking(t.Context(), c, "bob", run.Pause, why)
		release()
		if got := answered(t, abort); got.err != nil {
			t.Errorf("abort is answered with %v", got.err)
		}
		if ended, err := c.Find(t.Context(), r.ID); err != nil || ended.Result != "aborted" {
			t.Errorf("the run ended as %s, %v", ended.Result, err)
		}
		var refused *run.Refused
		if got := answered(t, pause); !errors.As(got.err, &refused) || !strings.Contains(got.err.Error(), "is aborting until") {
			t.Errorf("pause is answered with %v", got.err)
		}
		if got := answered(t, asking(t.Context(), c, "ann", run.Pause, why)); !errors.As(got.err, &refused) || !strings.HasPrefix(got.err.Error(), fmt.Sprintf("no run is in progress: run %d ended at ", r.ID)) {
			t.Errorf("pause after the run is answered with %v", got.err)
		}
	})
}

// TestAsksOneAfterTheOther checks that an ask is decided on what the one
// before it has come to, though the log is behind when it comes, that of two
// that are the same one is refused, and that none has to wait for the clock.
func TestAsksOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		release := m.hold()
		var answers []<-chan reply
		for _, ask := range []run.Ask{run.Pause, run.Pause, run.Pause, run.Resume, run.Resume, run.Pause} {
			answers = append(answers, asking(t.Context(), c, "ann", ask, why))
		}
		m.reply("h01", r.ID, message.Upgrade)
		begun := time.Now()
		release()
		want := []string{"", "is paused already", "is paused already", "", "is not paused", ""}
		for i, answer := range answers {
			if got := answered(t, answer); (got.err == nil) != (want[i] == "") || got.err != nil && !strings.Contains(got.err.Error(), want[i]) {
				t.Errorf("ask %d is answered with %v", i, got.err)
			}
		}
		if n := len(m.events(`"paused"`)); n != 2 || !time.Now().Equal(begun) {
			t.Errorf("there are %d events after %s", n, time.Since(begun))
		}
	})
}

// TestAsksOfWhoHasLeft checks that a request which waits for its turn has no
// effect once whoever asked has left.
func TestAsksOfWhoHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c, _ := m.begun(t, "h01")
		release := m.hold()
		pause := asking(t.Context(), c, "ann", run.Pause, why)
		ctx, leave := context.WithCancel(t.Context())
		abort := asking(ctx, c, "bob", run.Abort, why)
		resume := asking(t.Context(), c, "ann", run.Resume, why)
		leave()
		synctest.Wait()
		if got := answered(t, abort); !errors.Is(got.err, context.Canceled) {
			t.Errorf("who has left is answered with %v", got.err)
		}
		release()
		for _, answer := range []<-chan reply{pause, resume} {
			if got := answered(t, answer); got.err != nil {
				t.Errorf("who has stayed is answered with %v", got.err)
			}
		}
		if len(m.events("aborted")) != 0 {
			t.Error("the run is aborted for somebody who has left")
		}
	})
}

// TestAsksWhileTheLogFails checks that an ask is written down once whatever
// the log says, and answered then: also when an append has failed whose record
// is on the log.
func TestAsksWhileTheLogFails(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"nothing is written": false, "all is written": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				c, _ := m.begun(t, "h01")
				m.fails(errors.New("no space left on device"), written)
				answer := asking(t.Context(), c, "ann", run.Pause, why)
				if (len(answer) == 1) != written {
					t.Fatalf("there are %d answers", len(answer))
				}
				m.fails(nil, false)
				time.Sleep(longestPause)
				synctest.Wait()
				if got := answered(t, answer); got.err != nil || got.run.Paused != "by ann: a test" {
					t.Errorf("answered with %+v, %v", got.run, got.err)
				}
				if n := len(m.events(`"paused"`)); n != 1 {
					t.Errorf("there are %d events", n)
				}
			})
		})
	}
}

// TestAsksAtAnAlarm checks that nobody waits for what will not come: neither
// for an ask nor for a run that he has started.
func TestAsksAtAnAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c, _ := m.control(t)
		m.beat("h01")
		release := m.hold()
		started := make(chan error, 1)
		go func() {
			_, err := c.Start(t.Context(), "ann", start)
			started <- err
		}()
		synctest.Wait()
		waiting := asking(t.Context(), c, "ann", run.Pause, why)
		m.log.Damage(func(all []message.Record) []message.Record {
			return append(all[:1], message.Record{Seq: 77, Kind: message.EventRecord})
		})
		release()
		if got := answered(t, waiting); !errors.Is(got.err, run.ErrNotReady) || !strings.Contains(fmt.Sprint(got.err), "the log is damaged") {
			t.Errorf("the ask is answered with %v", got.err)
		}
		if err := <-started; !errors.Is(err, run.ErrNotReady) {
			t.Errorf("the start is answered with %v", err)
		}
	})
}
