package gate

import (
	"encoding/json"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// The verbs with which a host calls the gate.
const (
	verbLease        = "lease"
	verbGiveBack     = "give-back"
	verbReply        = "reply"
	verbVersions     = "versions"
	verbNewest       = "newest"
	verbLastVersions = "last-versions"
)

// unknown ends the verb of a reply with message.Reply.Unknown.
const unknown = "unknown"

// current ends the verb of a call for the newest commands that must not be behind the
// log, as the gate's cache may be.
const current = "current"

// Request is one call of a host.
type Request struct {
	// Verb is what the host wants, with what belongs to it.
	Verb []string
	// Worker identifies the worker that calls, Incarnation its process.
	Worker, Incarnation string
	// Protocol is the newest one that the worker speaks (package format).
	Protocol int
	Body     []byte
}

// Quick reports whether a call is answered from memory, so that it need not
// wait behind those that are written to disk.
func (q Request) Quick() bool { return q.Verb[0] == verbNewest && len(q.Verb) == 1 }

// Response is what the gate says to a call.
type Response struct {
	// Answered tells that the log has a reply to the command already.
	Answered bool `json:"answered,omitempty"`
	// Taken tells that another worker holds the lease, Refused that asking again
	// is vain, Error why a call failed.
	Taken   bool   `json:"taken,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
	// Protocol is the newest one that the site speaks, in a response to lease,
	// which is a worker's first call.
	Protocol int `json:"protocol,omitempty"`
	// Lease is what the caller was granted. Otherwise Revision is that of the lease,
	// which the caller may have if it asks again for this revision.
	Lease    *Lease `json:"lease,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Commands are those of newest, Log identifies the log.
	Commands []Command `json:"commands,omitempty"`
	Log      string    `json:"log,omitempty"`
	// Body is that of last-versions.
	Body json.RawMessage `json:"body,omitempty"`
}

// Encode returns the JSON of a response.
func (r Response) Encode() []byte {
	body, err := json.Marshal(r)
	if err != nil {
		// A command on the log that is no JSON, which no controller writes.
		body, _ = json.Marshal(Response{Refused: true, Error: err.Error()})
	}
	return body
}

// Push is what the gate sends by itself: one of three.
type Push struct {
	// Hint tells that there is a new prepare. It names all hosts, so that to
	// send it whole to each would cost the square of their number: each asks for
	// its own part.
	Hint bool `json:"hint,omitempty"`
	// Command is a new command to the host.
	Command *Command `json:"command,omitempty"`
	// Lease tells the host's workers which of them holds it.
	Lease *Lease `json:"lease,omitempty"`
}

func (p Push) encode() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		// A command that is no JSON, as above: who asks for it is told.
		body, _ = json.Marshal(Push{Hint: true})
	}
	return body
}

// Command is a command on its way to a host.
type Command struct {
	Kind  message.Kind    `json:"kind"`
	Seq   uint64          `json:"seq"`
	Time  time.Time       `json:"time"`
	Run   uint64          `json:"run,omitempty"`
	Epoch uint64          `json:"epoch,omitempty"`
	Body  json.RawMessage `json:"body"`
}

func toCommand(r message.Record, body []byte) Command {
	return Command{Kind: r.Kind, Seq: r.Seq, Time: r.Time, Run: r.Run, Epoch: r.Epoch, Body: body}
}
