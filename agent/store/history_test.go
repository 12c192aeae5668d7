package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

func endedRun(id uint64) v1.Run {
	at := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	return v1.Run{
		ID: id, Phase: "finished", Result: "completed", Trigger: "window", OpenedAt: at, NotAfter: at.Add(time.Hour),
		Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}}, Events: []v1.RunEvent{{At: at, Event: "opened"}},
	}
}

// TestHistory checks that ended runs are kept, each once, and listed the newest
// first without what lists do not show.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := open(t)
	if _, err := s.Run(t.Context(), "acme", 7); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a run that is not there: %v", err)
	}
	for _, id := range []uint64{7, 12, 30} {
		if err := s.PutRun(t.Context(), "acme", endedRun(id), id+5); err != nil {
			t.Fatal(err)
		}
	}
	changed := endedRun(12)
	changed.Result = "failed"
	if err := s.PutRun(t.Context(), "acme", changed, 17); err != nil {
		t.Fatalf("the same run again: %v", err)
	}
	if got, err := s.Run(t.Context(), "acme", 12); err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", endedRun(12)) {
		t.Errorf("run 12 is %+v, %v", got, err)
	}
	list := func(tenant string, most int) (ids []uint64) {
		err := s.Runs(t.Context(), tenant, func(r v1.Run) bool {
			if len(r.Hosts) > 0 || len(r.Events) > 0 || r.Result != "completed" {
				t.Errorf("the list has %+v", r)
			}
			ids = append(ids, r.ID)
			return len(ids) < most
		})
		if err != nil {
			t.Error(err)
		}
		return ids
	}
	if got := fmt.Sprint(list("acme", 10), list("acme", 2), list("other", 10)); got != "[30 12 7] [30 12] []" {
		t.Errorf("the runs are %s", got)
	}
}

// TestRunThatChangesAfterItsEnd checks that a later state of an ended run takes
// the place of an earlier one, and never the other way: a host may answer after
// the end, and still hold its slot.
func TestRunThatChangesAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	lost, answered, freed := endedRun(7), endedRun(7), endedRun(7)
	lost.Hosts[0].Slot, lost.Hosts[0].SlotReason = &lost.OpenedAt, "it has not answered upgrade"
	answered.Hosts[0].Slot, answered.Hosts[0].Error = &lost.OpenedAt, "its late answer to upgrade was: done"
	freed.Events = append(freed.Events, v1.RunEvent{Event: "released", By: "ann"})
	for n, c := range []struct {
		put   v1.Run
		asOf  uint64
		keeps v1.Run
	}{
		{lost, 20, lost},
		{answered, 21, answered},
		{lost, 20, answered},
		{freed, 30, freed},
		{answered, 21, freed},
		{lost, 30, freed},
	} {
		if err := s.PutRun(t.Context(), "acme", c.put, c.asOf); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Run(t.Context(), "acme", 7); err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.keeps) {
			t.Errorf("after write %d the run is %+v, %v", n+1, got, err)
		}
	}
}

// TestLargeRun checks that a run whose texts are too large for one record is
// kept with its hosts.
func TestLargeRun(t *testing.T) {
	t.Parallel()
	s := open(t)
	run := endedRun(7)
	run.Hosts = nil
	// What repeats further apart than gzip looks back does not get smaller.
	const length, texts = 6400, 10
	noise := make([]byte, length*texts)
	source := rand.NewChaCha8([32]byte{})
	for i := range noise {
		noise[i] = '0' + byte(source.Uint64()%64)
	}
	for i := range 700 {
		text := noise[i%texts*length:][:length]
		run.Hosts = append(run.Hosts, v1.RunHost{Hostname: fmt.Sprintf("h%04d", i), Status: "failed", Error: string(text)})
	}
	if err := s.PutRun(t.Context(), "acme", run, 9); err != nil {
		t.Fatal(err)
	}
	got, err := s.Run(t.Context(), "acme", 7)
	if err != nil || len(got.Hosts) != 700 || got.Hosts[699].Status != "failed" || len(got.Hosts[699].Error) != 100 {
		t.Errorf("it has %d hosts, %v", len(got.Hosts), err)
	}
	if len(run.Hosts[699].Error) == 100 {
		t.Error("the caller's run was cut")
	}
}
