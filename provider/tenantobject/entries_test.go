package tenantobject

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// guarded is a shelf that several processes use at once, each request taking a while. It
// remembers what it had after each change.
type guarded struct {
	mu sync.Mutex
	*shelf
	took time.Duration
	had  []string
}

func (g *guarded) Get(ctx context.Context) (client.Stored[note], error) {
	time.Sleep(g.took)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shelf.Get(ctx)
}

func (g *guarded) Put(ctx context.Context, base client.Stored[note], value note, when client.Precondition) (client.Stored[note], error) {
	time.Sleep(g.took)
	g.mu.Lock()
	defer g.mu.Unlock()
	stored, err := g.shelf.Put(ctx, base, value, when)
	if err == nil {
		g.had = append(g.had, *stored.Value.Left)
	}
	return stored, err
}

// letters are a list in the left member: each letter is an entry, in whatever case.
var letters = List[note, string]{
	Entries: func(n note) []string {
		if n.Left == nil {
			return nil
		}
		return strings.Split(*n.Left, "")
	},
	With: func(n note, entries []string) note {
		n.Left = text(strings.Join(entries, ""))
		return n
	},
	Key: strings.ToLower,
}

func process(at store[note]) *Entries[note, string] { return newEntries(letters, at, &silence{}) }

// swap is a change such as "a>b", of a into b; "" is no entry.
func (s *Entries[T, E]) swap(ctx context.Context, entry func(string) *E, change string) error {
	was, want, _ := strings.Cut(change, ">")
	return s.Change(ctx, entry(was), entry(want))
}

func letter(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

// TestEntries_ofAPlan: what one process asks for adds up to one result, whichever resource
// comes first. No entry is missing in between that is there before and after.
func TestEntries_ofAPlan(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		there   string
		changes []string
		result  string
		had     string
	}{
		"creations":                         {"x", []string{">a", ">b", ">c"}, "xabc", "xabc"},
		"a creation of what is there":       {"xa", []string{">A"}, "xa", ""},
		"an update, in its place":           {"xay", []string{"a>b"}, "xby", "xby"},
		"an update of what is gone":         {"x", []string{"a>b"}, "xb", "xb"},
		"an update into what is there":      {"xab", []string{"a>b"}, "xb", "xb"},
		"an update of the form":             {"xa", []string{"a>A"}, "xa", ""},
		"a deletion":                        {"xa", []string{"a>"}, "x", "x"},
		"a deletion of what is gone":        {"x", []string{"a>"}, "x", ""},
		"a swap":                            {"xab", []string{"a>b", "b>a"}, "xab", ""},
		"a swap of three":                   {"abc", []string{"a>b", "b>c", "c>a"}, "abc", ""},
		"a renamed key":                     {"xa", []string{"a>", ">a"}, "xa", ""},
		"a renamed key, created first":      {"xa", []string{">a", "a>"}, "xa", ""},
		"the first of a list is left out":   {"abcd", []string{"a>b", "b>c", "c>d", "d>"}, "bcd", "bcd"},
		"the same, in the other order":      {"abcd", []string{"d>", "c>d", "b>c", "a>b"}, "bcd", "bcd"},
		"a list gets another first one":     {"abc", []string{">c", "a>n", "b>a", "c>b"}, "nabc", "nabc"},
		"a replacement by the same":         {"xa", []string{"a>a", ">a"}, "xa", ""},
		"creations and deletions of others": {"xab", []string{"a>", "b>", ">c"}, "xc", "xabc xc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				at := &guarded{shelf: &shelf{}, took: 5 * time.Millisecond}
				at.set(`{"left":"` + row.there + `","right":"theirs"}`)
				p := process(at)
				var all sync.WaitGroup
				for _, c := range row.changes {
					all.Go(func() {
						if err := p.swap(t.Context(), letter, c); err != nil {
							t.Errorf("%s: %v", c, err)
						}
					})
					time.Sleep(100 * time.Millisecond) // The next one is planned meanwhile.
				}
				all.Wait()
				stored, err := at.Get(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := *stored.Value.Left; sorted(got) != sorted(row.result) || *stored.Value.Right != "theirs" {
					t.Errorf("the list is %q, want %q", got, row.result)
				}
				for _, had := range at.had {
					for _, kept := range row.there {
						if strings.ContainsRune(row.result, kept) && !strings.ContainsRune(had, kept) {
							t.Errorf("%q was missing in between: %q", kept, at.had)
						}
					}
				}
				if !slices.ContainsFunc(row.changes, func(c string) bool { return strings.HasPrefix(c, ">") }) {
					if got := strings.Join(at.had, " "); got != row.had {
						t.Errorf("the list was %q, want %q", got, row.had)
					}
				}
			})
		})
	}
}

func sorted(entries string) string {
	list := strings.Split(entries, "")
	slices.Sort(list)
	return strings.Join(list, "")
}

// TestEntries_losesNothing: two processes with ten resources each, all at once, lose no change.
func TestEntries_losesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := &guarded{shelf: &shelf{}, took: time.Millisecond}
		var all sync.WaitGroup
		const first, second = "abcdefghij", "klmnopqrst"
		for _, names := range []string{first, second} {
			p := process(at)
			for _, name := range strings.Split(names, "") {
				all.Go(func() {
					if err := p.Change(t.Context(), nil, &name); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if got := sorted(at.had[len(at.had)-1]); got != first+second {
			t.Errorf("the list is %q", got)
		}
		if at.changes > 4 {
			t.Errorf("%d writes for what two processes ask for at once", at.changes)
		}
	})
}

// TestEntries_requests: what was read for a plan is not read again, and what was written
// neither.
func TestEntries_requests(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.set(`{"left":"x"}`)
	p := process(s)
	for range 2 {
		if got, err := p.Get(t.Context()); err != nil || *got.Left != "x" {
			t.Errorf("it read %v, %v", got, err)
		}
	}
	for _, c := range []string{">a", ">b", ">A"} {
		if err := p.swap(t.Context(), letter, c); err != nil {
			t.Error(err)
		}
	}
	s.check(t, nil, `{"left":"xab"}`, "get put put", "")
}

// TestEntries_failures: a write that fails is that of each resource with a part in it, one by
// one: only the one to blame fails. A run that blocks the write is waited for.
func TestEntries_failures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := &guarded{shelf: &shelf{}}
		at.set(`{"left":"x"}`)
		refusing := &refusing{guarded: at, bad: "b"}
		p := process(refusing)
		errs := map[string]error{}
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, name := range []string{"a", "b", "c"} {
			all.Go(func() {
				err := p.Change(t.Context(), nil, &name)
				mu.Lock()
				defer mu.Unlock()
				errs[name] = err
			})
		}
		all.Wait()
		if errs["a"] != nil || errs["c"] != nil || !client.HasStatus(errs["b"], http.StatusBadRequest) {
			t.Errorf("they ended with %v", errs)
		}
		if got := at.had[len(at.had)-1]; sorted(got) != "acx" {
			t.Errorf("the list is %q", got)
		}
		at.before = func(try int) error {
			if at.before = nil; try > 0 {
				return answer(http.StatusPreconditionFailed, v1.ErrorInfo{Run: 41})
			}
			return nil
		}
		if err := p.swap(t.Context(), letter, ">d"); err != nil {
			t.Error(err)
		}
		if log := strings.Join(at.log, " "); !strings.HasSuffix(log, "put await 41 get put") {
			t.Errorf("the requests are %s", log)
		}
	})
}

// refusing refuses a list with a bad entry.
type refusing struct {
	*guarded
	bad string
}

func (r *refusing) Put(ctx context.Context, base client.Stored[note], value note, when client.Precondition) (client.Stored[note], error) {
	if strings.Contains(*value.Left, r.bad) {
		return client.Stored[note]{}, answer(http.StatusBadRequest, v1.ErrorInfo{})
	}
	return r.guarded.Put(ctx, base, value, when)
}

// TestEntries_ends: who never gets through ends with its limit, and who is interrupted while
// it waits has written nothing.
func TestEntries_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{before: func(int) error { return answer(http.StatusPreconditionFailed, v1.ErrorInfo{Run: 41}) }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		at := &guarded{shelf: s, took: time.Second}
		if err := process(at).swap(ctx, letter, ">a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		stopped, stop := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, stop)
		s.changes = 0
		if err := process(at).swap(stopped, letter, "a>"); !errors.Is(err, context.Canceled) || s.changes != 0 {
			t.Errorf("it ended with %v after %d writes", err, s.changes)
		}
	})
}

// TestEntries_owned: a resource that is read a moment later counts.
func TestEntries_owned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := process(&shelf{})
		time.AfterFunc(100*time.Millisecond, func() { p.Own("A") })
		if !p.Owned(t.Context(), "a") || p.Owned(t.Context(), "b") {
			t.Error("a is owned, and b is not")
		}
	})
}
