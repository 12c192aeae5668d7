package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// TestManyTenantsAreWatched watches more tenants than a stream of the server may have
// consumers, each twice as a site does.
func TestManyTenantsAreWatched(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	const tenants = 1_100
	ctx, stop := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	complete := make(chan struct{}, 4*tenants)
	changes := make(chan string, 2*tenants)
	watched := func(watch func() error) {
		watches.Go(func() {
			if err := watch(); !errors.Is(err, context.Canceled) {
				t.Error(err)
				complete <- struct{}{}
			}
		})
	}
	for i := range tenants {
		name := fmt.Sprintf("t%d", i)
		for range 2 {
			watched(func() error {
				return s.WatchIntent(ctx, name, func(seen store.Seen) {
					if seen.Kind == "" {
						complete <- struct{}{}
					} else {
						changes <- name + " " + seen.Name
					}
				})
			})
		}
		watched(func() error {
			return s.WatchReports(ctx, name, report.Versions, func(store.Reported) { complete <- struct{}{} })
		})
		watched(func() error {
			return s.WatchLeases(ctx, name, func(string, []byte, uint64) { complete <- struct{}{} })
		})
	}
	for range 4 * tenants {
		<-complete
	}
	if t.Failed() {
		t.Fatal("not all are watched")
	}
	if _, err := s.PutCalendar(t.Context(), "t1050", "xmas", freeze("shop is open"), store.Revision{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := <-changes; got != "t1050 xmas" {
			t.Errorf("%s is seen", got)
		}
	}
	for bucket, want := range map[string]int{store.IntentBucket: 1, report.Versions.Bucket: 1, "osu-leases": 1} {
		if got := consumers(t, nc, bucket); got != want {
			t.Errorf("%s has %d consumers; want %d", bucket, got, want)
		}
	}
	stop()
	watches.Wait()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if consumers(t, nc, store.IntentBucket) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the watch goes on for nobody")
		}
	}
	if len(changes) > 0 {
		t.Errorf("another tenant sees %s", <-changes)
	}
}

// TestWatchesThatComeAndGo checks that a watch that begins while others write sees every
// entry, the last change of each, and nothing older than what it has seen.
func TestWatchesThatComeAndGo(t *testing.T) {
	t.Parallel()
	s, _ := openWith(t)
	const rounds = 100
	last := map[string]uint64{"a": 4*rounds - 3, "b": 4*rounds - 2, "c": 4*rounds - 1, "d": 4 * rounds}
	var written atomic.Bool
	var parts sync.WaitGroup
	parts.Go(func() {
		defer written.Store(true)
		base := map[string]uint64{}
		for range rounds {
			for _, key := range slices.Sorted(maps.Keys(last)) {
				revision, err := s.PutLease(t.Context(), "acme", key, []byte("x"), base[key])
				if err != nil {
					t.Error(err)
					return
				}
				base[key] = revision
			}
		}
	})
	for range 8 {
		parts.Go(func() {
			for more := true; more; more = !written.Load() {
				if seen := watchUntil(t, s, last); !maps.Equal(seen, last) {
					t.Errorf("it sees %v; want %v", seen, last)
				}
			}
		})
	}
	parts.Wait()
}

// watchUntil watches leases until it has seen these revisions and the end of what was there.
func watchUntil(t *testing.T, s *store.Store, last map[string]uint64) map[string]uint64 {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	seen, newest, complete := map[string]uint64{}, uint64(0), false
	err := s.WatchLeases(ctx, "acme", func(key string, _ []byte, revision uint64) {
		switch {
		case key == "":
			complete = true
		case revision <= newest:
			t.Errorf("revision %d is seen after %d", revision, newest)
		default:
			seen[key], newest = revision, revision
		}
		if complete && maps.Equal(seen, last) {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return seen
}

// consumers returns how many consumers a bucket has.
func consumers(t *testing.T, nc *nats.Conn, bucket string) int {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), durability.BucketStream(bucket))
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Consumers
}
