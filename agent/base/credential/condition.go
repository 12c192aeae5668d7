package credential

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// The errors of a write that was based on something else than what there is.
var (
	ErrExists  = errors.New("it exists already")
	ErrChanged = errors.New("it was changed meanwhile; read it again")
)

// Condition decides, together with a write, whether there may be one: it gets the
// revision of the entry, zero if there is none. A nil Condition permits all.
type Condition func(now uint64) error

// IfNew permits a write of what is not there yet.
func IfNew(now uint64) error {
	if now != 0 {
		return ErrExists
	}
	return nil
}

// IfRevision permits a write of what has this revision.
func IfRevision(base uint64) Condition {
	return func(now uint64) error {
		if now != base {
			return ErrChanged
		}
		return nil
	}
}

// Check returns why an entry may not be written; nil is the body of one that is missing.
func (c Condition) Check(body []byte) error {
	if c == nil {
		return nil
	}
	return c(RevisionOf(body))
}

// RevisionOf returns what tells the body of an entry from all others; zero for none.
func RevisionOf(body []byte) uint64 {
	if body == nil {
		return 0
	}
	sum := sha256.Sum256(body)
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// RemoveIf removes an entry if a condition permits it; os.ErrNotExist if there is none.
func RemoveIf(s Store, name string, permitted Condition) error {
	return Update(s, name, func(body []byte) ([]byte, error) { return nil, permitted.Check(body) })
}
