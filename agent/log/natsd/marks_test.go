package natsd

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	files "github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
)

// TestMarks checks that a write to a bucket is marked without anybody asking
// for it, and that a store which ends before its mark is not opened.
func TestMarks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	kept, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.PutHost(t.Context(), "h01", store.Host{Tenant: "acme", Name: "h01", Application: "app"}); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	want := files.Marks{"$G/KV_osu-hosts": 1}
	for {
		marks, err := files.ReadMarks(filepath.Join(dir, "store"))
		if err != nil {
			t.Fatal(err)
		}
		if maps.Equal(marks, want) {
			break
		}
		<-tick.C
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "KV_osu-hosts"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "record 1 had been there") {
		t.Errorf("it stops with %v", err)
	}
	if _, _, err := open(t, dir); err == nil || !strings.Contains(err.Error(), marksName) {
		t.Errorf("it starts with %v", err)
	}
}

// TestDamageWhileRunning checks that damage done while the server runs is told
// when it stops, and again at the next start.
func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	kept, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := kept.PutHost(t.Context(), "h01", store.Host{Tenant: "acme", Name: "h01", Application: "app"}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "store", "jetstream", "$G", "streams", "KV_osu-hosts", "msgs", "1.blk")
	body := read(t, path)
	if err := write(path, flip(body, 22)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "1.blk") {
		t.Errorf("it stops with %v", err)
	}
	if _, _, err := open(t, dir); err == nil || !strings.Contains(err.Error(), "1.blk") {
		t.Errorf("it starts with %v", err)
	}
}

// TestRaisedDuringCheck checks that a writer need not wait for the health check of the server to
// raise a mark, and that the marks which are written after the check have what it raised.
func TestRaisedDuringCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	m := &marker{nats: s.current(), dir: dir}
	m.health = func(*server.HealthzOptions) *server.HealthStatus {
		raised := make(chan error, 1)
		go func() { raised <- m.raise("$G/acme", 7) }()
		select {
		case err := <-raised:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("a writer waits for the health check")
		}
		return &server.HealthStatus{Status: "ok"}
	}
	if err := m.mark(); err != nil {
		t.Fatal(err)
	}
	if marks, err := files.ReadMarks(dir); err != nil || marks["$G/acme"] != 7 {
		t.Errorf("the marks are %v: %v", marks, err)
	}
}
