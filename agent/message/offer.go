package message

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// The plan that a host offers is what an upgrade would change if it began now. It travels
// packed, as the plan of a run does, and belongs to no run.
const (
	// OfferAgain is how long a host waits until it tells an offer again that is the same:
	// an older one is of a host that is away, or that can make no plan any more.
	OfferAgain = 24 * time.Hour
	// MaxOfferBytes bounds the offers that a host tells in a day, and MaxInventoryBytes
	// its inventories.
	MaxOfferBytes     = 1 << 20
	MaxInventoryBytes = 256 << 10
)

// Told says which offer, or which inventory, a site has of a host.
type Told struct {
	// Digest identifies it; it is empty when there is none.
	Digest string `json:"digest,omitempty"`
	// At is when the host has told it.
	At time.Time `json:"at,omitzero"`
}

// Digest identifies a packed offer, or an inventory.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
