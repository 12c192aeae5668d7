package run

import "testing"

// TestMovesLeadToAnEnd walks the table of moves: each phase but done has a
// status or is of a host that has its final one, and from each the end can be
// reached. Only before its slot a host may go back.
func TestMovesLeadToAnEnd(t *testing.T) {
	t.Parallel()
	for from := unasked; from < done; from++ {
		if statuses[from] == "" {
			t.Errorf("phase %d has no status", from)
		}
		if !from.mayBecome(done) || done.mayBecome(from) {
			t.Errorf("phase %d does not end for good", from)
		}
		for _, to := range moves[from] {
			back := to >= idle && (from == checkingBefore || from == ready)
			if to <= from && !back {
				t.Errorf("phase %d goes back to %d", from, to)
			}
		}
	}
}
