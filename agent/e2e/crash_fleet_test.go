//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Of the hosts of a crashFleet h02 fails and rolls back, and h03 reboots.
var crashHosts = []string{"h01", "h02", "h03"}

// crashEnvironments are the hosts of a crashFleet with two environments, which have no others.
var crashEnvironments = map[string][]string{"east": {"h01", "h03"}, "west": {"h02", "h04"}}

// crashPatience bounds the wait for a run to end. It is no measurement.
const crashPatience = 5 * time.Minute

// crashFleet is a site and a few workers whose processes are started again
// whenever they are killed, and a recorder outside of them.
type crashFleet struct {
	dir, bin string
	// address is a loopback address of this fleet alone: with ports that no
	// client is given by chance, a process that starts again finds them free.
	address string
	judge   *judge
	recorder
	api   *client.Client
	token string
	// environments are the hosts of each environment by its name, which is empty if none is
	// declared. hosts are all of them.
	environments map[string][]string
	hosts        []string
	// last is the newest run of each environment.
	last map[string]uint64
	// forwards tells that the next run goes forwards from a rollback that was aborted half-way.
	forwards bool
	// mounted are file systems of this fleet alone.
	mounted []string

	ctx   context.Context
	stop  context.CancelFunc
	parts sync.WaitGroup
	mu    sync.Mutex
	live  map[string]*exec.Cmd
	// dark are processes that stay down, changed is told when one ends or may
	// start again.
	dark    map[string]bool
	changed *sync.Cond
	// broken is why a process ended that was not killed.
	broken chan error
}

// crashFleets counts the fleets of this test process.
var crashFleets atomic.Uint32

func openCrashFleet(t *testing.T, bin string, environments map[string][]string, cells ...*victim) (*crashFleet, error) {
	t.Helper()
	f, err := newCrashFleet(t, bin)
	if err != nil {
		return nil, err
	}
	f.environments, f.hosts = environments, slices.Concat(slices.Collect(maps.Values(environments))...)
	if err := f.open(cells); err != nil {
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, f.logs()), f.close())
	}
	return f, nil
}

// newCrashFleet makes a fleet of which nothing runs yet.
func newCrashFleet(t *testing.T, bin string) (*crashFleet, error) {
	t.Helper()
	// A script that outlived its worker must not fail the test by a file there.
	dir, err := os.MkdirTemp("", "osupgrade-crash-") //nolint:usetesting // see above
	if err != nil {
		return nil, err
	}
	pid := os.Getpid()
	f := &crashFleet{
		environments: map[string][]string{"": crashHosts}, hosts: crashHosts, last: map[string]uint64{},
		dir: dir, bin: bin, judge: newJudge(t), live: map[string]*exec.Cmd{}, dark: map[string]bool{}, broken: make(chan error, 4),
		address: fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%254, 1+pid%254, 1+crashFleets.Add(1)%254),
	}
	f.changed = sync.NewCond(&f.mu)
	f.ctx, f.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	return f, nil
}

func (f *crashFleet) open(cells []*victim) error {
	if err := f.record(f.path("recorder")); err != nil {
		return err
	}
	if err := f.openNews(); err != nil {
		return err
	}
	f.judge.reset(cells...)
	tokens, err := credential.OpenFolder(f.path("site", "credentials", "tokens"))
	if err != nil {
		return err
	}
	token, err := principal.NewTokens(tokens, nil).Add(principal.Token{Name: "test", Tenant: "acme", Allow: access.Rights()})
	if err != nil {
		return err
	}
	f.token = token
	if f.api, err = client.New(client.Options{Endpoint: "http://" + f.address + ":4646", Token: token, Retries: -1}); err != nil {
		return err
	}
	if err := f.writeSite(); err != nil {
		return err
	}
	f.keep("site", "serve", "--data", f.path("site"), "--tenants", "acme", "--listen", f.address+":4646", "--nats-listen", f.address+":4222", "--news-scripts", f.path(newsScripts), "--checks", f.path("site-checks"))
	for _, host := range f.hosts {
		if err := f.openHost(host); err != nil {
			return err
		}
	}
	return f.configure()
}

func (f *crashFleet) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

// insist tries something until it works, for as long as no process is broken.
func (f *crashFleet) insist(what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(f.ctx, crashPatience)
	defer cancel()
	for {
		once, done := context.WithTimeout(ctx, 10*time.Second)
		err := try(once)
		done()
		if err == nil {
			return nil
		}
		select {
		case broken := <-f.broken:
			return broken
		case <-ctx.Done():
			return fmt.Errorf("cannot %s: %w", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// keep runs a process, again each time that it is killed.
func (f *crashFleet) keep(name string, args ...string) {
	f.parts.Go(func() {
		for f.ctx.Err() == nil {
			if err := f.once(name, args); err != nil && f.ctx.Err() == nil {
				select {
				case f.broken <- err:
				default:
				}
				return
			}
		}
	})
}

func (f *crashFleet) once(name string, args []string) error {
	log, err := os.OpenFile(f.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(f.ctx, f.bin, args...) //nolint:gosec // our own binary
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "OSUPGRADE_CRASH="+f.judge.address())
	if err := f.begin(name, cmd); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(log, "--- started %s\n", time.Now().Format(time.StampMilli))
	err = cmd.Wait()
	if f.ended(name) {
		return nil // With its disk gone it may say so before it is killed.
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return nil
	}
	// The one that was killed may live on for a moment in a child that it was
	// just starting, and with it the lock. A service manager tries again, too.
	if text, _ := os.ReadFile(log.Name()); strings.Contains(string(text[max(0, len(text)-300):]), "is in use by process") {
		return nil
	}
	return fmt.Errorf("%s has ended by itself: %w", name, err)
}

// begin starts a process, once it may run.
func (f *crashFleet) begin(name string, cmd *exec.Cmd) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.dark[name] {
		f.changed.Wait()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.live[name] = cmd
	return nil
}

// ended notes the end of a process and reports whether it is to stay down.
func (f *crashFleet) ended(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[name] = nil
	f.changed.Broadcast()
	return f.dark[name]
}

// kill kills a process from outside.
func (f *crashFleet) kill(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cmd := f.live[name]; cmd != nil {
		_ = cmd.Process.Kill()
	}
}

// light lets the processes start again that are down.
func (f *crashFleet) light() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.dark)
	f.changed.Broadcast()
}

// close kills all processes.
func (f *crashFleet) close() error {
	f.stop()
	f.light()
	f.parts.Wait()
	f.judge.close()
	f.recorder.close()
	for _, path := range f.mounted {
		// What a script left behind may still have a file open there.
		_ = syscall.Unmount(path, syscall.MNT_DETACH)
	}
	if f.api != nil {
		f.api.Close()
	}
	return os.RemoveAll(f.dir)
}

// logs returns the ends of what the processes told.
func (f *crashFleet) logs() string {
	const end = 6000
	var all strings.Builder
	for _, name := range append([]string{"site"}, f.hosts...) {
		text, err := os.ReadFile(f.path(name + ".log"))
		text = text[max(0, len(text)-end):]
		_, _ = fmt.Fprintf(&all, "--- %s (%v)\n%s\n", name, err, text)
	}
	return all.String()
}

// gather waits until all hosts are online.
func (f *crashFleet) gather() error {
	return f.insist("see all hosts online", func(ctx context.Context) error {
		hosts, err := f.api.Hosts(ctx, "acme", "")
		if err != nil {
			return err
		}
		online := 0
		for _, h := range hosts {
			if h.Online {
				online++
			}
		}
		if online != len(f.hosts) {
			return fmt.Errorf("%d hosts are online", online)
		}
		return nil
	})
}

// born waits until all hosts are online and kept by the site.
func (f *crashFleet) born() error {
	if err := f.gather(); err != nil {
		return err
	}
	gathered := time.Now()
	return f.insist("see all hosts kept", func(context.Context) error {
		// What was on disk when the site was killed is not written again, nor
		// counted; after a while there is nothing left to write.
		settled := f.judge.killed("site") && time.Since(gathered) > 15*time.Second
		if n := f.judge.keeps(); n < len(f.hosts) && !settled {
			return fmt.Errorf("%d hosts are kept", n)
		}
		return nil
	})
}

// byHand starts a run that upgrades all hosts.
var byHand = v1.Start{OverrideWindow: true, Reason: "a test"}

// start starts a run in each environment. The answer may be lost on the way.
func (f *crashFleet) start(request v1.Start) error {
	for name := range f.environments {
		request.Environment = name
		err := f.insist("start a run", func(ctx context.Context) error {
			_, failed := f.api.Start(ctx, "acme", request)
			runs, err := f.runs(ctx, name)
			if err != nil {
				return errors.Join(failed, err)
			}
			if len(runs) == 0 || runs[0].ID <= f.last[name] {
				return fmt.Errorf("no run has begun: %w", failed)
			}
			f.last[name] = runs[0].ID
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runs returns the newest run of an environment.
func (f *crashFleet) runs(ctx context.Context, environment string) ([]v1.Run, error) {
	filter := v1.RunFilter{Limit: 1}
	if environment != "" {
		filter.Environments = []string{environment}
	}
	return f.api.Runs(ctx, "acme", filter)
}

// end waits until the run of an environment ends. A start that was sent twice may have made
// another one.
func (f *crashFleet) end(environment string) (ended v1.Run, err error) {
	err = f.insist("see the run end", func(ctx context.Context) error {
		runs, err := f.runs(ctx, environment)
		if err != nil {
			return err
		}
		if len(runs) == 0 || !runs[0].Finished() {
			return fmt.Errorf("it does not end: %+v", runs)
		}
		f.last[environment] = runs[0].ID
		ended, err = f.api.Run(ctx, "acme", runs[0].ID)
		return err
	})
	return ended, err
}
