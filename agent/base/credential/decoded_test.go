package credential

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestDecoded checks that an entry is decoded once, and that each change counts at once.
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
		"nothing":         {func(*testing.T, *Folder) {}, "one", nil, 0},
		"removed":         {func(t *testing.T, f *Folder) { must(t, Remove(f, "a")) }, "", os.ErrNotExist, 0},
		"put":             {func(t *testing.T, f *Folder) { must(t, Put(f, "a", []byte("two"))) }, "two", nil, 1},
		"damaged":         {func(t *testing.T, f *Folder) { must(t, Put(f, "a", []byte("bad"))) }, "", errBad, 1},
		"removed and put": {func(t *testing.T, f *Folder) { must(t, Remove(f, "a")); must(t, Put(f, "a", []byte("two"))) }, "two", nil, 1},
		"updated": {func(t *testing.T, f *Folder) {
			must(t, Update(f, "a", func([]byte) ([]byte, error) { return []byte("two"), nil }))
		}, "two", nil, 1},
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
			must(t, Put(f, "a", []byte("one")))
			for range 3 {
				if got, err := d.Get("a"); got != "one" || err != nil || times != 1 {
					t.Fatalf("got %q, %v, decoded %d times; want it decoded once", got, err, times)
				}
			}
			row.change(t, f)
			got, err := d.Get("a")
			if got != row.want || !errors.Is(err, row.err) || times != 1+row.decoded {
				t.Errorf("got %q, %v, decoded %d times more; want %q, %v, %d", got, err, times-1, row.want, row.err, row.decoded)
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

// TestDecodedList checks that a list has what begins with a prefix, by name, and says which
// entries are damaged.
func TestDecodedList(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	must(t, err)
	for _, name := range []string{"acme.b", "acme.a", "acme.a-b", "acme-2.x"} {
		must(t, Put(f, name, []byte(name)))
	}
	errBad := errors.New("bad")
	d := NewDecoded(f, "a test", func(name string, body []byte) (string, error) {
		if name == "acme.b" {
			return "", errBad
		}
		return string(body), nil
	})
	for prefix, want := range map[string]string{"acme.": "acme.a acme.a-b !acme.b", "": "acme-2.x acme.a acme.a-b !acme.b", "none": ""} {
		all, err := d.List(prefix)
		must(t, err)
		var got []string
		for _, one := range all {
			if errors.Is(one.Damage, errBad) {
				one.Key = "!" + one.Key
			} else if one.Value != one.Key || one.Damage != nil || one.Made.IsZero() {
				t.Errorf("%s is %+v", one.Key, one)
			}
			got = append(got, one.Key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("below %q it lists %q; want %q", prefix, got, want)
		}
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
		must(t, Put(f, name, []byte(name)))
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
