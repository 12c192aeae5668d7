package worker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// offering is a strategy whose plan a test sets.
type offering struct {
	strategy.Strategy
	version atomic.Int64
	err     atomic.Pointer[error]
	asked   atomic.Int64
	// takes is how long the plan takes, and atOnce whether an action began meanwhile.
	takes                    time.Duration
	planning, acting, atOnce atomic.Bool
	job                      atomic.Pointer[strategy.Job]
}

// Releases implements strategy.Releaser.
func (o *offering) Releases() []release.Kind {
	return []release.Kind{release.OfData, release.OfPackages}
}

func (o *offering) plan() message.ChangeSet {
	if o.version.Load() < 0 {
		return message.ChangeSet{}
	}
	return message.ChangeSet{Changes: []message.Change{{Name: "kernel", From: "0", To: strconv.FormatInt(o.version.Load(), 10)}}}
}

func (o *offering) Plan(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	o.asked.Add(1)
	o.job.Store(&job)
	if err := o.err.Load(); err != nil && *err != nil {
		return message.ChangeSet{}, *err
	}
	o.planning.Store(true)
	defer o.planning.Store(false)
	if o.acting.Load() {
		o.atOnce.Store(true)
	}
	return o.plan(), wait.Sleep(ctx, o.takes)
}

func (o *offering) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	o.acting.Store(true)
	defer o.acting.Store(false)
	if o.planning.Load() {
		o.atOnce.Store(true)
	}
	if err := wait.Sleep(ctx, 30*time.Second); err != nil {
		return message.ChangeSet{}, err
	}
	return o.Strategy.Prepare(ctx, job)
}

func (o *offering) fail(err error) { o.err.Store(&err) }

// offer runs one worker with such a strategy while a test plays.
func (r *rig) offer(o *offering, play func()) {
	r.t.Helper()
	if o.version.Load() == 0 {
		o.version.Store(1)
	}
	r.change = func(options *Options) {
		o.Strategy, options.Strategy = options.Strategy, o
		options.VersionsInterval = 10 * time.Minute
	}
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	w, err := Open(ctx, r.options())
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	synctest.Wait()
	play()
	stop()
	if err := errors.Join(<-ended, w.Close()); err != nil {
		r.t.Error(err)
	}
}

// TestOfferIsToldOnce checks that a host sends each new plan of an upgrade once, also
// after a restart, and an unchanged plan once a day.
func TestOfferIsToldOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		told := func(want int, when string) {
			r.t.Helper()
			if n := len(r.hostLog.told()); n != want {
				r.t.Errorf("%s the host has told %d offers, not %d", when, n, want)
			}
		}
		o := &offering{}
		r.offer(o, func() {
			told(1, "at the start")
			time.Sleep(2 * time.Hour)
			told(1, "while nothing changes")
			if n := o.asked.Load(); n < 12 || n > 14 {
				r.t.Errorf("in two hours the strategy is asked %d times, not each ten minutes", n)
			}
			o.version.Store(2)
			time.Sleep(10*time.Minute + time.Second)
			told(2, "after a change")
			if got, err := message.UnpackPlan(r.hostLog.told()[1]); err != nil || len(got.Changes) != 1 || got.Changes[0].To != "2" {
				r.t.Errorf("the offer is %+v, %v", got, err)
			}
		})
		r.offer(o, func() {
			time.Sleep(22 * time.Hour)
			told(2, "after a restart")
			time.Sleep(2*time.Hour + 10*time.Minute)
			told(3, "after a day")
		})
	})
}

// TestOfferIsAskedFor checks that a host that is asked to look anew fetches what there is to
// install and sends its plan, also when that is the same, once for several requests at a time; and
// that the plans after that fetch nothing.
func TestOfferIsAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		o := &offering{}
		r.hostLog.asks = make(chan log.Ask)
		r.offer(o, func() {
			shows := func(when string, told int, fetched bool) {
				t.Helper()
				synctest.Wait()
				if n := len(r.hostLog.told()); n != told || o.job.Load().Fetch != fetched {
					t.Errorf("%s it has told %d offers, not %d, the last job fetches: %v", when, n, told, o.job.Load().Fetch)
				}
			}
			shows("at the start", 1, false)
			r.hostLog.asks <- log.Ask{Kind: report.Offer, Within: time.Minute}
			r.hostLog.asks <- log.Ask{Kind: report.Offer, Within: time.Minute}
			time.Sleep(time.Minute)
			shows("when it is asked", 2, true)
			time.Sleep(20 * time.Minute)
			shows("later", 2, false)
			if a := r.hostLog.lastAlive(); a.Changes == nil || *a.Changes != 1 {
				t.Errorf("its heartbeat is %+v", a)
			}
		})
	})
}

// TestPreparedHostFetchesNothing checks that a host which has prepared a run plans anew without
// fetching when it is asked to, so that its upgrade finds what it has prepared, and that it
// fetches again once the time of the run has passed.
func TestPreparedHostFetchesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then    func(r *rig)
		fetches bool
	}{
		"prepared": {func(*rig) {}, false},
		"too late": {func(r *rig) { time.Sleep(time.Hour) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				o := &offering{}
				r.hostLog.asks = make(chan log.Ask)
				r.offer(o, func() {
					r.prepare()
					time.Sleep(2 * time.Minute)
					if got := r.hostLog.answer(message.Prepare); got != string(message.Done) {
						t.Fatalf("prepare was answered %q", got)
					}
					c.then(r)
					before := len(r.hostLog.told())
					r.hostLog.asks <- log.Ask{Kind: report.Offer}
					synctest.Wait()
					if n := len(r.hostLog.told()); n != before+1 || o.job.Load().Fetch != c.fetches {
						t.Errorf("it has told %d offers after %d, the last job fetches: %v", n, before, o.job.Load().Fetch)
					}
				})
			})
		})
	}
}

// TestOfferWaitsForActions checks that the strategy is never asked for a plan while it
// carries out an action, nor an action begun while it makes a plan, and that an offer follows.
func TestOfferWaitsForActions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		o := &offering{takes: 20 * time.Second}
		r.offer(o, func() { // The offer of the start is in progress.
			r.prepare()
			time.Sleep(5 * time.Minute)
			if r.hostLog.answer(message.Prepare) != string(message.Done) || o.atOnce.Load() {
				r.t.Errorf("it answered %q; an action and a plan at once: %v", r.hostLog.answer(message.Prepare), o.atOnce.Load())
			}
			if n := o.asked.Load(); n != 2 {
				r.t.Errorf("the strategy was asked %d times, not at the start and after the action", n)
			}
		})
	})
}

// TestNoOffer checks that a host whose strategy makes no plan tells none and warns of
// nothing, that a failure is told once on the host, and that neither hinders the versions.
func TestNoOffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		warns int
	}{"none": {strategy.ErrNoPlan, 0}, "failed": {errors.New("there are no package lists"), 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				o := &offering{}
				o.fail(c.err)
				r.offer(o, func() {
					time.Sleep(time.Hour)
					if n := r.log.lines("level=WARN", "cannot tell what an upgrade would change"); n != c.warns || len(r.hostLog.told()) != 0 || len(r.hostLog.reports()) != 1 {
						r.t.Errorf("%d warnings, %d offers, %d reports", n, len(r.hostLog.told()), len(r.hostLog.reports()))
					}
					o.fail(nil)
					time.Sleep(10*time.Minute + time.Second)
					if n := len(r.hostLog.told()); n != 1 {
						r.t.Errorf("%d offers once there is a plan", n)
					}
				})
			})
		})
	}
}

// TestOfferOfAnOlderSite checks that a site which knows no offers is asked once a day.
func TestOfferOfAnOlderSite(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["offer"], r.hostLog.refused["last offer"] = true, true
		o := &offering{}
		r.offer(o, func() { time.Sleep(time.Hour) })
		if n := r.log.lines("level=WARN", "offer"); n != 0 || r.hostLog.tried["offer"] != 1 {
			r.t.Errorf("%d warnings, the offer is told %d times", n, r.hostLog.tried["offer"])
		}
	})
}

// TestOfferLeavesOutWhatWasRolledBack checks that a plan which is asked for beside the loop
// gets the versions that the machine gave up, without those that an operator accepts.
func TestOfferLeavesOutWhatWasRolledBack(t *testing.T) {
	t.Parallel()
	w := &Worker{Options: Options{Dir: t.TempDir()}}
	w.take(decide.State{Boots: decide.Boots{Rejected: []decide.Rejected{{Name: "system", Version: "2.1"}}}})
	if got := decide.ByName(w.stillRejected()); len(got) != 1 || !got.Has("system", "2.1") {
		t.Errorf("rejected are %v", got)
	}
}

// TestOffersTell checks when an offer is sent, by its digest, its age and what was sent
// in the day.
func TestOffersTell(t *testing.T) {
	t.Parallel()
	day := report.Offer.Again
	same := telling{told: report.Told{Digest: "a", At: now}}
	full := telling{since: now, sent: report.Offer.MaxDay - 10}
	for name, c := range map[string]struct {
		o             telling
		digest        string
		size          int
		at            time.Time
		tell, limited bool
	}{
		"the first":                        {telling{}, "a", 10, now, true, false},
		"the same":                         {same, "a", 10, now.Add(day - 1), false, false},
		"the same a day later":             {same, "a", 10, now.Add(day), true, false},
		"the same, the clock set back":     {same, "a", 10, now.Add(-time.Second), true, false},
		"another":                          {same, "b", 10, now, true, false},
		"the last that the day has for":    {full, "b", 10, now, true, false},
		"too much for the day":             {full, "b", 11, now.Add(day - 1), false, true},
		"the next day":                     {full, "b", 11, now.Add(day), true, false},
		"the day began in the future":      {full, "b", 11, now.Add(-time.Second), true, false},
		"the same, in a day that has none": {telling{told: same.told, since: now, sent: report.Offer.MaxDay}, "a", 10, now, false, false},
	} {
		if tell, limited := c.o.tells(report.Offer, c.digest, c.size, c.at); tell != c.tell || limited != c.limited {
			t.Errorf("%s: told %v, limited %v", name, tell, limited)
		}
	}
	// A host whose plan changes with each reading stays within a day's bytes, and goes on.
	o := telling{}
	sent, most := 0, strings.Repeat("x", message.MaxPackedPlan)
	for i := range 6 * 24 * 3 {
		at := now.Add(time.Duration(i) * 10 * time.Minute)
		if tell, _ := o.tells(report.Offer, strconv.Itoa(i), len(most), at); tell {
			o = o.after(strconv.Itoa(i), len(most), at)
			sent += len(most)
		}
	}
	if sent != 3*report.Offer.MaxDay {
		t.Errorf("in three days %d bytes are told, not %d", sent, 3*report.Offer.MaxDay)
	}
}
