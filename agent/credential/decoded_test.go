package credential

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// aged makes an entry look as if it had been put an hour ago: a younger one is read each time.
func aged(t *testing.T, f *Folder, name string) {
	t.Helper()
	hour := time.Now().Add(-time.Hour)
	if err := os.Chtimes(f.path(name), hour, hour); err != nil {
		t.Fatal(err)
	}
}

// TestDecoded checks that an entry is decoded once, and that whatever happens to it counts at
// once: also what another process does, and what leaves time or size as they were.
func TestDecoded(t *testing.T) {
	t.Parallel()
	errBad := errors.New("bad")
	for name, row := range map[string]struct {
		change func(t *testing.T, f *Folder)
		want   string
		err    error
		// decoded is how often the entry is decoded again.
		decoded int
	}{
		"nothing":           {func(*testing.T, *Folder) {}, "one", nil, 0},
		"removed":           {func(t *testing.T, f *Folder) { must(t, f.Remove("a")) }, "", os.ErrNotExist, 0},
		"put":               {func(t *testing.T, f *Folder) { must(t, f.Put("a", []byte("two"))) }, "two", nil, 1},
		"put as old":        {func(t *testing.T, f *Folder) { must(t, f.Put("a", []byte("two"))); aged(t, f, "a") }, "two", nil, 1},
		"edited":            {func(t *testing.T, f *Folder) { must(t, os.WriteFile(f.path("a"), []byte("two"), 0o600)) }, "two", nil, 1},
		"damaged":           {func(t *testing.T, f *Folder) { must(t, f.Put("a", []byte("bad"))) }, "", errBad, 1},
		"removed and put":   {func(t *testing.T, f *Folder) { must(t, f.Remove("a")); must(t, f.Put("a", []byte("two"))) }, "two", nil, 1},
		"removed by a hand": {func(t *testing.T, f *Folder) { must(t, os.Remove(f.path("a"))) }, "", os.ErrNotExist, 0},
		"replaced by a copy": {func(t *testing.T, f *Folder) {
			must(t, os.WriteFile(filepath.Join(f.dir, "copy"), []byte("two"), 0o600))
			must(t, os.Rename(filepath.Join(f.dir, "copy"), f.path("a")))
		}, "two", nil, 1},
		"the folder is gone": {func(t *testing.T, f *Folder) { must(t, os.RemoveAll(f.dir)) }, "", os.ErrNotExist, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := OpenFolder(t.TempDir() + "/made")
			must(t, err)
			times := 0
			d := NewDecoded(f, "a test", func(name string, body []byte) (string, error) {
				times++
				if name != "a" || string(body) == "bad" {
					return "", errBad
				}
				return string(body), nil
			})
			must(t, f.Put("a", []byte("one")))
			for n := 1; n <= 3; n++ { // It is new: a further change might not show.
				if got, err := d.Get("a"); got != "one" || err != nil || times != n {
					t.Fatalf("got %q, %v, decoded %d times; want it decoded %d times", got, err, times, n)
				}
			}
			aged(t, f, "a")
			for range 3 {
				if got, err := d.Get("a"); got != "one" || err != nil || times != 4 {
					t.Fatalf("once it is settled, got %q, %v, decoded %d times; want 4", got, err, times)
				}
			}
			row.change(t, f)
			got, err := d.Get("a")
			if got != row.want || !errors.Is(err, row.err) || times != 4+row.decoded {
				t.Errorf("got %q, %v, decoded %d times more; want %q, %v, %d", got, err, times-4, row.want, row.err, row.decoded)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDecodedIsBounded checks that entries that nobody asks for any more do not fill the
// memory, and that what is asked for is right beside many others.
func TestDecodedIsBounded(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	must(t, err)
	d := NewDecoded(f, "a test", func(_ string, body []byte) (string, error) { return string(body), nil })
	for n := range maxDecoded + 10 {
		d.keep(fmt.Sprint(n), decoded[string]{})
		if len(d.kept) > maxDecoded {
			t.Fatalf("%d are kept", len(d.kept))
		}
	}
	for n := range 10 {
		name := fmt.Sprint("e", n)
		must(t, f.Put(name, []byte(name)))
		aged(t, f, name)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 1000 {
				want := fmt.Sprint("e", n%10)
				if got, err := d.Get(want); got != want || err != nil {
					t.Errorf("%s is %q, %v", want, got, err)
				}
			}
		})
	}
	all.Wait()
}
