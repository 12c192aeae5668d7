//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shutdownExt4 is EXT4_IOC_SHUTDOWN: the file system does as if the power had
// been cut. Its argument is 0, 1 or 2: with all that is cached written, with
// its journal written, with nothing written.
const (
	shutdownExt4 = 0x8004587d
	cuts         = 3
	// powerRounds is how often the power is cut; OSUPGRADE_POWER_ROUNDS says
	// otherwise.
	powerRounds = 200
	// longestUp bounds the time from the start of a run to the cut. A calm run
	// takes about that long.
	longestUp = 1200 * time.Millisecond
)

// disk is a file system of its own on a loop device.
type disk struct {
	folder, device string
	// users are the processes that write to it.
	users []string
}

// TestPowerCuts cuts the power of the site's disk and that of the workers'
// journals at random times, brings each back as a boot does, and judges what
// the hosts did and what is left of that which was acknowledged.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	if !long() {
		t.Skip("power cuts take half an hour; set OSUPGRADE_LONG=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("loop devices and mounts need root")
	}
	if !ownMounts(t) {
		return
	}
	rounds := powerRounds
	if text := os.Getenv("OSUPGRADE_POWER_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	f, err := newCrashFleet(t, buildCrashing(t))
	if err != nil {
		t.Fatal(err)
	}
	disks := []*disk{{folder: f.path("site"), users: []string{"site"}}}
	for _, host := range crashHosts {
		disks = append(disks, &disk{folder: f.path(host, "state"), users: []string{host}})
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.logs())
		}
		if err := f.close(); err != nil {
			t.Log(err)
		}
		for _, d := range disks {
			_ = command("losetup", "-d", d.device)
		}
	})
	for i, d := range disks {
		if err := d.make(f.path(fmt.Sprintf("disk%d", i))); err != nil {
			t.Fatal(err)
		}
		f.mounted = append(f.mounted, d.folder)
	}
	if err := f.open(nil); err != nil {
		t.Fatal(err)
	}
	if err := f.born(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for round := range rounds {
		if err := f.powerRound(t, disks, round); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	t.Logf("%d power cuts in %s", rounds, time.Since(begun).Round(time.Second))
}

// ownMounts reports whether this process has a mount namespace of its own. If not, it
// plays the test in a process that has one. A container that starts beside the test
// copies the mounts of this machine: a disk mounted here would stay in use there after
// it was unmounted, so that e2fsck refuses it.
func ownMounts(t *testing.T) bool {
	t.Helper()
	const mark = "OSUPGRADE_OWN_MOUNTS"
	if os.Getenv(mark) != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "--",
		self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=4h")
	child.Env = append(os.Environ(), mark+"=1")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Run(); err != nil {
		t.Errorf("in a mount namespace of its own: %v", err)
	}
	return false
}

// powerRound goes through one run, in which the power of one disk or of all is
// cut.
func (f *crashFleet) powerRound(t *testing.T, disks []*disk, round int) error {
	t.Helper()
	struck := disks
	if i := round % (len(disks) + 1); i < len(disks) {
		struck = disks[i : i+1]
	}
	after, flag := rand.N(longestUp), rand.N(cuts)
	if err := f.gather(); err != nil {
		return err
	}
	f.judge.reset()
	var cut sync.WaitGroup
	var failed error
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()
	cut.Go(func() {
		time.Sleep(after)
		failed = f.blackout(struck, flag)
	})
	known, kept := f.reserve(t), make(chan [2]string, 1)
	go func() { kept <- f.writeReserves(ctx, known, round) }()
	err := f.start(byHand)
	cut.Wait()
	stop()
	acknowledged := <-kept
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	ended, err := f.end("")
	if err != nil {
		return err
	}
	lines, err := f.lines()
	if err != nil {
		return err
	}
	bad := violations(ended, crashHosts, lines)
	if got := f.reserve(t); !sameTime(got, acknowledged[0]) && !sameTime(got, acknowledged[1]) {
		bad = append(bad, fmt.Sprintf("the rollout has a reserve of %q; acknowledged was %q, sent last %q", got, acknowledged[0], acknowledged[1]))
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d disks cut after %s with flag %d: %s\nrecorded: %q", len(struck), after, flag, strings.Join(bad, "; "), lines)
	}
	return nil
}

// writeReserves writes rollouts until one fails or ctx ends, and returns what
// the last one has that was acknowledged, and the last that was sent.
func (f *crashFleet) writeReserves(ctx context.Context, known string, round int) (kept [2]string) {
	kept = [2]string{known, known}
	for i := 0; ctx.Err() == nil; i++ {
		// Below a day, as which it would be written otherwise.
		kept[1] = fmt.Sprintf("%ds", 1+(round*1000+i)%80_000)
		if f.putReserve(ctx, kept[1]) != nil {
			break
		}
		kept[0] = kept[1]
	}
	return kept
}

// sameTime reports whether two reserves are the same: the site writes 60s as
// 1m.
func sameTime(a, b string) bool {
	x, errX := time.ParseDuration(a)
	y, errY := time.ParseDuration(b)
	return a == b || errX == nil && errY == nil && x == y
}

// blackout cuts the power of disks and of who uses them, and boots them. Who
// uses them stands still before: a machine without power answers nobody. While
// ext4 shuts down, fsync(2) of who still runs may return without an error though
// nothing is written (measured: 37 of 600 cuts lost what was acknowledged during
// the cut, and none what was before it).
func (f *crashFleet) blackout(struck []*disk, flag int) error {
	f.mu.Lock()
	for _, d := range struck {
		for _, name := range d.users {
			f.dark[name] = true
		}
	}
	f.mu.Unlock()
	defer f.light()
	for _, d := range struck {
		for _, name := range d.users {
			if err := f.stand(name); err != nil {
				return err
			}
		}
		if err := d.cut(flag); err != nil {
			return err
		}
	}
	for _, d := range struck {
		for _, name := range d.users {
			f.kill(name)
			f.down(name)
		}
		if err := d.boot(f.ctx); err != nil {
			return err
		}
	}
	return nil
}

// stand has a process stand still: no thread of it runs any more.
func (f *crashFleet) stand(name string) error {
	f.mu.Lock()
	cmd := f.live[name]
	f.mu.Unlock()
	if cmd == nil {
		return nil // It is down.
	}
	if err := cmd.Process.Signal(unix.SIGSTOP); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return err
	}
	for range 5000 {
		if !moves(cmd.Process.Pid) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%s does not stand still", name)
}

// moves reports whether a thread of a process runs. One that waits for a disk
// stops when it comes back from there.
func moves(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return true
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // It has ended.
		}
		_, state, _ := strings.Cut(string(text[:min(len(text), 100)]), ") ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "D") && !strings.HasPrefix(state, "Z") {
			return true
		}
	}
	return false
}

// down waits until a process has ended.
func (f *crashFleet) down(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.live[name] != nil {
		f.changed.Wait()
	}
}

func command(name string, args ...string) error {
	out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// make makes a disk out of a file.
func (d *disk) make(file string) error {
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 96<<20), command("mkfs.ext4", "-q", file)); err != nil {
		return err
	}
	out, err := exec.CommandContext(context.Background(), "losetup", "-f", "--show", file).Output()
	if err != nil {
		return fmt.Errorf("cannot make a loop device: %w", err)
	}
	d.device = strings.TrimSpace(string(out))
	return d.mount()
}

func (d *disk) mount() error {
	return errors.Join(command("mount", "-t", "ext4", d.device, d.folder), os.Chmod(d.folder, 0o700))
}

func (d *disk) cut(flag int) error {
	folder, err := os.Open(d.folder)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlSetPointerInt(int(folder.Fd()), shutdownExt4, flag), folder.Close())
}

// boot checks and mounts a disk again. Scripts that outlived their worker end
// first.
func (d *disk) boot(ctx context.Context) error {
	deadline := time.Now().Add(crashPatience)
	for {
		err := unix.Unmount(d.folder, 0)
		if err == nil {
			break
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("cannot unmount %s: %w", d.folder, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	// 1 means that errors were mended.
	var ended *exec.ExitError
	if err := command("e2fsck", "-p", d.device); err != nil && (!errors.As(err, &ended) || ended.ExitCode() > 1) {
		return err
	}
	return d.mount()
}
