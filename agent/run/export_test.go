package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Scenarios returns the records of each scenario of testdata/scripts, by its name.
func Scenarios(t *testing.T) map[string][]message.Record {
	t.Helper()
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	all := map[string][]message.Record{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := newPlayer(t)
		p.play(string(text))
		all[strings.TrimSuffix(filepath.Base(file), ".txt")] = p.log
	}
	return all
}

// History returns the records of runs as TestInvariants plays them.
func History(rt *rapid.T) []message.Record {
	p := newProperty(rt)
	p.playRuns()
	return p.log
}

// CellsOf returns those of some cells that an opening has to say.
func (l *Ledger) CellsOf(e message.Opened, cells []message.Cell) []message.Cell {
	return message.Only(cells, l.Says(e))
}

// Update tells that goldens are to be written anew.
func Update() bool { return *update }
