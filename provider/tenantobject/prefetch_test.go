package tenantobject

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// rack is a store of many notes: each read of one is counted, and each of all.
type rack struct {
	mu    sync.Mutex
	notes map[string]string
	gets  atomic.Int32
	lists atomic.Int32
}

func (r *rack) stored(name string) client.Stored[note] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return client.Stored[note]{Value: note{Left: text(r.notes[name])}, ETag: `"1"`}
}

func (r *rack) list(context.Context) (map[string]client.Stored[note], error) {
	r.lists.Add(1)
	all := map[string]client.Stored[note]{}
	for name := range r.notes {
		all[name] = r.stored(name)
	}
	return all, nil
}

// one is the store of one note of a rack.
type one struct {
	store[note]
	rack *rack
	name string
}

func (o one) Get(context.Context) (client.Stored[note], error) {
	o.rack.gets.Add(1)
	return o.rack.stored(o.name), nil
}

func (o one) Put(_ context.Context, _ client.Stored[note], value note, _ client.Precondition) (client.Stored[note], error) {
	o.rack.mu.Lock()
	defer o.rack.mu.Unlock()
	o.rack.notes[o.name] = *value.Left
	return client.Stored[note]{Value: value}, nil
}

func newRack(n int) *rack {
	r := &rack{notes: map[string]string{}}
	for i := range n {
		r.notes[fmt.Sprint(i)] = fmt.Sprint("text ", i)
	}
	return r
}

// reads refreshes a note and checks what it says.
func reads(t *testing.T, r *rack, p *prefetch[note], name, want string) {
	t.Helper()
	got, err := refresh(t.Context(), store[note](listed[note]{one{rack: r, name: name}, name, p}))
	if err != nil || *got.Value.Left != want {
		t.Errorf("note %s: got %v, %v, want %q", name, got.Value.Left, err, want)
	}
}

func wants(t *testing.T, r *rack, gets, lists int32) {
	t.Helper()
	if r.gets.Load() != gets || r.lists.Load() != lists {
		t.Errorf("%d reads of one and %d of all, want %d and %d", r.gets.Load(), r.lists.Load(), gets, lists)
	}
}

// TestPrefetch_ofMany: a refresh of one asks for one, a refresh of many at once for one and
// for all.
func TestPrefetch_ofMany(t *testing.T) {
	t.Parallel()
	r := newRack(100)
	p := &prefetch[note]{list: r.list}
	reads(t, r, p, "0", "text 0")
	wants(t, r, 1, 0)
	var all sync.WaitGroup
	for i := 1; i < 100; i++ {
		all.Go(func() { reads(t, r, p, fmt.Sprint(i), fmt.Sprint("text ", i)) })
	}
	all.Wait()
	wants(t, r, 1, 1)
}

// TestPrefetch_isNotOlderThanAWrite: a read after a write asks the server, also if the list
// was under way, and so does a second read of the same.
func TestPrefetch_isNotOlderThanAWrite(t *testing.T) {
	t.Parallel()
	r := newRack(9)
	p := &prefetch[note]{list: r.list}
	reads(t, r, p, "0", "text 0")
	reads(t, r, p, "1", "text 1")
	reads(t, r, p, "1", "text 1")
	wants(t, r, 2, 1)
	if _, err := (listed[note]{one{rack: r, name: "2"}, "2", p}).Put(t.Context(), client.Stored[note]{}, note{Left: text("written")}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	reads(t, r, p, "2", "written")
	reads(t, r, p, "3", "text 3")
	wants(t, r, 4, 1)
	synctest.Test(t, func(t *testing.T) {
		r, begun, goOn := newRack(9), make(chan struct{}), make(chan struct{})
		p := &prefetch[note]{list: func(ctx context.Context) (map[string]client.Stored[note], error) {
			all, err := r.list(ctx)
			close(begun)
			<-goOn
			return all, err
		}}
		reads(t, r, p, "0", "text 0")
		var both sync.WaitGroup
		both.Go(func() { reads(t, r, p, "1", "written") })
		<-begun
		both.Go(func() { reads(t, r, p, "2", "text 2") })
		synctest.Wait()
		if _, err := (listed[note]{one{rack: r, name: "1"}, "1", p}).Put(t.Context(), client.Stored[note]{}, note{Left: text("written")}, client.Precondition{}); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		both.Wait()
		wants(t, r, 3, 1)
	})
}

// TestPrefetch_provesNothing: what the list lacks is asked for, and so is all when there is
// no list.
func TestPrefetch_provesNothing(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(context.Context) (map[string]client.Stored[note], error){
		"empty":  func(context.Context) (map[string]client.Stored[note], error) { return nil, nil },
		"failed": func(context.Context) (map[string]client.Stored[note], error) { return nil, errors.New("no list") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRack(3)
			p := &prefetch[note]{list: list}
			for _, note := range []string{"0", "1", "2"} {
				reads(t, r, p, note, "text "+note)
			}
			wants(t, r, 3, 0)
		})
	}
}
