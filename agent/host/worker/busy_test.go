package worker

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// leases say that a host is busy until they are told otherwise.
type leases struct {
	mu      sync.Mutex
	said    *message.NotNow
	changed chan struct{}
}

func newLeases() *leases { return &leases{changed: make(chan struct{})} }

func (l *leases) say(said *message.NotNow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = said
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *leases) Now() *message.NotNow {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}

func (l *leases) Watch(ctx context.Context, changed func()) error {
	for {
		l.mu.Lock()
		next := l.changed
		l.mu.Unlock()
		changed()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
}

// TestUpgradeWaitsForIdle checks that an upgrade which comes while the host is busy begins
// the moment that the host is idle, also when the worker is started again meanwhile, that
// people are told, and that the site is told at once.
func TestUpgradeWaitsForIdle(t *testing.T) {
	t.Parallel()
	for name, visit := range map[string]int{"in one life": 0, "killed while it waits": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				l := newLeases()
				r.change = func(o *Options) { o.Busy = l }
				r.bear()
				r.prepare()
				expect(r, message.Prepare, message.Done)
				began := time.Now()
				l.say(backup(began.Add(time.Hour)))
				time.AfterFunc(90*time.Second, func() {
					if a := r.hostLog.lastAlive(); a.Busy == nil || a.Busy.Reason != "backup" {
						r.t.Errorf("the site was told %+v", a.Busy)
					}
					if r.effects("upgrade") != 0 {
						r.t.Error("the host is upgraded while it is busy")
					}
					l.say(nil)
				})
				r.command(11, message.Upgrade)
				for range visit {
					for r.life(func() bool { return r.journal().Phase == decide.Deferred }) {
					}
				}
				r.until(message.Upgrade)
				if took := time.Since(began); took < 90*time.Second || took > 100*time.Second {
					t.Errorf("the answer came after %s, and the host was busy for 1m30s", took)
				}
				if r.effects("upgrade") != 1 {
					t.Errorf("the host was upgraded %d times", r.effects("upgrade"))
				}
				if a := r.hostLog.lastAlive(); a.Busy != nil {
					t.Errorf("the site is told that the host is busy: %+v", a.Busy)
				}
				told := 0
				for _, p := range r.hostLog.progress {
					if strings.HasPrefix(p.Message, "the upgrade waits, because the host is busy until ") {
						told++
					}
				}
				if told == 0 {
					t.Errorf("people were told %v", r.hostLog.progress)
				}
			})
		})
	}
}

// TestBusyUntilNotAfter checks that a host which is busy until not-after is not upgraded,
// and says why.
func TestBusyUntilNotAfter(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l := newLeases()
		r.change = func(o *Options) { o.Busy = l }
		r.bear()
		c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(10 * time.Minute)}
		r.hostLog.send(message.Record{Seq: 10, Kind: message.CommandAll, Body: c.Encode()})
		expect(r, message.Prepare, message.Done)
		l.say(backup(time.Now().Add(time.Hour)))
		r.command(11, message.Upgrade)
		if got := r.until(message.Upgrade); got != "nothing was upgraded: the host was busy until not-after: backup" || r.effects("upgrade") != 0 {
			t.Errorf("it answered %q after %d upgrades", got, r.effects("upgrade"))
		}
	})
}

// askedForOutputs is a site that takes long to give the outputs of steps.
type askedForOutputs struct {
	log.HostLog
	asked func()
}

func (s askedForOutputs) Outputs(ctx context.Context, run uint64) (map[string]string, error) {
	s.asked()
	return s.HostLog.Outputs(ctx, run)
}

// TestBusyWhileOutputsCome checks that an upgrade does not begin if the host becomes busy while the site
// is asked for the outputs of steps: the upgrade waits, and gets them in the end.
func TestBusyWhileOutputsCome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		l, s, asked := newLeases(), &receiving{}, 0
		r.change = func(o *Options) {
			s.Strategy, o.Strategy, o.Busy = o.Strategy, s, l
			o.HostLog = askedForOutputs{o.HostLog, func() {
				if asked++; asked > 1 {
					return
				}
				time.Sleep(20 * time.Second)
				l.say(backup(time.Now().Add(90 * time.Second)))
				time.AfterFunc(90*time.Second, func() {
					if r.effects("upgrade") != 0 {
						r.t.Error("the host is upgraded while it is busy")
					}
					l.say(nil)
				})
			}}
		}
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		began, c := time.Now(), message.Command{Action: message.Upgrade, Host: "h01"}
		r.hostLog.send(message.Record{Seq: 11, Kind: message.CommandHost, Run: 10, Outputs: true, Body: c.Encode()})
		r.until(message.Upgrade)
		if took := time.Since(began); took < 110*time.Second {
			t.Errorf("the answer came after %s", took)
		}
		if r.effects("upgrade") != 1 || len(s.got) != 1 || s.got[0] != "secret of run 10" {
			t.Errorf("it was upgraded %d times with %q", r.effects("upgrade"), s.got)
		}
	})
}

func backup(until time.Time) *message.NotNow {
	said := message.NewNotNow("backup", until)
	return &said
}

// busyOnceKept has a run upgrade the host, which becomes busy once that is written.
func (r *rig) busyOnceKept(run uint64, lasts time.Duration) {
	l, once := newLeases(), false
	r.change = func(o *Options) {
		o.Busy = l
		o.At = func(label string) {
			if label == "after kept" && !once {
				once = true
				l.say(backup(time.Now().Add(lasts)))
				before := r.effects("upgrade")
				time.AfterFunc(lasts, func() {
					if r.effects("upgrade") != before {
						r.t.Error("the host is upgraded while it is busy")
					}
					l.say(nil)
				})
			}
			r.at(label)
		}
	}
	r.beginsFor(10*time.Minute, run, "")
	expect(r, message.Prepare, message.Done)
	r.visits = map[string]int{}
	r.asks(run, message.Upgrade)
}

// TestBusyWhileKept checks that an upgrade does not begin if the host becomes busy while it is written
// which runs have touched it, wherever the worker is killed then: the upgrade waits. One that never
// begins has not touched the host, so the run before it can still be rolled back.
func TestBusyWhileKept(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]struct {
		label string
		visit int
	}{
		"in one life":            {},
		"killed before it looks": {"after kept", 1},
		"killed before the file": {"before kept", 2},
		"killed after the file":  {"after kept", 2},
		"killed as it waits":     {"after journal", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.bear()
				r.dieAt, r.visit = dies.label, dies.visit
				r.busyOnceKept(10, 90*time.Second)
				began := time.Now()
				expect(r, message.Upgrade, message.RebootRequired)
				if took := time.Since(began); took < 90*time.Second {
					t.Errorf("the answer came after %s, and the host was busy for 1m30s", took)
				}
				if dies.visit > 0 && r.visits[dies.label] < dies.visit {
					t.Error("nothing was killed")
				}
				if runs := r.kept().Runs; len(runs) != 1 || runs[0].Run != 10 || r.effects("upgrade") != 1 {
					t.Errorf("it was upgraded %d times, and keeps %+v", r.effects("upgrade"), runs)
				}
			})
		})
	}
	t.Run("until not-after", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(r *rig) {
			r.bear()
			r.busyOnceKept(10, 20*time.Minute)
			expect(r, message.Upgrade, "nothing was upgraded: the host was busy until not-after: backup")
			if kept, err := readKept(r.options().Dir); err != nil || kept != nil {
				t.Errorf("it keeps %+v, %v", kept, err)
			}
		})
	})
	t.Run("until not-after, after another run", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(r *rig) {
			r.pin(ofImage())
			r.bear()
			r.passes(10, "")
			r.release = ""
			r.busyOnceKept(20, 20*time.Minute)
			expect(r, message.Upgrade, "nothing was upgraded: the host was busy until not-after: backup")
			if runs := r.kept().Runs; len(runs) != 1 || runs[0].Run != 10 {
				t.Errorf("it keeps %+v", runs)
			}
			r.change = nil
			r.passes(30, "10-10")
			r.runs("1.0", "6.1.0")
		})
	})
}
