package message

import (
	"cmp"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// NotNow is why a host is not to be upgraded now, and until when at the latest: a
// program on it holds a busy lease.
type NotNow struct {
	Reason string `json:"reason"`
	// Until is the end by the clock of the host. It is told to people; the host itself
	// says when it is busy no more.
	Until time.Time `json:"until"`
}

// maxReason bounds the reason, in bytes.
const maxReason = 200

// NewNotNow makes a reason and an end fit to be told.
func NewNotNow(reason string, until time.Time) NotNow {
	return NotNow{Reason: cmp.Or(text.Fit(CleanText(reason), maxReason, "…"), "no reason given"), Until: until.UTC().Truncate(time.Second)}
}

// clean bounds what a host says. It may be anything.
func (n *NotNow) clean() *NotNow {
	if n == nil {
		return nil
	}
	c := NewNotNow(n.Reason, n.Until)
	if c.Until.IsZero() || c.Until.Year() > 9999 { // JSON has no such time.
		c.Until = time.Unix(0, 0).UTC()
	}
	return &c
}

// Equal reports whether two say the same.
func (n NotNow) Equal(other NotNow) bool {
	return n.Reason == other.Reason && n.Until.Equal(other.Until)
}

// String tells people until when and why.
func (n NotNow) String() string {
	return fmt.Sprintf("until %s: %s", n.Until.Format(time.RFC3339), n.Reason)
}
