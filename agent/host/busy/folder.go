package busy

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/filewatch"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/smallfile"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Folder is the folder of the busy leases of a host. It is safe for concurrent use.
type Folder struct {
	Dir string
	// Limit is how long a file counts at most, from when it was first seen.
	Limit time.Duration
	Log   *slog.Logger

	mu sync.Mutex
	// first is when each file was first seen, told the problem of each that was logged.
	first map[string]time.Time
	told  map[string]string
	// kept is what is in the file of what was seen, or is not to be tried again.
	kept []byte
}

// seenFile has what the worker has seen, for its next start and for who lists the leases. A
// dot begins its name: it is no lease.
const seenFile = ".seen.json"

// seen is its content.
type seen struct {
	Limit time.Duration        `json:"limit-nanoseconds"`
	First map[string]time.Time `json:"first,omitempty"`
}

// Recall returns the folder as its worker sees it; as one that has this limit if no worker
// has seen it, or one whose file cannot be read.
func Recall(dir string, limit time.Duration, log *slog.Logger) *Folder {
	f := &Folder{Dir: dir, Limit: limit, Log: log}
	if was, some := recall(dir); some {
		f.Limit, f.first = was.Limit, was.First
	}
	return f
}

func recall(dir string) (was seen, some bool) {
	found, ok := open(filepath.Join(dir, seenFile))
	if !ok || !found.IsTrusted(os.Geteuid()) || found.Err != nil || found.Size > maxSeen {
		return seen{}, false
	}
	err := format.BusySeen.Decode(found.Body, &was)
	return was, err == nil && was.Limit > 0
}

// keep writes what was seen if it is not there already. The folder lasts until the next boot,
// as the leases do.
func (f *Folder) keep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := format.BusySeen.Encode(seen{f.Limit, f.first})
	if err != nil || bytes.Equal(body, f.kept) || f.kept == nil && len(f.first) == 0 {
		return
	}
	f.kept = body
	if err := durable.WriteFile(filepath.Join(f.Dir, seenFile), body, 0o644); err != nil {
		f.Log.Warn("cannot keep when the busy leases were first seen: a worker that starts again goes by the times of the files", "error", err)
	}
}

// List returns the files by name, each as it counts. A folder that does not exist is
// empty.
func (f *Folder) List(now time.Time) ([]Found, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the busy leases: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.seenBefore()
	f.first = map[string]time.Time{}
	var all []Found
	for _, entry := range entries {
		// A dot begins the name of a file that is being written.
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if len(all) == maxFiles {
			return append(all, Found{Name: entry.Name(), Problem: fmt.Errorf("busy lease %s and those after it do not count: there are more than %d; remove those that have ended", entry.Name(), maxFiles)}), nil
		}
		found, ok := open(filepath.Join(f.Dir, entry.Name()))
		if !ok {
			continue
		}
		// A file that is written again is no new one: it cannot last for ever. What nobody
		// has seen before goes by its own time.
		if first, seen := before[found.Name]; seen {
			found.first = first
		}
		found.first = earlier(found.first, now)
		f.first[found.Name] = found.first
		all = append(all, judge(found, f.Limit, os.Geteuid()))
	}
	return all, nil
}

// seenBefore is when files were first seen, also by the worker that ran before this one.
func (f *Folder) seenBefore() map[string]time.Time {
	if f.first == nil {
		was, _ := recall(f.Dir)
		return was.First
	}
	return f.first
}

// open reads a file; false if it is gone. What nobody has seen before goes by its own time.
func open(path string) (file, bool) {
	found, ok := smallfile.Read(path, maxSeen)
	return file{File: found, first: found.Modified}, ok
}

// Now returns why the host is not to be upgraded now; nil when it may be. Each problem is
// logged once.
func (f *Folder) Now() *message.NotNow {
	now := time.Now()
	all, err := f.List(now)
	if err != nil {
		all = append(all, Found{Name: f.Dir, Problem: err})
	}
	f.logProblems(all)
	f.keep()
	return NotNow(all, now)
}

func (f *Folder) logProblems(all []Found) {
	f.mu.Lock()
	defer f.mu.Unlock()
	told := map[string]string{}
	for _, found := range all {
		if found.Problem == nil {
			continue
		}
		problem := message.CleanText(found.Problem.Error())
		if told[found.Name] = problem; f.told[found.Name] != problem {
			f.Log.Warn("a busy lease is not as it should be", "error", problem)
		}
	}
	f.told = told
}

// Watch calls changed when it has begun, after each change of the folder, and when a file
// ceases to count, until ctx ends or the watch fails. It makes the folder if there is
// none.
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var one sync.Mutex
	var timer *time.Timer
	var look func()
	look = func() {
		one.Lock()
		defer one.Unlock()
		if ctx.Err() != nil {
			return
		}
		changed()
		if timer != nil {
			timer.Stop()
		}
		now := time.Now()
		all, _ := f.List(now) // An error is told by Now.
		if next := nextEnd(all, now); !next.IsZero() {
			timer = time.AfterFunc(next.Sub(now), look)
		}
	}
	defer func() {
		cancel()
		one.Lock()
		defer one.Unlock()
		if timer != nil {
			timer.Stop()
		}
	}()
	return filewatch.Watch(ctx, []string{f.Dir}, look)
}

// Create writes a lease and returns the name of its file.
func Create(dir string, l Lease) (name string, err error) {
	body, err := format.Busy.Encode(l)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the folder of the busy leases: %w", err)
	}
	name = slug(l.Reason) + "-" + strings.ToLower(rand.Text()[:6]) + ".json"
	return name, durable.WriteFile(filepath.Join(dir, name), append(body, '\n'), 0o644)
}

// End removes a lease.
func End(dir, name string) error {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%q is no name of a busy lease; osupgrade-agent busy --list shows the names", name)
	}
	err := os.Remove(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no busy lease %s in %s; osupgrade-agent busy --list shows the names", name, dir)
	}
	return err
}

// slug makes the beginning of a file name of a reason.
func slug(reason string) string {
	const most = 30
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, reason)
	if name = strings.Trim(name[:min(len(name), most)], "-"); name == "" {
		return "busy"
	}
	return name
}
