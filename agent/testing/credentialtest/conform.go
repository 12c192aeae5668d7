package credentialtest

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
)

// Conform checks that a kind of store does what credential.Store says. open returns a store
// that is empty.
func Conform(t *testing.T, open func(t *testing.T) credential.Store) {
	t.Helper()
	for name, check := range map[string]func(t *testing.T, s credential.Store){
		"what is not there": absent, "what is put": put, "the list": list, "a change that fails": refused, "a change that removes": removed,
		"an empty entry": empty, "reading within a change": within, "changes at once": atOnce, "one of many makes it": oneMakes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
	t.Run("who watches", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { watched(t, open(t)) })
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// has checks what an entry is; an empty text means that there is none.
func has(t *testing.T, s credential.Store, name, want string) {
	t.Helper()
	got, err := s.Get(name)
	if want == "" {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is %q, %v; it should not be there", name, got, err)
		}
		return
	}
	if err != nil || string(got) != want {
		t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

// to returns a change that puts a text.
func to(text string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(text), nil }
}

func absent(t *testing.T, s credential.Store) {
	has(t, s, "a", "")
	for what, err := range map[string]error{
		"updated": credential.Update(s, "a", to("x")), "removed": credential.Remove(s, "a"), "removed on a condition": credential.RemoveIf(s, "a", credential.IfRevision(1)),
	} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is %s: %v", what, err)
		}
	}
	must(t, s.Change("a", func(body []byte) ([]byte, error) {
		if body != nil {
			t.Errorf("before it is made it is %q", body)
		}
		return nil, nil
	}))
	has(t, s, "a", "")
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Errorf("an empty store has %v, %v", all, err)
	}
}

func put(t *testing.T, s credential.Store) {
	body := []byte("one")
	must(t, credential.Put(s, "a", body))
	has(t, s, "a", "one")
	has(t, s, "b", "")
	must(t, credential.Put(s, "a", []byte("two")))
	has(t, s, "a", "two")
	must(t, s.Change("a", func(body []byte) ([]byte, error) { return append([]byte("more than "), body...), nil }))
	has(t, s, "a", "more than two")
	must(t, credential.Update(s, "a", func(body []byte) ([]byte, error) { return body[len("more than "):], nil }))
	has(t, s, "a", "two")
}

func list(t *testing.T, s credential.Store) {
	names := []string{"_.root", "acme-2.x", "acme.a", "acme.a-b", "acme.a.b", "acme.a..b", "acme.a.", "acme.x@example", strings.Repeat("0a", 32), "UCKP7GWOONUEZU3A7VS5ZIN7BMNB4OJVCM6KWR4RH4WNAY6FU7FEDCBI"}
	for _, name := range names {
		must(t, credential.Put(s, name, []byte(name)))
	}
	all, err := s.List()
	must(t, err)
	if len(all) != len(names) {
		t.Fatalf("it lists %v", all)
	}
	for i, e := range all {
		has(t, s, e.Name, e.Name)
		if i > 0 && all[i-1].Name >= e.Name {
			t.Errorf("%s comes before %s", all[i-1].Name, e.Name)
		}
		if age := time.Since(e.Made); age < -time.Minute || age > time.Hour {
			t.Errorf("%s was made %s ago", e.Name, age)
		}
	}
}

func refused(t *testing.T, s credential.Store) {
	why := errors.New("refused")
	refuse := func([]byte) ([]byte, error) { return []byte("x"), why }
	if err := s.Change("a", refuse); !errors.Is(err, why) {
		t.Errorf("a change that fails: %v", err)
	}
	has(t, s, "a", "")
	must(t, credential.Put(s, "a", []byte("one")))
	if err := credential.Update(s, "a", refuse); !errors.Is(err, why) {
		t.Errorf("an update that fails: %v", err)
	}
	if err := credential.RemoveIf(s, "a", credential.IfRevision(1)); !errors.Is(err, credential.ErrChanged) {
		t.Errorf("another revision is removed: %v", err)
	}
	has(t, s, "a", "one")
}

func removed(t *testing.T, s credential.Store) {
	remove := func([]byte) ([]byte, error) { return nil, nil }
	for what, by := range map[string]func() error{
		"change": func() error { return s.Change("a", remove) }, "update": func() error { return credential.Update(s, "a", remove) },
		"removal": func() error { return credential.Remove(s, "a") },
		"removal on a condition": func() error {
			return credential.RemoveIf(s, "a", credential.IfRevision(credential.RevisionOf([]byte("one"))))
		},
	} {
		must(t, credential.Put(s, "a", []byte("one")))
		must(t, credential.Put(s, "b", []byte("other")))
		if err := by(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		has(t, s, "a", "")
		has(t, s, "b", "other")
		if all, err := s.List(); err != nil || len(all) != 1 || all[0].Name != "b" {
			t.Errorf("after the %s it lists %v, %v", what, all, err)
		}
	}
}

// empty checks that an entry without content is not one that is missing.
func empty(t *testing.T, s credential.Store) {
	must(t, credential.Put(s, "a", []byte{}))
	if body, err := s.Get("a"); err != nil || len(body) != 0 {
		t.Errorf("it is %q, %v", body, err)
	}
	must(t, credential.Update(s, "a", to("one")))
	has(t, s, "a", "one")
}

func within(t *testing.T, s credential.Store) {
	must(t, credential.Put(s, "a", []byte("one")))
	must(t, s.Change("a", func([]byte) ([]byte, error) {
		has(t, s, "a", "one")
		has(t, s, "b", "")
		_, err := s.List()
		return []byte("two"), err
	}))
	has(t, s, "a", "two")
}

// atOnce checks that no change is lost, and that a reader sees each as a whole.
func atOnce(t *testing.T, s credential.Store) {
	const writers, each = 8, 25
	must(t, credential.Put(s, "n", []byte("0000")))
	next := func(body []byte) ([]byte, error) {
		n, err := strconv.Atoi(string(body))
		text := strconv.Itoa(n + 1)
		return []byte(strings.Repeat("0", 4-len(text)) + text), err
	}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := credential.Update(s, "n", next); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for last := ""; last != "0200"; {
			body, err := s.Get("n")
			if err != nil || len(body) != 4 || string(body) < last {
				t.Errorf("after %q it is %q, %v", last, body, err)
				return
			}
			last = string(body)
			time.Sleep(time.Millisecond)
		}
	})
	all.Wait()
	has(t, s, "n", strconv.Itoa(1e4 + writers*each)[1:])
}

// oneMakes checks that of many who make an entry that is not there, one does.
func oneMakes(t *testing.T, s credential.Store) {
	var all sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 8 {
		all.Go(func() {
			err := s.Change("a", func(body []byte) ([]byte, error) {
				return []byte("one"), credential.Condition(credential.IfNew).Check(body)
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else if !errors.Is(err, credential.ErrExists) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("%d have made it", made)
	}
}

// watched checks that who watches is called at the beginning and for each kind of change, and
// not for what changes nothing.
func watched(t *testing.T, s credential.Store) {
	ctx, stop := context.WithCancel(t.Context())
	calls, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		s.Watch(ctx, func() { calls++ })
	}()
	for n, row := range []struct {
		what string
		do   func() error
		want int
	}{
		{"the beginning", func() error { return nil }, 1},
		{"a put", func() error { return credential.Put(s, "a", []byte("1")) }, 2},
		{"an update", func() error { return credential.Update(s, "a", to("2")) }, 3},
		{"reading", func() error { _, err := s.Get("a"); return err }, 3},
		{"a removal", func() error { return credential.Remove(s, "a") }, 4},
		{"another put", func() error { return credential.Put(s, "b", []byte("1")) }, 5},
	} {
		must(t, row.do())
		time.Sleep(time.Second) // Whoever is withdrawn is out within that.
		synctest.Wait()
		if calls != row.want {
			t.Errorf("row %d, %s: it was called %d times; want %d", n, row.what, calls, row.want)
		}
	}
	must(t, s.Change("a", func([]byte) ([]byte, error) { return nil, nil }))
	time.Sleep(time.Second)
	synctest.Wait()
	if calls != 5 {
		t.Errorf("after what changes nothing it was called %d times", calls)
	}
	stop()
	<-ended
}
