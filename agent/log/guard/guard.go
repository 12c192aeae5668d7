// Package guard notices a log that went backwards, was cut or was changed: it
// keeps the last sequence and a running hash of all records outside the log.
// Without it, the server takes a damaged block of a stream
// for the end of the stream, and assigns sequences twice (nats-server #7549).
//
// It decides whether the log is still the same. It never repairs anything.
package guard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Mark is a sequence of the log and the hash of all records up to it.
type Mark struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// State is what is kept of one log: how far it was known, and up to which record its
// beginning was trimmed. The zero State is that of a new log.
type State struct {
	Mark
	Trimmed *Mark `json:"trimmed,omitempty"`
	// Told is the highest sequence that a host has told of though the log ended before
	// it, 0 if none has: whoever recovers the log goes on beyond it.
	Told uint64 `json:"told,omitempty"`
}

// Guard checks the log while its owner folds it.
type Guard struct {
	storage Storage
	// kept is what the storage has. seq is how far the log was read, and hash that of
	// all records up to there.
	kept State
	seq  uint64
	hash [sha256.Size]byte
	// noted are the marks up to which the log may be trimmed, oldest first.
	noted []Mark
}

// Storage is where a Guard keeps its State.
type Storage interface {
	// Read returns the zero State before the first Write.
	Read() State
	// Write replaces the State, and returns once the new one is durable.
	Write(s State) error
}

// New makes a Guard that expects the log that its storage knows.
func New(storage Storage) *Guard {
	g := &Guard{storage: storage, kept: storage.Read()}
	if trimmed := g.kept.Trimmed; trimmed != nil {
		hash, _ := hex.DecodeString(trimmed.Hash)
		g.seq = trimmed.Seq
		copy(g.hash[:], hash)
	}
	return g
}

// Anew returns a Guard with the State of this Guard's storage, for reading the log from
// its beginning again.
func (g *Guard) Anew() *Guard { return New(g.storage) }

// check returns an error for a State that no Guard writes.
func (s State) check() error {
	trimmed := s.Trimmed
	switch {
	case s.Mark == (Mark{}) && trimmed == nil && s.Told > 0:
	case !s.possible():
		return fmt.Errorf("record %d cannot have the hash %.80q", s.Seq, s.Hash)
	case trimmed == nil:
	case !trimmed.possible(), trimmed.Seq > s.Seq, trimmed.Seq == s.Seq && trimmed.Hash != s.Hash:
		return fmt.Errorf("a log that is known up to record %d was not trimmed up to record %d with the hash %.80q", s.Seq, trimmed.Seq, trimmed.Hash)
	}
	return nil
}

func (m Mark) possible() bool {
	hash, err := hex.DecodeString(m.Hash)
	return err == nil && len(hash) == sha256.Size && m.Seq > 0
}

// See adds the next record. An error means that the log is no longer the same.
func (g *Guard) See(r message.Record) error {
	if r.Seq <= g.seq {
		return nil
	}
	if g.kept.Seq == 0 && g.seq == 0 {
		g.adopt(r.Seq)
	}
	if r.Seq != g.seq+1 {
		return fmt.Errorf("the log is damaged: record %d follows record %d", r.Seq, g.seq)
	}
	g.hash, g.seq = chain(g.hash, r), r.Seq
	if g.seq == g.kept.Seq && g.now() != g.kept.Mark {
		return fmt.Errorf("the log is damaged: its records up to %d are not those that were there before", r.Seq)
	}
	return nil
}

// now is the mark up to which the log was read.
func (g *Guard) now() Mark { return Mark{Seq: g.seq, Hash: hex.EncodeToString(g.hash[:])} }

// End checks the log once it has been read up to its last record.
func (g *Guard) End(last uint64) error {
	if last < g.kept.Seq {
		return fmt.Errorf("the log is damaged: it ends at record %d, and record %d had been there", last, g.kept.Seq)
	}
	return nil
}

// chain adds a record to a running hash.
func chain(hash [sha256.Size]byte, r message.Record) [sha256.Size]byte {
	chained := append(make([]byte, 0, 1024), hash[:]...) // Few records are longer, and this needs no heap.
	for _, n := range []uint64{r.Seq, uint64(r.Time.UnixNano()), uint64(r.Kind), r.Run, r.Epoch} {
		chained = binary.BigEndian.AppendUint64(chained, n)
	}
	chained = appendText(chained, r.Host)
	chained = appendText(chained, r.Action)
	chained = appendText(chained, r.Body)
	if r.Outcome != "" {
		chained = appendText(chained, "outcome "+r.Outcome)
	}
	if r.Class != "" {
		chained = appendText(chained, "class "+r.Class)
	}
	if r.UpToDate {
		chained = appendText(chained, "up-to-date")
	}
	return sha256.Sum256(chained)
}

// appendText appends a text after its length, so that no two sequences of texts look
// the same.
func appendText[T ~string | ~[]byte](to []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(text))), text...)
}

// Keep makes the current mark durable.
func (g *Guard) Keep() error {
	if g.seq <= g.kept.Seq {
		return nil
	}
	return g.write(State{Mark: g.now(), Trimmed: g.kept.Trimmed, Told: g.kept.Told})
}

func (g *Guard) write(s State) error {
	if err := g.storage.Write(s); err != nil {
		return fmt.Errorf("cannot keep the guard of the log: %w", err)
	}
	g.kept = s
	return nil
}

// Told makes durable that a host knows the log up to a sequence, though the log ends
// before it.
func (g *Guard) Told(seq uint64) error {
	if seq <= g.kept.Told {
		return nil
	}
	next := g.kept
	next.Told = seq
	return g.write(next)
}

// maxNoted bounds the number of noted marks; the oldest are dropped first.
const maxNoted = 10_000

// adopt accepts the log as it is, from its first record on. Nothing is known of it,
// because it is new, or because an operator has compared it with a backup and removed
// the file. A log that was trimmed does not begin with record 1.
func (g *Guard) adopt(first uint64) {
	if first == 1 {
		return
	}
	g.seq = first - 1
	begin := g.now()
	g.kept.Trimmed = &begin
}

// Note remembers the current mark, that of the last See: the log may be trimmed up to
// it.
func (g *Guard) Note() {
	if n := len(g.noted); g.seq == 0 || n > 0 && g.noted[n-1].Seq == g.seq {
		return
	}
	if len(g.noted) == maxNoted {
		g.noted = slices.Delete(g.noted, 0, 1)
	}
	g.noted = append(g.noted, g.now())
}

// Trim makes durable that the log is trimmed up to a sequence. It is called before the
// records are removed, and only for a noted sequence: the check of the rest of the log
// continues from its hash.
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
	if g.seq > known.Seq {
		known = g.now()
	}
	if err := g.write(State{Mark: known, Trimmed: &trimmed, Told: g.kept.Told}); err != nil {
		return err
	}
	g.noted = slices.Delete(g.noted, 0, i+1)
	return nil
}

// Trimmed returns the sequence up to which the log was last trimmed; 0 if it never
// was.
func (g *Guard) Trimmed() uint64 {
	if g.kept.Trimmed == nil {
		return 0
	}
	return g.kept.Trimmed.Seq
}
