package message

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/strict"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
)

// Results of a reply that are not error text (AV-63, AV-67).
const (
	Done           = "done"
	RebootRequired = "reboot-required"
)

// Reply is a host's one answer to a command.
type Reply struct {
	Action Action `json:"action"`
	// Result is Done, RebootRequired (of upgrade alone) or error text.
	Result string `json:"result"`
	// Unknown means that the worker cannot know whether its host has carried out
	// a command, or still does: the answer is no proof that the host is at rest.
	// Avassa's protocol has no such member, so it travels beside the body.
	Unknown bool `json:"-"`
	// Class says what kind of failure Result tells, if it is known. It travels beside the
	// body, too.
	Class Class `json:"-"`
	// Log is the identity of the log of the command, which the site compares with
	// that of its own. It travels beside the body, too.
	Log string `json:"-"`
}

// Encode returns the reply's JSON body.
func (r Reply) Encode() []byte { return encode(r) }

// DecodeReply reads a reply's JSON body.
func DecodeReply(data []byte) (Reply, error) {
	var reply Reply
	if err := strict.JSON(data, &reply); err != nil {
		return Reply{}, fmt.Errorf("cannot read reply: %w", err)
	}
	if !reply.Action.Known() {
		return Reply{}, fmt.Errorf("cannot read reply: action %q is none of prepare, upgrade, reboot", reply.Action)
	}
	if reply.Result == "" {
		return Reply{}, fmt.Errorf("cannot read reply: result is empty; use done, reboot-required or an error text")
	}
	reply.Result = CleanText(reply.Result)
	return reply, nil
}

// rolledBack ends the result of an upgrade that failed and was rolled back: the host is
// what it was before. Avassa's protocol has no other place for that.
const rolledBack = "; rolled back"

// RolledBack is the result of an upgrade that failed and was rolled back.
func RolledBack(cause string) string {
	return text.Fit(CleanText(cause), MaxText-len(rolledBack), "…") + rolledBack
}

// IsRolledBack reports whether a result is that of an upgrade that was rolled back.
func IsRolledBack(result string) bool { return strings.HasSuffix(result, rolledBack) }

// CleanText makes text from outside fit to be kept and shown: valid UTF-8,
// without control characters, and at most MaxText bytes.
func CleanText(s string) string {
	s = strings.ToValidUTF8(s, "�")
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(text.Fit(s, MaxText, "…"))
}
