package credential

import (
	"context"
	"errors"
	"os"
	"testing"
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
	age := func() {
		if err := os.Chtimes(f.dir, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	age()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	told, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- f.Watch(ctx, func() { told <- struct{}{} }) }()
	<-told
	for what, do := range map[string]func() error{
		"put": func() error { return f.Put("a", []byte("1")) },
		"put and removed": func() error {
			return errors.Join(f.Put("b", []byte("1")), os.Remove(f.path("b")))
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
		case <-ctx.Done():
			t.Fatalf("%s: nothing is told", what)
		}
		age()
		<-told // Of the folder's new time.
	}
	select {
	case <-told:
		t.Error("a change is told of a folder that does not change")
	case <-time.After(2 * watchInterval):
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
