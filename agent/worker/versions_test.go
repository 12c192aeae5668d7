package worker

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// upgrading is the journal of a host that was interrupted in an upgrade.
func upgrading() Journal {
	return Journal{Run: 10, NotAfter: time.Now().Add(time.Hour), Seq: 11, Action: message.Upgrade, Phase: Upgrading, BootID: "boot-1"}
}

// TestCutOff checks that a host continues the step in its journal while the site is
// unreachable, and replies once it is reachable.
func TestCutOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.leave(upgrading())
		r.hostLog.cut = make(chan struct{})
		r.life(func() bool { return r.journal().Phase == Answering })
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
		}}}, reports: wait.NewQueue[chan struct{}, struct{}]()}
		w.Limits.Step = time.Hour
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
