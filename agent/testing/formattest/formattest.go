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
// With -update it writes the fixture first. Once a format was released, its fixture
// stays: a version that adds a member gets a fixture beside it, and reads both.
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
	kept := Read(t, path)
	if !bytes.Equal(kept, text) {
		t.Errorf("this version writes\n%s\nand %s holds\n%s\nWhat changes a format raises its number (package format).", text, path, kept)
	}
	return kept
}

// Read returns what the fixture at path holds.
func Read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
