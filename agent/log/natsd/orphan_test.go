package natsd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestOrphanStream checks that a server starts after a kill while a stream was
// being made, whatever of it was on disk, and that the stream can be made then.
func TestOrphanStream(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"a folder":     nil,
		"its settings": {"meta.inf"},
		"a block":      {"msgs/1.blk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			once := func() {
				s, _, err := open(t, dir)
				if err != nil {
					t.Fatal(err)
				}
				conn, err := s.Connect()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				js, err := jetstream.New(conn)
				if err != nil {
					t.Fatal(err)
				}
				for _, stream := range []string{"one", "two"} {
					if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: stream}); err != nil {
						t.Error(err)
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			once()
			// As a kill leaves it: no seal, and of the second stream little.
			stream := filepath.Join(dir, "store", "jetstream", "$G", "streams", "two")
			kept, err := os.ReadFile(filepath.Join(stream, "meta.inf"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(stream); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "store", sealName)); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(stream, "msgs"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				body := kept
				if filepath.Ext(file) == ".blk" {
					body = nil
				}
				if err := os.WriteFile(filepath.Join(stream, file), body, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			once()
		})
	}
}
