package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenSecret checks that a key or a token that others may read is refused, with the
// command that mends it, and that one of its owner, or of a service's group, is taken.
func TestOpenSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o604: false, 0o660: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		body, err := readSecret("key-file", path)
		if good && (err != nil || string(body) != "secret") {
			t.Errorf("of mode %#o it is %q, %v", mode, body, err)
		}
		want := fmt.Sprintf("key-file: %s is open to other users (mode %#o); run chmod 600 %s", path, mode, path)
		if !good && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("of mode %#o the error is %v", mode, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	worker, operator := workerCommand{KeyFile: path}, connection{TokenFile: path}
	if _, _, err := worker.readKey(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a worker takes it: %v", err)
	}
	if _, err := operator.client(); err == nil || !strings.Contains(err.Error(), "token-file: ") || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("an operator's command takes it: %v", err)
	}
}
