package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func endedRun(id uint64) v1.Run {
	at := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	return v1.Run{
		ID: id, Phase: "finished", Result: "completed", Trigger: "window", OpenedAt: at, NotAfter: at.Add(time.Hour),
		Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}}, Events: []v1.RunEvent{{At: at, Event: "opened"}},
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
