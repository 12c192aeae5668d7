package message

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// Position is how far a host's journal has come on a log. The hosts are the witnesses
// of a log: a site whose folder was replaced by an older copy finds that out by them.
type Position struct {
	// Log is the identity of the log.
	Log string `json:"log"`
	// Seq is the sequence of the newest command that the host has accepted or passed
	// over, At the time of its record.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at,omitzero"`
	// Action is what the command of the journal is; empty without one. Answered means
	// that the log has acknowledged the reply to it.
	Action   Action `json:"action,omitempty"`
	Answered bool   `json:"answered,omitempty"`
	// Busy means that the host is at work on that command.
	Busy bool `json:"busy,omitempty"`
}

// maxLogIdentity bounds the identity of a log, in bytes.
const maxLogIdentity = 64

// check bounds what a host says of its position.
func (p *Position) check() error {
	switch {
	case p == nil:
		return nil
	case p.Log == "" || p.Seq == 0:
		return fmt.Errorf("seen: it has record %d of log %.80q; leave it out while there is none", p.Seq, p.Log)
	case p.Action != "" && !p.Action.Known():
		return fmt.Errorf("seen: action %.80q is none of prepare, upgrade, reboot", p.Action)
	}
	p.Log = text.Cut(CleanText(p.Log), maxLogIdentity, "")
	return nil
}
