package message

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/strict"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// ReplyOutcome says how a command to a host has ended.
type ReplyOutcome string

// The outcomes of a command.
const (
	// Done means that the command is carried out, RebootRequired (of upgrade alone) that it
	// takes effect with a reboot.
	Done           ReplyOutcome = "done"
	RebootRequired ReplyOutcome = "reboot-required"
	// Failed means that the command failed.
	Failed ReplyOutcome = "failed"
	// RolledBack means that an upgrade failed and was undone: the host is what it was before.
	RolledBack ReplyOutcome = "rolled-back"
	// Unknown means that the worker cannot know whether its host has carried out a command,
	// or still does: the reply is no proof that the host is at rest.
	Unknown ReplyOutcome = "unknown"
)

// Known reports whether o is one of the outcomes above.
func (o ReplyOutcome) Known() bool {
	switch o {
	case Done, RebootRequired, Failed, RolledBack, Unknown:
		return true
	default:
		return false
	}
}

// Beside returns the outcome if it travels beside the body of a reply, because the body
// cannot say it; otherwise it is empty.
func (o ReplyOutcome) Beside() ReplyOutcome {
	if o == RolledBack || o == Unknown {
		return o
	}
	return ""
}

// OutcomeBeside reads what travels beside the body of a reply. A newer worker may send an
// outcome that this version does not know: then it is unknown what the host did.
func OutcomeBeside(header string) ReplyOutcome {
	switch o := ReplyOutcome(header); o {
	case "", RolledBack:
		return o
	default:
		return Unknown
	}
}

// Result is how a command to a host has ended, and why.
type Result struct {
	Outcome ReplyOutcome `json:"outcome,omitempty"`
	// Text says what failed; empty for Done and RebootRequired.
	Text string `json:"text,omitempty"`
	// Class is the kind of the failure, if it is known.
	Class Class `json:"class,omitempty"`
	// UpToDate says of an upgrade that is Done that there was nothing to change. A worker that
	// cannot tell, or is too old to, does not say it.
	UpToDate bool `json:"up-to-date,omitempty"`
}

// NotDone returns the result of a command that was not carried out, with any text.
func NotDone(outcome ReplyOutcome, class Class, text string) Result {
	return Result{Outcome: outcome, Text: CleanText(text), Class: class}
}

// rolledBack ends the text of an upgrade that failed and was rolled back. It is for people,
// and nothing is decided by it: a script may print the same.
const rolledBack = "; rolled back"

// String is the result of a reply in Avassa's protocol: done, reboot-required or an error
// text, which is never equal to one of these.
func (r Result) String() string {
	switch r.Outcome {
	case "", Done, RebootRequired:
		return string(r.Outcome)
	case RolledBack:
		return text.Fit(r.Text, MaxText-len(rolledBack), "…") + rolledBack
	default:
		if r.Text == "" || ResultOf(r.Text).Outcome != Failed {
			return "failed: " + r.Text
		}
		return r.Text
	}
}

// ResultOf reads a result of Avassa's protocol.
func ResultOf(s string) Result {
	if o := ReplyOutcome(s); o == Done || o == RebootRequired {
		return Result{Outcome: o}
	}
	return NotDone(Failed, "", s)
}

// with adds to a result what travels beside the body of its reply.
func (r Result) with(beside ReplyOutcome, class Class, upToDate bool) Result {
	switch {
	case beside == RolledBack:
		return NotDone(RolledBack, class, strings.TrimSuffix(r.String(), rolledBack))
	case beside == Unknown:
		return NotDone(Unknown, class, r.String())
	case r.Outcome == Failed:
		r.Class = class
	case r.Outcome == Done:
		r.UpToDate = upToDate
	}
	return r
}

// Reply is a host's one answer to a command.
type Reply struct {
	Action Action
	Result Result
	// Log is the identity of the log of the command, which the site compares with
	// that of its own. It travels beside the body.
	Log string
}

// replyBody is the body of a reply. It is Avassa's, so the rest travels beside it.
type replyBody struct {
	Action Action `json:"action"`
	Result string `json:"result"`
}

// Encode returns the reply's JSON body.
func (r Reply) Encode() []byte { return encode(replyBody{r.Action, r.Result.String()}) }

// DecodeReply reads a reply's JSON body. Record.Decode adds what travels beside it.
func DecodeReply(data []byte) (Reply, error) {
	var body replyBody
	if err := strict.JSON(data, &body); err != nil {
		return Reply{}, fmt.Errorf("cannot read reply: %w", err)
	}
	if !body.Action.Known() {
		return Reply{}, fmt.Errorf("cannot read reply: action %q is none of prepare, upgrade, reboot", body.Action)
	}
	if body.Result == "" {
		return Reply{}, fmt.Errorf("cannot read reply: result is empty; use done, reboot-required or an error text")
	}
	return Reply{Action: body.Action, Result: ResultOf(CleanText(body.Result))}, nil
}

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
