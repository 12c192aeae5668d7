// Package formattest holds what the program stores against fixtures of each
// format, for tests. A fixture is the text that a version has written; it is
// kept for as long as a version reads it.
package formattest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the fixtures of the newest formats anew")

// Golden checks that text is what the fixture at path holds, which it returns.
// With -update it writes the fixture first; a fixture of a format that was
// released must not change any more.
func Golden(t *testing.T, path string, text []byte) []byte {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, text) {
		t.Errorf("this version writes\n%s\nand %s holds\n%s\nWhat changes a format raises its number (package format).", text, path, kept)
	}
	return kept
}
