package guard

import (
	"encoding/hex"
	"fmt"
	"slices"
)

// maxNoted bounds the places that are remembered; the oldest go first.
const maxNoted = 10_000

// adopt takes a log as it is, from its first record on: nothing is known of it,
// because it is new, or because somebody has compared it with a backup and
// removed the file. A log that was trimmed does not begin with record 1.
func (g *Guard) adopt(first uint64) {
	if first == 1 {
		return
	}
	g.now = Mark{Seq: first - 1, Hash: hex.EncodeToString(g.hash[:])}
	begin := g.now
	g.kept.Trimmed = &begin
}

// Note remembers the place reached, the record of the last See, as one up to
// which the log may be trimmed.
func (g *Guard) Note() {
	if n := len(g.noted); g.now.Seq == 0 || n > 0 && g.noted[n-1].Seq == g.now.Seq {
		return
	}
	if len(g.noted) == maxNoted {
		g.noted = slices.Delete(g.noted, 0, 1)
	}
	g.noted = append(g.noted, g.now)
}

// Trim makes durable that the log's records up to a sequence are removed on
// purpose. It comes before their removal, and only for a place that was noted:
// from its hash on the rest of the log is checked.
func (g *Guard) Trim(seq uint64) error {
	i := slices.IndexFunc(g.noted, func(m Mark) bool { return m.Seq == seq })
	switch {
	case g.kept.Trimmed != nil && seq <= g.kept.Trimmed.Seq:
		return nil
	case i < 0:
		return fmt.Errorf("cannot trim the log up to record %d: that place was not noted", seq)
	}
	trimmed := g.noted[i]
	known := g.kept.Mark
	if g.now.Seq > known.Seq {
		known = g.now
	}
	if err := g.write(file{Mark: known, Trimmed: &trimmed}); err != nil {
		return err
	}
	g.noted = slices.Delete(g.noted, 0, i+1)
	return nil
}

// Trimmed is the sequence up to which the log was trimmed last; 0 when it
// never was.
func (g *Guard) Trimmed() uint64 {
	if g.kept.Trimmed == nil {
		return 0
	}
	return g.kept.Trimmed.Seq
}
