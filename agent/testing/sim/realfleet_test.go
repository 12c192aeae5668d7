package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	realTenant      = "acme"
	realApplication = "os-upgrade-simulated"
	realHosts       = 3
	week            = 7 * 24 * time.Hour
	// realRun is how long a run takes: all hosts prepare at once, then each in
	// its turn upgrades, asks for the reboot, boots and verifies.
	realRun = (1 + 4*realHosts) * realAction
	// downtime is how long the site is down when it is started anew, and slack by
	// how much that may lengthen a run: those who call it pause between attempts.
	downtime = 10 * time.Second
	slack    = time.Minute
)

// fleet is a site with its hosts and one window a week.
type fleet struct {
	t *testing.T
	// window is when the first window opens.
	window time.Time
	alarms alarms
	site   *realSite
	hosts  []*realHost
	// runs are the ids of the runs, oldest first.
	runs  []uint64
	parts sync.WaitGroup
}

// unwatched is a store of keys that no file event reports on. Who waits for the kernel
// holds the time of a bubble.
type unwatched struct{ credential.Store }

func (unwatched) Watch(ctx context.Context, _ func()) { <-ctx.Done() }

// newFleet starts all of it an hour before the first window.
func newFleet(t *testing.T, dir string) *fleet {
	t.Helper()
	// A bubble begins at midnight on a Saturday.
	f := &fleet{t: t, window: time.Now().Add(4*24*time.Hour + 2*time.Hour)}
	time.Sleep(time.Until(f.window) - time.Hour)
	keys, err := credential.OpenFolder(filepath.Join(dir, "credentials"))
	f.must(err)
	f.site = &realSite{dir: dir, hosts: natsd.NewHosts(unwatched{keys}), log: slog.New(&f.alarms)}
	t.Cleanup(f.close)
	f.must(f.site.open(t.Context()))
	_, err = f.site.store.PutConfig(t.Context(), realTenant, v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: realApplication}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Wednesday", StartTime: "02:00", Timezone: "UTC", Duration: "4h"}},
	}}, store.Revision{})
	f.must(err)
	for n := range realHosts {
		h, err := newRealHost(f.site, fmt.Sprintf("h%02d", n+1))
		f.must(err)
		f.hosts = append(f.hosts, h)
		f.parts.Go(func() { h.live(t.Context()) })
	}
	return f
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// close stops all of it, also after a failure: a bubble ends with its last
// goroutine. The test's context has ended by then.
func (f *fleet) close() {
	f.parts.Wait()
	if err := f.site.close(); err != nil {
		f.t.Error(err)
	}
}

// week lives through the week whose window is the n-th, from 0 on. The site is
// started anew between two windows, in the middle of the run, and once more
// while the window is still open.
func (f *fleet) week(n int) {
	f.t.Helper()
	window := time.Duration(n) * week
	if n > 0 {
		f.until(window - week/2)
		f.restart()
	}
	f.until(window + f.middle(n))
	f.underWay()
	f.restart()
	f.until(window + 2*time.Hour)
	f.check(n)
	f.restart()
	f.until(window + 5*time.Hour)
	f.check(n)
}

func (f *fleet) until(after time.Duration) { time.Sleep(time.Until(f.window.Add(after))) }

// middle is another place of the run in each week.
func (f *fleet) middle(n int) time.Duration {
	return (time.Duration(7+5*n)*time.Minute + 30*time.Second) % realRun
}

func (f *fleet) restart() {
	f.t.Helper()
	f.must(f.site.close())
	time.Sleep(downtime)
	f.must(f.site.open(f.t.Context()))
}

// underWay checks that there is a run to interrupt.
func (f *fleet) underWay() {
	f.t.Helper()
	shown, err := f.site.controller.Snapshot(f.t.Context())
	f.must(err)
	newest := cmp.Or(shown.Run, &v1.Run{})
	if newest.ID == 0 || newest.Finished() || slices.Contains(f.runs, newest.ID) {
		f.t.Fatalf("%s no run is under way: the newest is %+v", now(), newest)
	}
	f.runs = append(f.runs, newest.ID)
}

// check checks what came of the n-th window, and that nothing else happened.
func (f *fleet) check(n int) {
	f.t.Helper()
	ctx := f.t.Context()
	f.must(f.site.controller.Ready(ctx))
	if told := f.alarms.all(); len(told) > 0 {
		f.t.Fatalf("%s there are alarms:\n%s", now(), strings.Join(told, "\n"))
	}
	runs, err := f.site.controller.Runs(ctx, v1.RunFilter{})
	f.must(err)
	if len(runs) != n+1 {
		f.t.Fatalf("%s %d windows have %d runs: %+v", now(), n+1, len(runs), runs)
	}
	f.checkRun(f.window.Add(time.Duration(n)*week), runs[0])
	state, err := f.site.controller.State(ctx)
	f.must(err)
	if state.Status != "idle" || state.LastMissed != nil || state.WaitingFor != nil {
		f.t.Errorf("%s the state is %+v", now(), state)
	}
	f.checkHosts(ctx, n)
}

// checkRun checks the run of a window: a restart neither delays its start, nor
// its end by much.
func (f *fleet) checkRun(window time.Time, r v1.Run) {
	f.t.Helper()
	if r.ID != f.runs[len(f.runs)-1] || r.Result != "completed" || r.Trigger != "window" || len(r.Hosts) != realHosts {
		f.t.Fatalf("%s the window's run is %+v", now(), r)
	}
	if lasted := r.EndedAt.Sub(window); !r.OpenedAt.Equal(window) || lasted < realRun || lasted > realRun+slack {
		f.t.Errorf("%s the run lasted from %s to %s", now(), r.OpenedAt, r.EndedAt)
	}
	for _, h := range r.Hosts {
		if h.Status != "upgraded" || h.Error != "" {
			f.t.Errorf("%s host %s is %+v", now(), h.Hostname, h)
		}
	}
}

// checkHosts checks what truly happened to each host: one upgrade and one
// reboot in each run.
func (f *fleet) checkHosts(ctx context.Context, n int) {
	f.t.Helper()
	var want []string
	for _, id := range f.runs {
		for _, action := range []string{"prepare", "upgrade", "reboot", "boot"} {
			want = append(want, fmt.Sprintf("%s in run %d", action, id))
		}
	}
	hosts, err := f.site.controller.Hosts(ctx, v1.HostFilter{})
	f.must(err)
	if len(hosts) != realHosts {
		f.t.Fatalf("%s there are the hosts %+v", now(), hosts)
	}
	for i, h := range f.hosts {
		if v := hosts[i]; v.Hostname != h.name || !v.Online || v.Versions["kernel"] != fmt.Sprintf("6.1.%d", n+1) {
			f.t.Errorf("%s host %s shows as %+v", now(), h.name, v)
		}
		effects, err := h.machine.Effects()
		f.must(err)
		if did := inWords(effects); !slices.Equal(did, want) {
			f.t.Errorf("%s host %s did %v, not %v", now(), h.name, did, want)
		}
	}
}

func inWords(effects []simulated.Effect) (words []string) {
	for _, e := range effects {
		words = append(words, fmt.Sprintf("%s in run %d", e.Action, e.Run))
	}
	return words
}

// now is when it is in the bubble.
func now() string { return time.Now().UTC().Format("2006-01-02 15:04:05") }
