package site

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
)

// TestSecretsAreBackedUp checks that a backup has the secrets of a site, and not the key file
// that opens them; that it is restored with that file or without the secrets, and with what a
// person knows where a passphrase opens them.
func TestSecretsAreBackedUp(t *testing.T) {
	t.Parallel()
	dir, logger := filepath.Join(t.TempDir(), "old"), slog.New(slog.DiscardHandler)
	s := openTwo(t, dir)
	sealed, err := s.box.Seal([]byte("swordfish"), "a test")
	if err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	keys, key := keyFile(t, dir)
	file := filepath.Join(t.TempDir(), "site.tar")
	if err := Backup(t.Context(), dir, file, logger); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, key) || bytes.Contains(text, []byte("swordfish")) {
		t.Errorf("the backup has the key or the secret, %v", err)
	}
	restore := func(file string, secrets Secrets) (*strongbox.Box, error) {
		restored := filepath.Join(t.TempDir(), "new")
		err := Restore(t.Context(), file, restored, secrets, 10, new(bytes.Buffer), logger)
		if err != nil {
			if _, err := os.Stat(restored); err == nil {
				t.Error("there is a site, or a part of it")
			}
			return nil, err
		}
		return strongbox.Open(strongbox.Options{Dir: StrongboxFolder(restored)}), nil
	}
	other := filepath.Join(t.TempDir(), "other.key")
	if err := os.WriteFile(other, bytes.Repeat([]byte("o"), 32), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, secrets := range map[string]Secrets{
		"which is in no backup: give that file with --key-file, or give these secrets up with --without-secrets": {},
		"does not open the strongbox of the backup; that takes " + filepath.Base(keys[0]):                        {KeyFile: other},
		"no such file": {KeyFile: filepath.Join(t.TempDir(), "none")},
	} {
		if _, err := restore(file, secrets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", secrets, err)
		}
	}
	box, err := restore(file, Secrets{KeyFile: keys[0]})
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := box.Open(sealed, "a test"); err != nil || string(secret) != "swordfish" {
		t.Errorf("with the key file, the secret is %q, %v", secret, err)
	}
	box, err = restore(file, Secrets{Without: true})
	if err != nil || box.Sealed() != nil {
		t.Fatal(err, box.Sealed())
	}
	if secret, err := box.Open(sealed, "a test"); err == nil {
		t.Errorf("without secrets, the secret is %q", secret)
	}

	if err := strongbox.Open(strongbox.Options{Dir: StrongboxFolder(dir)}).Rewrap(strongbox.Target{Way: strongbox.Passphrase, Secret: []byte("correct horse battery staple")}); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again.tar")
	if err := Backup(t.Context(), dir, again, logger); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(again, Secrets{KeyFile: keys[0]}); err == nil {
		t.Error("a key file was taken for a strongbox that a passphrase opens")
	}
	if box, err = restore(again, Secrets{}); err != nil || box.Sealed() == nil {
		t.Fatal("the restored strongbox should be sealed", err)
	}
	if err := box.Unseal([]byte("correct horse battery staple")); err != nil {
		t.Fatal(err)
	}
	if secret, err := box.Open(sealed, "a test"); err != nil || string(secret) != "swordfish" {
		t.Errorf("with the passphrase, the secret is %q, %v", secret, err)
	}
}

// keyFile returns the path and the content of the key file of a site.
func keyFile(t *testing.T, dir string) (paths []string, key []byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(StrongboxFolder(dir), "strongbox-*.key"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	if key, err = os.ReadFile(paths[0]); err != nil {
		t.Fatal(err)
	}
	return paths, key
}
