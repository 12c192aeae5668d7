package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// upgrading is the journal of a host that was interrupted in an upgrade.
func upgrading() decide.Journal {
	return decide.Journal{Run: 10, NotAfter: time.Now().Add(time.Hour), Seq: 11, Action: message.Upgrade, Phase: decide.Upgrading, BootID: "boot-1"}
}

// TestCutOff checks that a host continues the action in its journal while the site is
// unreachable, and replies once it is reachable.
func TestCutOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.leave(upgrading())
		r.hostLog.cut = make(chan struct{})
		r.life(func() bool { return r.journal().Phase == decide.Answering })
		if n := r.effects("upgrade"); n != 1 {
			t.Fatalf("the host was upgraded %d times", n)
		}
		go func() {
			time.Sleep(10 * time.Minute)
			close(r.hostLog.cut)
		}()
		expect(r, message.Upgrade, message.RebootRequired)
		r.life(func() bool { return len(r.hostLog.reports()) > 0 })
	})
}

// TestVersionsGoFirst checks that the new versions are reported before the reply.
func TestVersionsGoFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		wholeRun(r)
		want := []string{"versions", "reply to prepare", "versions", "reply to upgrade", "versions", "reply to reboot"}
		if !slices.Equal(r.hostLog.calls, want) {
			t.Errorf("%q, not %q", r.hostLog.calls, want)
		}
	})
}

// TestVersionsNeverHinder checks that a failed report of versions does not affect the
// run.
func TestVersionsNeverHinder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(r *rig)
		warns string
	}{
		"never taken":      {func(r *rig) { r.hostLog.slow["versions"] = true }, "the reply is sent before the versions"},
		"never compared":   {func(r *rig) { r.hostLog.slow["last versions"] = true }, "the reply is sent before the versions"},
		"refused":          {func(r *rig) { r.hostLog.refused["versions"] = true }, "cannot report versions"},
		"compare refused":  {func(r *rig) { r.hostLog.refused["last versions"] = true }, "cannot read the versions reported before"},
		"far too many":     {func(r *rig) { r.swap(bigVersions) }, "cannot read versions: 300012 bytes; at most 262144"},
		"never determined": {func(r *rig) { r.swap(hangingVersions) }, "the reply is sent before the versions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				c.spoil(r)
				r.leave(upgrading())
				expect(r, message.Upgrade, message.RebootRequired)
				if r.log.lines("level=WARN", c.warns) == 0 {
					t.Errorf("nobody is told: %s", c.warns)
				}
			})
		})
	}
}

// otherVersions is a strategy with other versions.
type otherVersions struct {
	strategy.Strategy
	versions func(ctx context.Context) (map[string]string, error)
}

func (o otherVersions) Versions(ctx context.Context) (map[string]string, error) {
	return o.versions(ctx)
}

func (r *rig) swap(versions func(ctx context.Context) (map[string]string, error)) {
	r.change = func(o *Options) { o.Strategy = otherVersions{o.Strategy, versions} }
}

func bigVersions(context.Context) (map[string]string, error) {
	return map[string]string{"kernel": strings.Repeat("6", 300_000-1)}, nil
}

func hangingVersions(ctx context.Context) (map[string]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRefusedVersions checks that refused versions are not sent again.
func TestRefusedVersions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["versions"] = true
		r.swap(func(context.Context) (map[string]string, error) { return map[string]string{"kernel": "6"}, nil })
		r.leave(upgrading())
		expect(r, message.Upgrade, message.RebootRequired)
		if n := r.log.lines("cannot report versions", "refused by the site"); n != 1 {
			t.Errorf("the same versions were refused %d times, not once", n)
		}
	})
}

// TestOneReportForAll checks that a report that begins after several callers
// have asked for one serves all of them, and none that asks later.
func TestOneReportForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan struct{}, 10), make(chan struct{})
		s := newFakeLog()
		w := &Worker{Options: Options{HostLog: s, Log: slog.New(slog.DiscardHandler), Strategy: otherVersions{versions: func(context.Context) (map[string]string, error) {
			begun <- struct{}{}
			<-release
			return map[string]string{"kernel": "6"}, nil
		}}}, reports: wait.NewQueue[chan struct{}, struct{}](), changed: wait.NewSignal()}
		w.Now, w.VersionsInterval = time.Now, time.Hour
		w.Limits.Action = time.Hour
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = w.reportVersions(ctx) })
		<-begun // The report of the start, which serves nobody who asks from now on.
		var served atomic.Int32
		for range 2 {
			running.Go(func() {
				w.versionsBeforeReply(ctx)
				served.Add(1)
			})
		}
		synctest.Wait()
		release <- struct{}{}
		<-begun
		running.Go(func() {
			w.versionsBeforeReply(ctx)
			served.Add(1)
		})
		synctest.Wait()
		if n := served.Load(); n != 0 {
			t.Errorf("%d callers are served by a report that began before they asked", n)
		}
		release <- struct{}{}
		<-begun
		synctest.Wait()
		if n := served.Load(); n != 2 {
			t.Errorf("one report serves %d callers, not the 2 that asked before it began", n)
		}
		close(release)
		synctest.Wait()
		if n := served.Load(); n != 3 {
			t.Errorf("%d callers are served in the end", n)
		}
		stop()
		running.Wait()
	})
}

// pinned are versions that a test sets, with the paths to watch.
type pinned struct {
	strategy.Strategy
	version atomic.Int64
	reads   atomic.Int64
	// whileActing counts the reads during an upgrade, which takes minutes.
	upgrading   atomic.Bool
	whileActing atomic.Int64
}

func (p *pinned) Versions(context.Context) (map[string]string, error) {
	p.reads.Add(1)
	if p.upgrading.Load() {
		p.whileActing.Add(1)
	}
	return map[string]string{"kernel": strconv.FormatInt(p.version.Load(), 10)}, nil
}

func (p *pinned) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	p.upgrading.Store(true)
	defer p.upgrading.Store(false)
	_ = wait.Sleep(ctx, 30*time.Second)
	return p.Strategy.Upgrade(ctx, job)
}

func (p *pinned) VersionPaths() []string { return []string{"/var/lib/packages"} }

// live runs one worker with pinned versions while a test plays.
func (r *rig) live(change func(*Options), play func(p *pinned)) {
	r.t.Helper()
	p := &pinned{}
	r.change = func(o *Options) {
		p.Strategy, o.Strategy = o.Strategy, p
		change(o)
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
	play(p)
	stop()
	if err := errors.Join(<-ended, w.Close()); err != nil {
		r.t.Error(err)
	}
}

// TestVersionsEachInterval checks that a change that no watch reports is sent within an
// interval, and that unchanged versions are not sent again.
func TestVersionsEachInterval(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.live(func(o *Options) { o.VersionsInterval = 10 * time.Minute }, func(p *pinned) {
			time.Sleep(time.Hour)
			if reads, reports := p.reads.Load(), len(r.hostLog.reports()); reads != 7 || reports != 1 {
				t.Errorf("in an hour the versions are read %d times and reported %d times, not 7 times and once", reads, reports)
			}
			p.version.Store(2)
			time.Sleep(10*time.Minute + time.Second)
			if reports := r.hostLog.reports(); len(reports) != 2 || string(reports[1]) != `{"kernel":"2"}` {
				t.Errorf("after a change and an interval the reports are %q", reports)
			}
		})
	})
}

// TestVersionsAreWatched checks that a change of a watched file is sent within a minute,
// many changes in few reports and none during an action, and that a watch that fails is
// begun again.
func TestVersionsAreWatched(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		touch, fail := make(chan struct{}), make(chan struct{})
		watch := func(ctx context.Context, _ []string, changed func()) error {
			changed()
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-fail:
					return errors.New("too many open files")
				case <-touch:
					changed()
				}
			}
		}
		r.live(func(o *Options) { o.VersionsInterval, o.Watch = 24*time.Hour, watch }, func(p *pinned) {
			p.version.Store(2)
			touch <- struct{}{}
			time.Sleep(time.Minute)
			if n := len(r.hostLog.reports()); n != 2 {
				t.Errorf("a minute after a change there are %d reports, not 2", n)
			}
			for range 300 { // A package manager at work for five minutes.
				p.version.Add(1)
				touch <- struct{}{}
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute)
			if n := len(r.hostLog.reports()); n < 3 || n > 9 {
				t.Errorf("of five minutes of changes there are %d reports, not 1 to 7", n-2)
			}
			reads := p.reads.Load()
			for range 600 { // To read the versions changes what is watched.
				touch <- struct{}{}
				time.Sleep(time.Second)
			}
			if n := p.reads.Load() - reads; n < 5 || n > 15 {
				t.Errorf("in ten minutes of changes that are none the versions are read %d times, not 5 to 15 times", n)
			}
			fail <- struct{}{}
			p.version.Add(1)
			before := len(r.hostLog.reports())
			time.Sleep(2 * time.Minute)
			if n := len(r.hostLog.reports()); n != before+1 {
				t.Errorf("what changes while nothing is watched is reported %d times once something is", n-before)
			}
			if r.log.lines("level=WARN", "too many open files") != 1 {
				t.Error("it is not told that the watch has failed")
			}
			r.prepare()
			time.Sleep(time.Second)
			r.command(11, message.Upgrade)
			time.Sleep(time.Second)
			touch <- struct{}{}
			time.Sleep(time.Minute)
			if r.hostLog.answer(message.Upgrade) == "" || p.whileActing.Load() != 0 {
				t.Errorf("during the upgrade, answered %q, the versions are read %d times", r.hostLog.answer(message.Upgrade), p.whileActing.Load())
			}
		})
	})
}

// TestUntilReport checks that each host has a moment of its own in each interval,
// and that the moments are spread.
func TestUntilReport(t *testing.T) {
	t.Parallel()
	const hosts, parts = 1000, 10
	var count [parts]int
	for i := range hosts {
		host := "acme/h" + strconv.Itoa(i)
		wait := untilReport(now, DefaultVersionsInterval, host)
		if wait <= 0 || wait > DefaultVersionsInterval {
			t.Fatalf("%s waits for %s", host, wait)
		}
		count[(wait-1)*parts/DefaultVersionsInterval]++
		if again := untilReport(now.Add(wait), DefaultVersionsInterval, host); again != DefaultVersionsInterval {
			t.Errorf("%s waits for %s after its moment", host, again)
		}
		if later := untilReport(now.Add(wait-time.Second), DefaultVersionsInterval, host); later != time.Second {
			t.Errorf("%s waits for %s a second before its moment", host, later)
		}
	}
	for part, n := range count {
		if n < hosts/parts/2 || n > hosts/parts*2 {
			t.Errorf("%d of %d hosts report in part %d of %d", n, hosts, part, parts)
		}
	}
	if wait := untilReport(time.Unix(-5, 0), time.Minute, "h"); wait <= 0 || wait > time.Minute {
		t.Errorf("before 1970 a host waits for %s", wait)
	}
}
