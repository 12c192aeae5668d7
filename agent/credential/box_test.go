package credential

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBox checks that a sealed secret is opened with the key of its file alone, and for its
// purpose alone.
func TestBox(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials", "webhooks.key")
	box, err := OpenBox(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v", info, err)
	}
	sealed, err := box.Seal([]byte("swordfish"), "a")
	if err != nil || strings.Contains(sealed, "swordfish") {
		t.Fatal(sealed, err)
	}
	again, err := OpenBox(path)
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := again.Open(sealed, "a"); err != nil || string(secret) != "swordfish" {
		t.Errorf("opened is %q, %v", secret, err)
	}
	other, err := OpenBox(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return box.Open(sealed, "b") },
		"another key":     func() ([]byte, error) { return other.Open(sealed, "a") },
		"damaged":         func() ([]byte, error) { return box.Open("A"+sealed[1:], "a") },
		"cut":             func() ([]byte, error) { return box.Open(sealed[:8], "a") },
		"no base64":       func() ([]byte, error) { return box.Open("?", "a") },
	} {
		if secret, err := open(); !errors.Is(err, ErrNotOurs) {
			t.Errorf("%s: %q, %v", name, secret, err)
		}
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenBox(path); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged key: %v", err)
	}
}
