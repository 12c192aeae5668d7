package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestJournalLog checks that each line for the journal bears its priority and no
// time, and that a file that is not the journal gets neither.
func TestJournalLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	status := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // of a file
	stream := fmt.Sprintf("%d:%d", status.Dev, status.Ino)
	t.Setenv("JOURNAL_STREAM", stream)
	write := func(log *slog.Logger) {
		log = log.With("tenant", "acme")
		log.Debug("not logged")
		log.Info("begun", "run", 41)
		log.WithGroup("host").Warn("silent", "name", "h01")
		log.Error("failed")
	}
	write(newLog(file, "info"))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "<6>level=INFO msg=begun tenant=acme run=41\n<4>level=WARN msg=silent tenant=acme host.name=h01\n<3>level=ERROR msg=failed tenant=acme\n"
	if string(text) != want {
		t.Errorf("it logs\n%s\nand not\n%s", text, want)
	}
	debug := newLog(file, "debug")
	debug.Debug("each request")
	if text, err = os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), "<7>level=DEBUG msg=\"each request\"\n") {
		t.Errorf("it logs %s, %v", text, err)
	}
	var other bytes.Buffer
	write(newLog(&other, "info"))
	if !strings.HasPrefix(other.String(), "time=") || strings.Contains(other.String(), "<") {
		t.Errorf("what is not the journal gets %s", other.String())
	}
	t.Setenv("JOURNAL_STREAM", "1:1")
	if isJournal(file, os.Getenv("JOURNAL_STREAM")) {
		t.Error("another file is taken for the journal")
	}
}
