package busy

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/smallfile"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

var now = time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)

// TestJudge checks which files count, and until when: what a file says is bounded by the
// limit from when it was first seen, and each fault is named with the file.
func TestJudge(t *testing.T) {
	t.Parallel()
	const limit, self = time.Hour, 1000
	regular := func(body string) file {
		return file{File: smallfile.File{Name: "f", Owner: self, Size: int64(len(body)), Body: []byte(body)}, first: now}
	}
	link, foreign, huge, broken := regular(""), regular(`{"format":1,"reason":"backup","until":"2026-01-31T03:30:00Z"}`), regular(""), regular("")
	link.Mode, foreign.Owner, huge.Size, broken.Err = fs.ModeSymlink, 7, 1<<40, errors.New("input/output error")
	roots := foreign
	roots.Owner = 0
	seen := regular(`{"format":1,"reason":"backup","until":"2026-01-31T09:00:00Z"}`)
	seen.first = now.Add(-50 * time.Minute)
	for name, c := range map[string]struct {
		file            file
		ends            time.Duration // From now; 0 for what does not count.
		reason, problem string
	}{
		"a lease":                  {regular(`{"format":1,"reason":"backup","until":"2026-01-31T03:30:00Z","pid":7}`), 30 * time.Minute, "backup", ""},
		"of root":                  {roots, 30 * time.Minute, "backup", ""},
		"of an unknown member":     {regular(`{"format":1,"reason":"backup","until":"2026-01-31T03:30:00Z","more":1}`), 30 * time.Minute, "backup", ""},
		"without a reason":         {regular(`{"format":1,"until":"2026-01-31T03:30:00Z"}`), 30 * time.Minute, "no reason given", ""},
		"a reason that is hostile": {regular(`{"format":1,"reason":"` + strings.Repeat("x", 3000) + `","until":"2026-01-31T03:30:00Z"}`), 30 * time.Minute, strings.Repeat("x", 197) + "…", ""},
		"far ahead":                {regular(`{"format":1,"reason":"for ever","until":"9999-12-31T00:00:00Z"}`), time.Hour, "for ever", "busy lease f ends at 9999-12-31T00:00:00Z, beyond the worker's --busy-limit of 1h0m0s; it counts until 2026-01-31T04:00:00Z"},
		"renewed again and again":  {seen, 10 * time.Minute, "backup", "it counts until 2026-01-31T03:10:00Z"},
		"malformed":                {regular(`{"format":1,`), time.Hour, "busy lease f cannot be read", "unexpected end of JSON input; use {"},
		"empty":                    {regular(``), time.Hour, "busy lease f cannot be read", "unexpected end of JSON input"},
		"of another type":          {regular(`{"format":1,"reason":3,"until":"2026-01-31T03:30:00Z"}`), time.Hour, "busy lease f cannot be read", "reason is a JSON number"},
		"without a number":         {regular(`{"reason":"backup","until":"2026-01-31T03:30:00Z"}`), time.Hour, "busy lease f cannot be read", "it bears no format number"},
		"of a newer format":        {regular(`{"format":2}`), time.Hour, "busy lease f cannot be read", "written by format 2, this version reads 1"},
		"without an end":           {regular(`{"format":1,"reason":"backup"}`), time.Hour, "busy lease f cannot be read", "until is missing"},
		"huge":                     {huge, time.Hour, "busy lease f cannot be read", "it has 1099511627776 bytes; use at most 4096"},
		"on a broken disk":         {broken, time.Hour, "busy lease f cannot be read", "input/output error"},
		"a link":                   {link, 0, "", "busy lease f does not count: it is no regular file"},
		"somebody else's":          {foreign, 0, "", "busy lease f does not count: it belongs to user 7; it should belong to root or to the worker's user 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judge(c.file, limit, self)
			if counts := got.CountsAt(now); counts != (c.ends > 0) || counts && !got.Ends.Equal(now.Add(c.ends)) || got.CountsAt(now.Add(c.ends)) {
				t.Errorf("it counts until %s", got.Ends)
			}
			if !strings.HasPrefix(got.Reason, c.reason) {
				t.Errorf("the reason is %q", got.Reason)
			}
			if text := fmt.Sprint(got.Problem); (got.Problem != nil) != (c.problem != "") || !strings.Contains(text, c.problem) {
				t.Errorf("the problem is %s", text)
			}
		})
	}
}

// TestNotNow checks that of several leases the one that lasts longest is told, that those
// that have ended do not count, and when the next one ends.
func TestNotNow(t *testing.T) {
	t.Parallel()
	of := func(reason string, ends time.Duration) Found {
		return Found{Lease: Lease{Reason: reason}, Ends: now.Add(ends)}
	}
	all := []Found{of("short", time.Minute), of("long", time.Hour), of("past", 0), {Name: "never"}}
	if got := NotNow(all, now); got == nil || got.Reason != "long (and 1 other lease)" || !got.Until.Equal(now.Add(time.Hour)) {
		t.Errorf("it says %+v", got)
	}
	if got := NotNow(all, now.Add(time.Minute)); got == nil || got.Reason != "long" {
		t.Errorf("a minute later it says %+v", got)
	}
	if got := NotNow(all, now.Add(time.Hour)); got != nil {
		t.Errorf("in the end it says %+v", got)
	}
	if got := nextEnd(all, now); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("the next end is %s", got)
	}
	if got := nextEnd(all, now.Add(time.Hour)); !got.IsZero() {
		t.Errorf("in the end the next end is %s", got)
	}
}

// TestFirstSeen checks that no file counts beyond the limit from when it was seen first,
// however often it is written again, and that a new worker goes by the file's time.
func TestFirstSeen(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), time.Now()
	f := &Folder{Dir: dir, Limit: time.Hour}
	ends := func(f *Folder, at time.Time) time.Duration {
		t.Helper()
		all, err := f.List(at)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Ends.Sub(at).Round(time.Minute)
	}
	write := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "hostile"), []byte(`{"format":1,"reason":"for ever","until":"2999-01-01T00:00:00Z"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if got := ends(f, at); got != time.Hour {
		t.Errorf("it counts for %s", got)
	}
	write()
	if got := ends(f, at.Add(50*time.Minute)); got != 10*time.Minute {
		t.Errorf("written again it counts for %s", got)
	}
	if got := ends(&Folder{Dir: dir, Limit: time.Hour}, at.Add(50*time.Minute)); got != 10*time.Minute {
		t.Errorf("for a new worker it counts for %s", got)
	}
	if err := os.Chtimes(filepath.Join(dir, "hostile"), at, at.Add(1000*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := ends(&Folder{Dir: dir, Limit: time.Hour}, at); got != time.Hour {
		t.Errorf("with a time that is far ahead it counts for %s", got)
	}
}

// TestSeenBefore checks that a worker which starts again knows when it saw a file first,
// though that was written again meanwhile, and that who lists the files knows its limit.
func TestSeenBefore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "busy")
	hostile := func() error {
		return os.WriteFile(filepath.Join(dir, "hostile"), []byte(`{"format":1,"reason":"for ever","until":"2999-01-01T00:00:00Z"}`), 0o600)
	}
	folder := func(limit time.Duration) *Folder {
		return &Folder{Dir: dir, Limit: limit, Log: slog.New(slog.DiscardHandler)}
	}
	if folder(time.Hour).Now() != nil {
		t.Fatal("a host without the folder is busy")
	}
	if err := errors.Join(os.Mkdir(dir, 0o700), hostile()); err != nil {
		t.Fatal(err)
	}
	before := folder(time.Hour).Now()
	if before == nil {
		t.Fatal("the host is not busy")
	}
	later := time.Now().Add(30 * time.Minute)
	if err := errors.Join(hostile(), os.Chtimes(filepath.Join(dir, "hostile"), later, later)); err != nil {
		t.Fatal(err)
	}
	if after := folder(time.Hour).Now(); after == nil || !after.Until.Equal(before.Until) {
		t.Errorf("it was busy until %s, and for a worker that starts again until %s", before.Until, after)
	}
	all, err := Recall(dir, 9*time.Hour, nil).List(time.Now())
	if err != nil || len(all) != 1 || !all[0].Ends.Truncate(time.Second).Equal(before.Until) {
		t.Errorf("it is listed as %+v, %v", all, err)
	}
	for name, text := range map[string]string{"damaged": "{", "of a newer format": `{"format":9}`, "without a limit": `{"format":1}`, "huge": strings.Repeat(" ", maxSeen) + `{"format":1,"limit-nanoseconds":1}`} {
		if err := os.WriteFile(filepath.Join(dir, seenFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Recall(dir, 9*time.Hour, nil); got.Limit != 9*time.Hour || got.first != nil {
			t.Errorf("of a file that is %s it has %s and %v", name, got.Limit, got.first)
		}
		if folder(time.Hour).Now() == nil {
			t.Errorf("with a file that is %s the host is not busy", name)
		}
	}
}

// TestFolder checks what is read of a folder: no hidden files, no more than there may be,
// and a pipe or a link holds nobody up.
func TestFolder(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	f := &Folder{Dir: filepath.Join(t.TempDir(), "busy"), Limit: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if got := f.Now(); got != nil {
		t.Fatalf("no folder, and it says %+v", got)
	}
	name, err := Create(f.Dir, Lease{Reason: "Backup of /etc", Until: time.Now().Add(time.Minute)})
	if err != nil || !strings.HasPrefix(name, "backup-of--etc-") {
		t.Fatal(name, err)
	}
	if err := errors.Join(os.Symlink(name, filepath.Join(f.Dir, "link")), os.WriteFile(filepath.Join(f.Dir, ".written"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := f.Now(); got == nil || got.Reason != "Backup of /etc" {
			t.Errorf("it says %+v", got)
		}
	}
	if n := strings.Count(log.String(), "busy lease link does not count"); n != 1 {
		t.Errorf("the link is told of %d times:\n%s", n, log.String())
	}
	if err := End(f.Dir, name); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{name, "../busy", ".", "a/b"} {
		if err := End(f.Dir, wrong); err == nil || !strings.Contains(err.Error(), "busy --list shows the names") {
			t.Errorf("%s ends with %v", wrong, err)
		}
	}
	if got := f.Now(); got != nil {
		t.Errorf("all have ended, and it says %+v", got)
	}
	for i := range maxFiles + 5 {
		if err := os.WriteFile(filepath.Join(f.Dir, fmt.Sprintf("f%03d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := f.List(time.Now()); err != nil || len(all) != maxFiles+1 || all[maxFiles].Problem == nil {
		t.Errorf("%d are listed, %v", len(all), err)
	}
}

// TestWatch checks that each change is told, and the end of a lease to the moment, without
// anybody asking.
func TestWatch(t *testing.T) {
	t.Parallel()
	f := &Folder{Dir: filepath.Join(t.TempDir(), "run", "busy"), Limit: time.Hour, Log: slog.New(slog.DiscardHandler)}
	changed := make(chan bool, 100)
	go func() { _ = f.Watch(t.Context(), func() { changed <- f.Now() != nil }) }()
	until := func(busy bool) {
		t.Helper()
		for {
			select {
			case got := <-changed:
				if got == busy {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("nobody says that busy is %v", busy)
			}
		}
	}
	until(false)
	name, err := Create(f.Dir, Lease{Reason: "backup", Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	until(true)
	if err := End(f.Dir, name); err != nil {
		t.Fatal(err)
	}
	until(false)
	ends := time.Now().Add(300 * time.Millisecond)
	if _, err := Create(f.Dir, Lease{Reason: "backup", Until: ends}); err != nil {
		t.Fatal(err)
	}
	until(true)
	until(false)
	if time.Now().Before(ends) {
		t.Error("the lease was ended too early")
	}
}

// FuzzJudge checks that no busy lease, whatever is in it, counts for longer than the limit or
// spoils the line in which it is told.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"format":1,"reason":"backup","until":"2026-01-31T04:00:00Z"}`), int64(30))
	f.Add([]byte(`{"format":1,"reason":"\u001b[2J","until":"9999-12-31T23:59:59+14:00"}`), int64(0))
	f.Add([]byte(`{"format":9,"until":1}`), int64(100_000))
	f.Fuzz(func(t *testing.T, body []byte, size int64) {
		first, limit := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), 6*time.Hour
		found := judge(file{File: smallfile.File{Name: "x", Size: size, Body: body}, first: first}, limit, 0)
		if found.Ends.After(first.Add(limit)) {
			t.Errorf("%s counts until %s", body, found.Ends)
		}
		if found.Problem == nil && found.Reason != message.CleanText(found.Reason) {
			t.Errorf("%s is shown as %q", body, found.Reason)
		}
	})
}
