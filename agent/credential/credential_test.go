package credential

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFolder checks that what is put can be got, also by somebody else, and that
// what is not there is told from what cannot be read.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/made"
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get("a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before it is put: %v", err)
	}
	if err := f.Put("a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	// Neither an unfinished write nor anything else is an entry.
	if err := errors.Join(os.WriteFile(dir+"/b.json.tmp", nil, 0o600), os.Mkdir(dir+"/c.json", 0o700)); err != nil {
		t.Fatal(err)
	}
	if all, err := f.List(); err != nil || len(all) != 1 || all[0].Name != "a" || time.Since(all[0].Made) > time.Hour {
		t.Errorf("it lists %v, %v", all, err)
	}
	again, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	same := func(body []byte) ([]byte, error) { return body, nil }
	if err := again.Update("none", same); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there is updated: %v", err)
	}
	refused := errors.New("refused")
	if err := again.Update("a", func([]byte) ([]byte, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("an update that fails: %v", err)
	}
	if got, err := again.Get("a"); err != nil || string(got) != "one" {
		t.Errorf("it is %q, %v", got, err)
	}
	defer func() {
		if err := f.Remove("a"); err != nil {
			t.Error(err)
		}
		if err := f.Remove("a"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what is not there is removed: %v", err)
		}
		if all, err := f.List(); err != nil || len(all) != 0 {
			t.Errorf("after the removal it lists %v, %v", all, err)
		}
	}()
	if _, err := OpenFolder(dir + "/a.json"); err == nil {
		t.Error("a file is taken for a folder")
	}
}

// TestWatch checks that a change is told, each kind of it, and that an old folder
// is told of once.
func TestWatch(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	told, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- f.Watch(ctx, func() { told <- struct{}{} }) }()
	<-told
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"put", func() error { return f.Put("a", []byte("1")) }},
		{"edited", func() error { return os.WriteFile(f.path("a"), []byte("2"), 0o600) }},
		{"removed", func() error { return f.Remove("a") }},
		{"put and removed", func() error { return errors.Join(f.Put("b", []byte("1")), os.Remove(f.path("b"))) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
		case <-ctx.Done():
			t.Fatalf("%s: nothing is told", change.what)
		}
		for quiet := false; !quiet; { // Several events may be one change.
			select {
			case <-told:
			case <-time.After(3 * pause / 2):
				quiet = true
			}
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

// TestFollow checks that a change is told though the folder cannot be watched: a
// withdrawn credential must not count on.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, told := time.Now(), []time.Duration(nil)
		ctx, stop := context.WithCancel(t.Context())
		var log bytes.Buffer
		Follow(ctx, blind{}, "the tokens", slog.New(slog.NewTextHandler(&log, nil)), func() {
			if told = append(told, time.Since(begun)); len(told) == 3 {
				stop()
			}
		})
		if want := []time.Duration{0, again, 2 * again}; !slices.Equal(told, want) {
			t.Errorf("changes are told after %v, want %v", told, want)
		}
		if lines := strings.Count(log.String(), "cannot watch the tokens"); lines != 1 {
			t.Errorf("it is logged %d times: %s", lines, &log)
		}
	})
}

// blind is a Store that cannot be watched.
type blind struct{ Store }

func (blind) Watch(context.Context, func()) error { return errors.New("too many watches") }
