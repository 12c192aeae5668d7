package durability_test

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
)

// TestOpen checks that settings are written if they differ, and only then.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	js := serve(t, dir)
	stream := func(c jetstream.StreamConfig) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			_, err := durability.Open(ctx, js, c)
			return "", err
		}
	}
	identified := func(c jetstream.StreamConfig) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			_, identity, err := durability.OpenIdentified(ctx, js, c)
			return identity, err
		}
	}
	bucket := func(c jetstream.KeyValueConfig) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			_, identity, err := durability.OpenBucket(ctx, js, c)
			return identity, err
		}
	}
	small := jetstream.StreamConfig{Name: "one", Subjects: []string{"one.*"}, MaxMsgs: 7}
	large := small
	large.MaxMsgs = 8
	log := jetstream.StreamConfig{Name: "log", Subjects: []string{"log.*"}, MaxBytes: 1 << 20, DenyDelete: true, AllowDirect: true}
	described := log
	described.Description = "the log"
	for _, row := range []struct {
		name, stream string
		open         func(context.Context) (string, error)
		writes       bool
	}{
		{"a new stream", "one", stream(small), true},
		{"the same stream", "one", stream(small), false},
		{"a stream that has another limit", "one", stream(large), true},
		{"a new stream with an identity", "log", identified(log), true},
		{"the same stream with an identity", "log", identified(log), false},
		{"a stream with another description", "log", identified(described), true},
		{"a new bucket", "KV_b", bucket(jetstream.KeyValueConfig{Bucket: "b", History: 1, MaxBytes: 1 << 20}), true},
		{"the same bucket", "KV_b", bucket(jetstream.KeyValueConfig{Bucket: "b", History: 1, MaxBytes: 1 << 20}), false},
		{"a bucket with another limit", "KV_b", bucket(jetstream.KeyValueConfig{Bucket: "b", History: 1, MaxBytes: 2 << 20}), true},
	} {
		before, had := settings(t, dir, row.stream), identityOf(t, js, row.stream)
		identity, err := row.open(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		after := settings(t, dir, row.stream)
		// The inode of a file that was replaced may be given to the new one.
		if wrote := !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()); wrote != row.writes {
			t.Errorf("%s: the settings are written: %v, not %v", row.name, wrote, row.writes)
		}
		if kept := identityOf(t, js, row.stream); kept != identity || had != "" && had != identity {
			t.Errorf("%s: the identity is %q, the stream has %q, it had %q", row.name, identity, kept, had)
		}
	}
	for name, want := range map[string]jetstream.StreamConfig{"one": {MaxMsgs: 8, MaxBytes: -1}, "log": {MaxMsgs: -1, MaxBytes: 1 << 20, Description: "the log"}, "KV_b": {MaxMsgs: -1, MaxBytes: 2 << 20}} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.CachedInfo().Config; got.MaxMsgs != want.MaxMsgs || got.MaxBytes != want.MaxBytes || got.Description != want.Description {
			t.Errorf("stream %s has the settings %+v", name, got)
		}
	}
}

// serve runs a server on a folder.
func serve(t *testing.T, dir string) jetstream.JetStream {
	t.Helper()
	server, err := natsd.Start(t.Context(), natsd.Options{Dir: dir, Hosts: natsd.NewHosts(&credentialtest.Memory{}), Holder: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// settings returns the file with the settings of a stream, which the server replaces when it
// writes them; nil if there is none.
func settings(t *testing.T, dir, stream string) (found os.FileInfo) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "meta.inf" && filepath.Base(filepath.Dir(path)) == stream {
			found, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// identityOf returns the identity that a stream has; empty if it has none.
func identityOf(t *testing.T, js jetstream.JetStream, stream string) string {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		return ""
	}
	return s.CachedInfo().Config.Metadata["osu-identity"]
}
