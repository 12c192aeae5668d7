//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// diskFleet opens a fleet of which one folder is a disk of its own, of some
// MiB.
func diskFleet(t *testing.T, folder string, size int) *crashFleet {
	t.Helper()
	f, err := newCrashFleet(t, buildCrashing(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.logs())
		}
		if err := f.close(); err != nil {
			t.Log(err)
		}
	})
	path := f.path(folder)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	switch err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", size)); {
	case errors.Is(err, syscall.EPERM):
		t.Skip("a disk that can be filled needs the right to mount: " + err.Error())
	case err != nil:
		t.Fatal(err)
	}
	f.mounted = append(f.mounted, path)
	if err := f.open(nil); err != nil {
		t.Fatal(err)
	}
	if err := f.born(); err != nil {
		t.Fatal(err)
	}
	return f
}

// fill leaves no room on the disk of a folder, and empty gives it back.
func fill(folder string) error {
	file, err := os.Create(filepath.Join(folder, "fill"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for page := make([]byte, 4096); ; {
		if _, err := file.Write(page); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func empty(folder string) error { return os.Remove(filepath.Join(folder, "fill")) }

// finish waits for the end of the run and judges it.
func (f *crashFleet) finish(t *testing.T) {
	t.Helper()
	ended, err := f.end("")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := f.lines()
	if err != nil {
		t.Fatal(err)
	}
	if bad := violations(ended, crashHosts, lines); len(bad) > 0 {
		t.Errorf("%q\nrecorded: %q", bad, lines)
	}
}

// TestFullJournal fills the disk of a worker's journal while a run begins: the
// worker does nothing that it cannot write down, says so, and goes on by itself
// once there is space.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	f := diskFleet(t, "h01/state", 8)
	disk := f.path("h01", "state")
	f.judge.reset()
	full := make(chan error, 1)
	f.judge.mu.Lock()
	f.judge.at = map[spot]func(){{"site", "controller before prepare"}: func() { full <- fill(disk) }}
	f.judge.mu.Unlock()
	if err := f.start(byHand); err != nil {
		t.Fatal(err)
	}
	if err := <-full; err != nil {
		t.Fatal(err)
	}
	if err := f.insist("see the worker raise an alarm", func(context.Context) error {
		text, err := os.ReadFile(f.path("h01.log"))
		if err == nil && !strings.Contains(string(text), "ALARM: cannot write the journal") {
			err = errors.New("there is none in its log")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if f.recorded("h01 prepares") {
		t.Error("the worker has done what it could not write down")
	}
	begun := time.Now()
	if err := empty(disk); err != nil {
		t.Fatal(err)
	}
	if err := f.insist("see the worker go on", func(context.Context) error {
		if !f.recorded("h01 prepares") {
			return errors.New("it does nothing")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("the worker went on %s after there was space", time.Since(begun).Round(time.Millisecond))
	f.finish(t)
}

// recorded reports whether a line begins so among those that nobody has judged
// yet.
func (r *recorder) recorded(begins string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.all[r.checked:] {
		if strings.HasPrefix(line, begins) {
			return true
		}
	}
	return false
}

// TestFullLog fills the disk of the site's store in the middle of a run: the
// site says that it is not ready and acknowledges nothing that is not kept, and
// goes on by itself, in the same process, once there is space.
func TestFullLog(t *testing.T) {
	t.Parallel()
	f := diskFleet(t, "site/store", 32)
	disk := f.path("site", "store")
	f.judge.reset()
	full := make(chan error, 1)
	f.judge.mu.Lock()
	f.judge.at = map[spot]func(){{"site", "controller before upgrade"}: func() { full <- fill(disk) }}
	f.judge.mu.Unlock()
	pid := f.pid("site")
	if err := f.start(byHand); err != nil {
		t.Fatal(err)
	}
	if err := <-full; err != nil {
		t.Fatal(err)
	}
	kept := f.writeUntilRefused(t)
	if err := f.insist("see the site not ready", func(ctx context.Context) error {
		for _, path := range []string{"/readyz", "/healthz"} {
			if status, body := f.well(ctx, path); status != http.StatusServiceUnavailable || !strings.Contains(body, "the store is not ready: ") {
				return fmt.Errorf("%s says %d %s", path, status, body)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := empty(disk); err != nil {
		t.Fatal(err)
	}
	if err := f.insist("see the site ready", func(ctx context.Context) error {
		for _, path := range []string{"/readyz", "/healthz"} {
			if status, body := f.well(ctx, path); status != http.StatusOK {
				return fmt.Errorf("%s says %d %s", path, status, body)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("the site was ready %s after there was space", time.Since(begun).Round(time.Millisecond))
	f.finish(t)
	if got := f.reserve(t); !sameTime(got, kept) {
		t.Errorf("the rollout has a reserve of %s, and the last one that was acknowledged is %s", got, kept)
	}
	if err := f.insist("write a rollout", func(ctx context.Context) error { return f.putReserve(ctx, "7s") }); err != nil {
		t.Error(err)
	}
	if now := f.pid("site"); now != pid {
		t.Errorf("the site is another process, %d and not %d", now, pid)
	}
}

// TestFullAudit fills the disk of the audit log in the middle of a run: nothing that people
// ask for is done or answered as done, the run goes on to its end, and once there is space
// changes are taken again and have their records.
func TestFullAudit(t *testing.T) {
	t.Parallel()
	f := diskFleet(t, "site/audit", 2)
	disk := f.path("site", "audit")
	f.judge.reset()
	full := make(chan error, 1)
	f.judge.mu.Lock()
	f.judge.at = map[spot]func(){{"site", "controller before upgrade"}: func() { full <- fill(disk) }}
	f.judge.mu.Unlock()
	if err := f.start(byHand); err != nil {
		t.Fatal(err)
	}
	if err := <-full; err != nil {
		t.Fatal(err)
	}
	kept := f.reserve(t)
	_, paused := f.api.Pause(f.ctx, "acme", v1.Ask{Reason: "the disk is full"})
	for what, err := range map[string]error{"a rollout": f.putReserve(f.ctx, "59s"), "a pause": paused} {
		if !client.HasStatus(err, http.StatusServiceUnavailable) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s is answered: %v", what, err)
		}
	}
	if got := f.reserve(t); !sameTime(got, kept) {
		t.Errorf("a rollout that was refused has a reserve of %s, and the one before had %s", got, kept)
	}
	if status, body := f.well(f.ctx, "/readyz"); status != http.StatusOK {
		t.Errorf("the site can go on with its run, and says %d %s", status, body)
	}
	f.finish(t)
	if err := empty(disk); err != nil {
		t.Fatal(err)
	}
	if err := f.putReserve(f.ctx, "7s"); err != nil {
		t.Errorf("a rollout once there is space: %v", err)
	}
	records := f.audit(t)
	for _, r := range records {
		if r.Result != v1.AuditDone || r.Action == "pause" || strings.Contains(r.Diff, "59s") {
			t.Errorf("a record is %+v", r)
		}
	}
	if last := records[len(records)-1]; last.Object != "rollout" || !strings.Contains(last.Diff, "7s") {
		t.Errorf("the last record is %+v", last)
	}
}

// audit returns the audit log, which must be whole.
func (f *crashFleet) audit(t *testing.T) (all []v1.AuditRecord) {
	t.Helper()
	out, err := exec.CommandContext(f.ctx, f.bin, "audit", "--data", f.path("site"), "--tenant", "acme", "--after", "0", "--output", "json").Output() //nolint:gosec // our own binary
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("the audit log is %s: %v", out, err)
	}
	return all
}

// writeUntilRefused writes rollouts until one is refused, and returns what the
// last one that was acknowledged has as its reserve.
func (f *crashFleet) writeUntilRefused(t *testing.T) (kept string) {
	t.Helper()
	kept = f.reserve(t)
	for i := 1; ; i++ {
		reserve := fmt.Sprintf("%ds", i)
		if err := f.putReserve(f.ctx, reserve); err != nil {
			t.Logf("after %d rollouts: %v", i-1, err)
			return kept
		}
		if i > 10_000 {
			t.Fatal("a full disk takes everything")
		}
		kept = reserve
	}
}

func (f *crashFleet) putReserve(ctx context.Context, reserve string) error {
	declared, _, err := f.api.Rollout(ctx, "acme")
	if err != nil {
		return err
	}
	declared.Reserve = rollout.Span(reserve)
	_, err = f.api.PutRollout(ctx, "acme", declared, client.Precondition{})
	return err
}

func (f *crashFleet) reserve(t *testing.T) string {
	t.Helper()
	var rollout v1.Rollout
	if err := f.insist("read the rollout", func(ctx context.Context) (err error) {
		rollout, _, err = f.api.Rollout(ctx, "acme")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return string(rollout.Reserve)
}

// well asks /readyz or /healthz.
func (f *crashFleet) well(ctx context.Context, path string) (status int, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.address+":4646"+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

func (f *crashFleet) pid(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cmd := f.live[name]; cmd != nil {
		return cmd.Process.Pid
	}
	return 0
}
