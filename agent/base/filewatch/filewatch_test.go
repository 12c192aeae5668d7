package filewatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// longest is how long a test waits for what must happen.
const longest = 30 * time.Second

// TestWatch checks which changes of the file system are told: those of a file that
// is written, replaced or made, and of the entries of a folder, and no others.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(time.Now().String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(dir, "db")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write("status")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told, ended := make(chan struct{}, 1000), make(chan error, 1)
	go func() {
		ended <- Watch(ctx, []string{filepath.Join(dir, "status"), filepath.Join(dir, "later"), folder}, func() { told <- struct{}{} })
	}()
	select {
	case <-told: // The watch has begun.
	case err := <-ended:
		t.Fatal(err)
	}
	for name, do := range map[string]func(){
		"a file is replaced":           func() { write("new"); rename(t, dir, "new", "status") },
		"a file is made":               func() { write("later") },
		"an entry of a folder is made": func() { write("db/a") },
	} {
		do()
		select {
		case <-told:
		case err := <-ended:
			t.Fatalf("%s: the watch ends with %v", name, err)
		case <-time.After(longest):
			t.Fatalf("%s: that is not told", name)
		}
		drain(told)
	}
	remove(t, dir, "db/a")
	remove(t, dir, "db")
	select {
	case err := <-ended:
		if !errors.Is(err, ErrGone) {
			t.Errorf("with the folder removed the watch ends with %v", err)
		}
	case <-time.After(longest):
		t.Error("the watch of a folder that was removed goes on")
	}
}

// TestWatchRefuses checks that what cannot be watched is an error that names it.
func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing", "status")
	if err := Watch(t.Context(), []string{missing}, func() {}); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file in no folder: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Watch(ctx, []string{t.TempDir()}, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

// TestPoll checks what is told where files are looked at each second.
func TestPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		folder, replaced := filepath.Join(dir, "db"), filepath.Join(dir, "replaced")
		write := func(path, text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{folder, replaced} {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		write(folder+"/a", "one")
		w := watched{folders: map[string]bool{}, files: map[string]bool{}}
		for _, path := range []string{folder, replaced, dir + "/status", dir + "/later"} {
			w.add(path)
		}
		ended, told := make(chan error, 1), atomic.Int32{}
		go func() { ended <- w.poll(t.Context(), func() { told.Add(1) }) }()
		for _, row := range []struct {
			what string
			do   func()
			want int32
		}{
			{"the beginning", func() {}, 1},
			{"nothing", func() {}, 0},
			{"a file that is made", func() { write(dir+"/status", "1") }, 1},
			{"a file that is written", func() { write(dir+"/status", "22") }, 1},
			{"a file that is replaced", func() { write(dir+"/new", "22"); rename(t, dir, "new", "status") }, 1},
			{"a file that is removed", func() { remove(t, dir, "status") }, 1},
			{"another file beside it", func() { write(dir+"/other", "1") }, 0},
			{"an entry that is made", func() { write(folder+"/b", "1") }, 1},
			{"an entry that is removed", func() { remove(t, dir, "db/a") }, 1},
			{"permissions", func() {
				if err := os.Chmod(folder+"/b", 0o400); err != nil {
					t.Fatal(err)
				}
			}, 0},
		} {
			row.do()
			time.Sleep(2 * pollInterval)
			synctest.Wait()
			if n := told.Swap(0); n != row.want {
				t.Errorf("%s: told %d times, want %d", row.what, n, row.want)
			}
		}
		rename(t, dir, "replaced", "away")
		if err := os.Mkdir(replaced, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, ErrGone) {
			t.Errorf("with a folder replaced it ends with %v", err)
		}
		remove(t, dir, "replaced")
		if err := w.poll(t.Context(), func() {}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("with a folder removed it ends with %v", err)
		}
	})
}

// TestCounts checks which events count, one by one.
func TestCounts(t *testing.T) {
	t.Parallel()
	db := t.TempDir()
	w := watched{folders: map[string]bool{}, files: map[string]bool{}}
	for path, folder := range map[string]string{"/var/lib/dpkg/status": "/var/lib/dpkg", db + "/": db, filepath.Join(db, "file"): db} {
		if got := w.add(path); got != folder {
			t.Errorf("for %s the folder %s is watched, not %s", path, got, folder)
		}
	}
	for _, c := range []struct {
		name         string
		op           fsnotify.Op
		counts, gone bool
	}{
		{"/var/lib/dpkg/status", fsnotify.Write, true, false},
		{"/var/lib/dpkg/status", fsnotify.Create, true, false},
		{"/var/lib/dpkg/status", fsnotify.Rename, true, false},
		{"/var/lib/dpkg/status", fsnotify.Chmod, false, false},
		{"/var/lib/dpkg/status", fsnotify.Chmod | fsnotify.Write, true, false},
		{"/var/lib/dpkg/lock", fsnotify.Write, false, false},
		{db + "/any", fsnotify.Write, true, false},
		{db + "/any", fsnotify.Remove, true, false},
		{db + "/any/deep", fsnotify.Write, false, false},
		{db, fsnotify.Remove, false, true},
		{db, fsnotify.Rename, false, true},
		{"/var/lib/dpkg", fsnotify.Remove, false, true},
		{"/var/lib/dpkg", fsnotify.Write, false, false},
	} {
		e := fsnotify.Event{Name: c.name, Op: c.op}
		if counts, gone := w.counts(e), w.gone(e); counts != c.counts || gone != c.gone {
			t.Errorf("%s: it counts: %v, and the folder is gone: %v; want %v, %v", e, counts, gone, c.counts, c.gone)
		}
	}
}

func drain(told chan struct{}) {
	for {
		select {
		case <-told:
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
