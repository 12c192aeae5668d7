package tenantobject

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// guarded is a shelf that several processes use at once.
type guarded struct {
	mu sync.Mutex
	*shelf
}

func (g *guarded) Get(ctx context.Context) (client.Stored[note], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shelf.Get(ctx)
}

func (g *guarded) Put(ctx context.Context, base client.Stored[note], value note, when client.Precondition) (client.Stored[note], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shelf.Put(ctx, base, value, when)
}

// add appends a letter to the left member.
func add(letter string) func(note) (note, bool, error) {
	return func(n note) (note, bool, error) {
		if n.Left == nil {
			n.Left = text("")
		}
		n.Left = text(*n.Left + letter)
		return n, false, nil
	}
}

// TestShared_losesNothing: two processes, each with ten writers at once, lose no edit.
func TestShared_losesNothing(t *testing.T) {
	t.Parallel()
	store := &guarded{shelf: &shelf{}}
	var all sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		process := &Shared[note]{store: store}
		for range 10 {
			all.Go(func() {
				for range 5 {
					if err := process.Edit(t.Context(), add(letter)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	stored, err := store.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := *stored.Value.Left; strings.Count(got, "a") != 50 || strings.Count(got, "b") != 50 {
		t.Errorf("the object has %q, want 50 of each", got)
	}
}

// TestShared_requests: the writes of one process are one request each, after one read.
func TestShared_requests(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.set(`{"left":"x"}`)
	process := &Shared[note]{store: s}
	for range 2 {
		if got, err := process.Get(t.Context()); err != nil || *got.Left != "x" {
			t.Errorf("it read %v, %v", got, err)
		}
	}
	for range 2 {
		if err := process.Edit(t.Context(), add("a")); err != nil {
			t.Error(err)
		}
	}
	if err := process.Edit(t.Context(), func(n note) (note, bool, error) { return n, true, nil }); err != nil {
		t.Error(err)
	}
	s.check(t, nil, `{"left":"xaa"}`, "get put put", "")
}

// TestShared_failures: a refused edit and a failed write leave the object as it is, and the
// next edit reads again what it does not know.
func TestShared_failures(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.set(`{"left":"x"}`)
	process := &Shared[note]{store: s}
	refused := errors.New("refused")
	if err := process.Edit(t.Context(), func(n note) (note, bool, error) { return n, false, refused }); !errors.Is(err, refused) {
		t.Errorf("it ended with %v", err)
	}
	s.before = func(try int) error {
		switch try {
		case 1:
			return answer(http.StatusServiceUnavailable, v1.ErrorInfo{})
		case 2:
			return answer(http.StatusPreconditionFailed, v1.ErrorInfo{Run: 41})
		}
		return nil
	}
	if err := process.Edit(t.Context(), add("a")); !client.HasStatus(err, http.StatusServiceUnavailable) {
		t.Errorf("it ended with %v", err)
	}
	if err := process.Edit(t.Context(), add("b")); err != nil {
		t.Error(err)
	}
	s.check(t, nil, `{"left":"xb"}`, "get put get put await 41 get put", "")
}

// TestShared_ends: who never gets through ends with its limit.
func TestShared_ends(t *testing.T) {
	t.Parallel()
	s := &shelf{before: func(int) error { return answer(http.StatusPreconditionFailed, v1.ErrorInfo{}) }}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := (&Shared[note]{store: s}).Edit(ctx, add("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}
