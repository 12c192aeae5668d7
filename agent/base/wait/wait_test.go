package wait

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSleep checks that Sleep ends with its time or its context, whichever comes
// first, and never by itself when the context has ended.
func TestSleep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sleep, ends, want time.Duration
		err               error
	}{
		"time":                {time.Second, time.Minute, time.Second, nil},
		"context":             {time.Minute, time.Second, time.Second, context.DeadlineExceeded},
		"no time":             {0, time.Second, 0, nil},
		"no time and ended":   {0, 0, 0, context.DeadlineExceeded},
		"time that is passed": {-time.Hour, time.Second, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				begun := time.Now()
				if err := Sleep(ctx, c.sleep); !errors.Is(err, c.err) || time.Since(begun) != c.want {
					t.Errorf("slept for %s, error %v", time.Since(begun), err)
				}
			})
		})
	}
}

// TestSignal checks that a signal that nobody receives holds up nobody and is
// received once.
func TestSignal(t *testing.T) {
	t.Parallel()
	s := NewSignal()
	s.Set()
	s.Set()
	if len(s) != 1 {
		t.Errorf("%d signals wait", len(s))
	}
	<-s
	s.Set()
	if len(s) != 1 {
		t.Error("a signal is lost")
	}
}

func keys(items []Item[string, int]) (all []string) {
	for _, i := range items {
		all = append(all, i.Key)
	}
	return all
}

// TestQueue checks that the latest value counts, in the order of the keys, and
// that a value which changes while it is dealt with is dealt with again.
func TestQueue(t *testing.T) {
	t.Parallel()
	q := NewQueue[string, int]()
	if _, found := q.First(); found || len(q.Take()) != 0 {
		t.Fatal("an empty queue has something")
	}
	q.Put("a", 1)
	q.Put("b", 1)
	q.Change("a", func(v *int) { *v++ })
	if len(q.Ready()) != 1 {
		t.Error("the queue is not ready")
	}
	first, found := q.First()
	if !found || first.Key != "a" || first.Value != 2 {
		t.Fatalf("the first is %+v, %t", first, found)
	}
	q.Put("a", 3)
	q.Done(first)
	if again, _ := q.First(); again.Key != "a" || again.Value != 3 {
		t.Fatalf("a change is lost: the first is %+v", again)
	}
	q.Defer(first)
	if got := keys(q.Items()); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("after a is deferred the queue has %v", got)
	}
	first, _ = q.First()
	q.Done(first)
	q.Done(first)
	if got := keys(q.Items()); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after b is done the queue has %v", got)
	}
	first, _ = q.First()
	q.Revise(func(key string, v *int) { *v = len(key) + 4 })
	q.Done(first)
	if revised, found := q.First(); !found || revised.Value != 5 {
		t.Errorf("after its revision a is %+v", revised)
	}
	if of, found := q.Of("a"); !found || of.Value != 5 {
		t.Errorf("queued of a is %+v", of)
	}
	q.Put("c", 1)
	q.Drop("a")
	if of, found := q.Of("a"); found {
		t.Errorf("queued of a, which was dropped, is %+v", of)
	}
	q.Drop("a")
	if got := keys(q.Take()); !slices.Equal(got, []string{"c"}) || len(q.Items()) != 0 {
		t.Errorf("taken are %v, and the queue has %v", got, q.Items())
	}
}

// TestQueueWait checks that a reader waits until there is something, though the
// signal of what was taken already is still set.
func TestQueueWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[string, int]()
		q.Put("a", 1)
		q.Take()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("waited for nothing: %v", err)
		}
		time.AfterFunc(time.Second, func() { q.Put("a", 2) })
		begun := time.Now()
		if err := q.Wait(t.Context()); err != nil || time.Since(begun) != time.Second {
			t.Errorf("waited for %s: %v", time.Since(begun), err)
		}
		if got := q.Take(); len(got) != 1 || got[0].Value != 2 {
			t.Errorf("taken are %v", got)
		}
		q.Put("a", 3)
		if err := q.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a reader whose context has ended goes on: %v", err)
		}
	})
}
