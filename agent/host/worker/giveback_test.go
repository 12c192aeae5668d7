package worker

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestReplaced stops a worker at each kind of moment while another worker stands by, and
// measures how long the host is without a worker.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// begun has the first worker at something when it is stopped.
		begun       func(d *duo)
		kill        bool
		least, most time.Duration
	}{
		"at rest": {
			func(*duo) {}, false, 0, time.Second,
		},
		"at rest, killed": {
			func(*duo) {}, true, message.Silence - message.Heartbeat, message.Silence + message.Heartbeat,
		},
		"after a run": {
			func(d *duo) { d.oneRun() }, false, 0, time.Second,
		},
		"between prepare and upgrade": {
			func(d *duo) { d.command(0, d.prepare()) }, false, message.Silence - message.Heartbeat, message.Silence + message.Heartbeat,
		},
		"upgrading": {
			func(d *duo) {
				run, _ := d.command(0, d.prepare())
				d.site.send(run, message.Command{Action: message.Upgrade, Host: "h01"})
				time.Sleep(2 * time.Second)
			}, false, message.Silence - message.Heartbeat, message.Silence + message.Heartbeat,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDuo(t, nil)
				ctx, stop := context.WithCancel(t.Context())
				var workers sync.WaitGroup
				for i := range 2 {
					workers.Go(func() { d.live(ctx, i, filepath.Join(t.TempDir(), "state")) })
					time.Sleep(time.Second)
				}
				c.begun(d)
				d.end(0, c.kill, time.Hour)
				begun := time.Now()
				for d.site.who() != d.name(1) && time.Since(begun) < time.Hour {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(begun); took < c.least || took > c.most {
					t.Errorf("the other worker has the lease after %s, not after %s to %s", took, c.least, c.most)
				}
				time.Sleep(time.Second)
				if got := d.oneRun(); got != string(message.Done) {
					t.Errorf("it answers the next run with %q", got)
				}
				stop()
				workers.Wait()
			})
		})
	}
}

// TestRestartInOrder checks that a worker that gave its lease back and is started again
// goes on as before: no other worker held the lease meanwhile.
func TestRestartInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDuo(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		workers.Go(func() { d.live(ctx, 0, filepath.Join(t.TempDir(), "state")) })
		time.Sleep(time.Second)
		epoch := d.site.epochNow()
		d.end(0, false, time.Minute)
		time.Sleep(time.Second)
		if d.site.who() != "" {
			t.Error("the lease is not given back")
		}
		// What is sent meanwhile is taken up: only this worker can have done it.
		if _, answer := d.command(0, d.prepare()); answer != string(message.Done) {
			t.Errorf("what was sent meanwhile is answered %q", answer)
		}
		if got := d.site.epochNow(); got != epoch {
			t.Errorf("its epoch is %d after %d", got, epoch)
		}
		stop()
		workers.Wait()
	})
}

// TestWorkedMeanwhile checks a worker that gave its lease back while another worker
// worked and gave the lease back as well. The first worker does not repeat what the
// other one did, although only the epoch tells it.
func TestWorkedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDuo(t, nil)
		// The log shows a host its newest command alone: a worker that did not
		// know better would begin that upgrade.
		d.machine.needsNone = true
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for i := range 2 {
			workers.Go(func() { d.live(ctx, i, filepath.Join(t.TempDir(), "state")) })
			time.Sleep(time.Second)
		}
		d.end(0, false, 2*time.Minute)
		time.Sleep(time.Second)
		if got := d.oneRun(); got != string(message.Done) {
			t.Errorf("the second worker answers with %q", got)
		}
		first := d.name(0)
		d.end(1, false, time.Hour)
		time.Sleep(5 * time.Minute)
		if d.site.who() != first {
			t.Errorf("worker %q has the lease, not the first one", d.site.who())
		}
		last := d.oneRun()
		stop()
		workers.Wait()
		d.judge(nil, last)
	})
}

// TestStandbyEnds checks that a worker that stands by has no lease to give back.
func TestStandbyEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		site := newSite(r.t)
		site.give("OTHER", "its process")
		quiet := time.Now().Add(time.Second)
		r.change = func(o *Options) { o.HostLog = site.connect().client }
		r.life(func() bool { return time.Now().After(quiet) })
		if site.who() != "OTHER" || r.log.lines("standing by, and asking for the lease again every 1m0s", "OTHER") != 1 || r.log.lines("given back") != 0 {
			t.Errorf("worker %q has the lease, and the log is:\n%s", site.who(), r.log.String())
		}
	})
}

// TestLeaveFails checks that a worker ends in time when the site does not take its lease
// back.
func TestLeaveFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDuo(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		workers.Go(func() { d.live(ctx, 0, filepath.Join(t.TempDir(), "state")) })
		time.Sleep(time.Second)
		d.hang(0)
		begun := time.Now()
		stop()
		workers.Wait()
		if took := time.Since(begun); took > giveBackWait {
			t.Errorf("it ends after %s", took)
		}
		if n := d.log.lines("the lease is not given back"); n != 1 {
			t.Errorf("that is told %d times:\n%s", n, d.log.String())
		}
	})
}
