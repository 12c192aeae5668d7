package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// The verbs with which a host calls the gate.
const (
	verbLease    = "lease"
	verbGiveBack = "give-back"
	verbReply    = "reply"
	verbNewest   = "newest"
	// A report of a kind, and which one of it the site has.
	verbReport     = "report"
	verbLastReport = "last-report"
	// verbRelease asks for the text of the release of a run.
	verbRelease = "release"
	// verbOutputs asks for the outputs of the steps of a run.
	verbOutputs = "outputs"
)

// current ends the verb of a call for the newest commands that must not be behind the
// log, as the gate's cache may be.
const current = "current"

// The members of a prepare that an older worker ignores: it would upgrade its host to whatever is
// the newest.
const (
	readsRelease  = "release"
	readsRollback = "rollback"
)

// Request is one call of a host.
type Request struct {
	// Verb is the verb of the call and its arguments.
	Verb []string
	// Worker identifies the worker that calls, Incarnation its process.
	Worker, Incarnation string
	// Protocol is the newest protocol that the worker speaks (package format).
	Protocol int
	// Reads says, in a call for the newest commands, which members of a prepare the worker reads that
	// its body does not have, joined by commas.
	Reads string
	// Log is the identity of the log that the call is about; empty when it is about
	// none.
	Log string
	// Outcome, Class and UpToDate are of a reply: what of its result is not in the body.
	Outcome  message.ReplyOutcome
	Class    message.Class
	UpToDate bool
	Body     []byte
}

// Quick reports whether a call is answered from memory, but for one read of the log in each run, so
// that it need not wait behind calls that write to disk.
func (q Request) Quick() bool { return q.Verb[0] == verbNewest && len(q.Verb) == 1 }

// unread says what the worker that calls cannot do of a prepare; empty if it reads all of it.
func (q Request) unread(prepare message.Record) string {
	reads := strings.Split(q.Reads, ",")
	switch {
	case prepare.Release != "" && !slices.Contains(reads, readsRelease):
		return "carry out releases"
	case prepare.Rollback != "" && !slices.Contains(reads, readsRollback):
		return "roll back"
	}
	return ""
}

// Response is the response of the gate to a call.
type Response struct {
	// Answered means that the log has a reply to the command already.
	Answered bool `json:"answered,omitempty"`
	// Taken means that another worker holds the lease; Refused, that a retry would
	// fail again. Error is why the call failed.
	Taken   bool   `json:"taken,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
	// Protocol is the newest protocol that the site speaks. It is in the response to
	// lease, which is a worker's first call.
	Protocol int `json:"protocol,omitempty"`
	// Lease is the lease that was granted. If it is absent, Revision is the revision
	// of a lease that the caller gets if it calls again and names this revision.
	Lease    *Lease `json:"lease,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Commands are the newest commands, in the response to newest; Log identifies
	// the log.
	Commands []Command `json:"commands,omitempty"`
	Log      string    `json:"log,omitempty"`
	// Body is a report.Told, in the response to last-report, the text of a release, or outputs by name.
	Body json.RawMessage `json:"body,omitempty"`
}

// Encode returns the JSON of a response.
func (r Response) Encode() []byte {
	body, err := json.Marshal(r)
	if err != nil {
		// A command on the log is not JSON. No controller writes such a command.
		body, _ = json.Marshal(Response{Refused: true, Error: err.Error()})
	}
	return body
}

// Push is a message that a gate sends unasked; exactly one of its members is set.
type Push struct {
	// Hint means that there is a new prepare. A prepare names all hosts, so pushing
	// it to each of them would cost the square of their number. Each host asks for
	// its part instead.
	Hint bool `json:"hint,omitempty"`
	// Command is a new command to the host.
	Command *Command `json:"command,omitempty"`
	// Lease is the lease of the host after its holder has changed.
	Lease *Lease `json:"lease,omitempty"`
	// Ask asks for a report.
	Ask *Ask `json:"ask,omitempty"`
	// Offer asks for offers by a release. A worker that makes none ignores it.
	Offer *Offer `json:"offer,omitempty"`
}

// Ask is a log.Ask on its way to a host. A worker that does not know the kind, or no asks at
// all, ignores it.
type Ask struct {
	Kind          string `json:"kind"`
	WithinSeconds int    `json:"within-seconds,omitempty"`
}

// Offer is a log.Ask by a release on its way to a host.
type Offer struct {
	WithinSeconds int `json:"within-seconds,omitempty"`
	// Release is absent if the host offers the newest that it finds.
	Release *release.Pin `json:"release,omitempty"`
}

// EncodeAsk returns the push that asks a host for a report.
func EncodeAsk(a log.Ask) []byte {
	within := int(a.Within / time.Second)
	if a.ByRelease {
		return Push{Offer: &Offer{WithinSeconds: within, Release: a.Release}}.encode()
	}
	return Push{Ask: &Ask{Kind: a.Kind.Name, WithinSeconds: within}}.encode()
}

func (p Push) encode() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		// The command is not JSON. A host that asks for it gets the error.
		body, _ = json.Marshal(Push{Hint: true})
	}
	return body
}

// Command is a command on its way to a host.
type Command struct {
	Kind  message.Kind `json:"kind"`
	Seq   uint64       `json:"seq"`
	Time  time.Time    `json:"time"`
	Run   uint64       `json:"run,omitempty"`
	Epoch uint64       `json:"epoch,omitempty"`
	// Checks is message.Record.Checks.
	Checks bool `json:"checks,omitempty"`
	// Release is message.Record.Release.
	Release string `json:"release,omitempty"`
	// Rollback is message.Record.Rollback.
	Rollback string `json:"rollback,omitempty"`
	// Outputs tells that steps of the run have given outputs, which the host may ask for.
	Outputs bool            `json:"outputs,omitempty"`
	Body    json.RawMessage `json:"body"`
}

func toCommand(r message.Record, body []byte) Command {
	return Command{Kind: r.Kind, Seq: r.Seq, Time: r.Time, Run: r.Run, Epoch: r.Epoch, Checks: r.Checks, Release: r.Release, Rollback: r.Rollback, Body: body}
}
