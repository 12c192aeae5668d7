//go:build linux

package natsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	log "github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	files "github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
)

// page is the unit in which the disk gives out space, in bytes.
const page = 4096

// disk makes a folder that is a disk of its own, of some MiB.
func disk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	switch err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", size)); {
	case errors.Is(err, syscall.EPERM):
		t.Skip("a disk that can be filled needs the right to mount: " + err.Error())
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves no room on the disk of a folder until the file that it returns
// is removed.
func fill(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "fill")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for room := make([]byte, page); err == nil; {
		_, err = file.Write(room)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

// leave gives back some pages of a full disk.
func leave(t *testing.T, full string, pages int64) {
	t.Helper()
	info, err := os.Stat(full)
	if err == nil {
		err = os.Truncate(full, info.Size()-pages*page)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// diskWrite is a record for which there is no room: how large it is, how many
// of its size came before it, and whether a part of it finds room.
type diskWrite struct {
	subject, stream string
	before, size    int
	inPart          bool
}

// diskWrites are each kind of record that a full disk may refuse.
var diskWrites = map[string]diskWrite{
	"first of a bucket":           {"$KV.osu-intent.acme._.config", "KV_osu-intent", 0, 6000, false},
	"first of a bucket, in part":  {"$KV.osu-intent.acme._.config", "KV_osu-intent", 0, 6000, true},
	"first of a history":          {"osu-runs.acme.2", "osu-runs-acme", 0, 6000, false},
	"first of a block of the log": {"osu.acme.cmd.event", "OSU_acme", 2, 3 << 20, false},
	"first of a later block":      {"osu-runs.acme.2", "osu-runs-acme", 2, 3 << 20, false},
	"later in a bucket":           {"$KV.osu-intent.acme._.config", "KV_osu-intent", 1, 6000, false},
	"later in a history, in part": {"osu-runs.acme.2", "osu-runs-acme", 2, 6000, true},
}

// TestFullDisk fills the disk of the store before a record is written: whichever
// it is, the store can be opened again once there is space, and holds what was
// acknowledged and nothing else. The server itself counts the first record of a
// block though it was not written.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, w := range diskWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := disk(t, 24)
			s, _, err := open(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			s.stop()
			s.watching.Wait()
			w.refused(t, s, dir)
			// There is space, but the store is not open again.
			if err := s.marks.mark(); err == nil {
				t.Error("the high-water marks are written while a stream cannot store")
			}
			if err := s.reopen(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.marks.mark(); err != nil {
				t.Error(err)
			}
			w.holds(t, s)
			w.stops(t, s, dir)
		})
	}
}

// TestStoppedOnFullDisk checks the same when the agent is stopped, and started
// once there is space.
func TestStoppedOnFullDisk(t *testing.T) {
	t.Parallel()
	for name, w := range diskWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := disk(t, 24)
			s, _, err := open(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			w.refused(t, s, dir)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if s, _, err = open(t, dir); err != nil {
				t.Fatal(err)
			}
			if err := s.marks.mark(); err != nil {
				t.Error(err)
			}
			w.stops(t, s, dir)
			if s, _, err = open(t, dir); err != nil {
				t.Fatal(err)
			}
			w.holds(t, s)
		})
	}
}

// TestWellAgain checks that the store is opened again by itself.
func TestWellAgain(t *testing.T) {
	t.Parallel()
	dir, w := disk(t, 24), diskWrites["first of a bucket"]
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	w.refused(t, s, dir)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for begun := time.Now(); s.Healthy() != nil; <-tick.C {
		if time.Since(begun) > time.Minute {
			t.Fatalf("after a minute: %v", s.Healthy())
		}
	}
	w.holds(t, s)
	w.stops(t, s, dir)
}

// holds checks that a store takes the record that was refused, as the next one,
// and marks it.
func (w diskWrite) holds(t *testing.T, s *Server) {
	t.Helper()
	want := uint64(w.before + 1)
	if seq, err := w.publish(t, s); err != nil || seq != want {
		t.Errorf("record %d becomes %d, %v", want, seq, err)
	}
	tick := time.NewTicker(markDelay / 10)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		marks, err := files.ReadMarks(s.dir)
		switch {
		case err != nil || time.Since(begun) > time.Minute:
			t.Fatalf("record %d is written, the marks are %v, %v", want, marks, err)
		case marks["$G/"+w.stream] == want:
			return
		}
	}
}

// stops stops a server and checks that the store is not taken for damaged.
func (w diskWrite) stops(t *testing.T, s *Server, dir string) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// refused writes on the full disk of a store, and gives the space back.
func (w diskWrite) refused(t *testing.T, s *Server, dir string) {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	kept, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	l, err := log.Open(t.Context(), nc, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Run(t.Context(), "acme", 1); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	for range w.before {
		if _, err := w.publish(t, s); err != nil {
			t.Fatal(err)
		}
	}
	full := fill(t, dir)
	if w.inPart {
		leave(t, full, 1)
	}
	if seq, err := w.publish(t, s); err == nil {
		t.Fatalf("a full disk takes record %d", seq)
	}
	if last, err := l.Last(t.Context()); err != nil || w.stream == "OSU_acme" && last != uint64(w.before) {
		t.Errorf("the log ends at record %d, %v", last, err)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
}

func (w diskWrite) publish(t *testing.T, s *Server) (uint64, error) {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	ack, err := js.Publish(ctx, w.subject, make([]byte, w.size))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}
