package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// maxReply bounds a reply, in bytes: its text and what JSON makes of it.
const maxReply = 8 * message.MaxText

// headerWorker identifies the worker that calls, headerSession its process.
const (
	headerWorker  = "Osu-Worker"
	headerSession = "Osu-Session"
)

// The verbs with which a host calls the gate.
const (
	verbSeat         = "seat"
	verbLeave        = "leave"
	verbReply        = "reply"
	verbVersions     = "versions"
	verbNewest       = "newest"
	verbLastVersions = "last-versions"
)

// answer is what the gate says to a call.
type answer struct {
	// Answered tells that the log has a reply to the command already.
	Answered bool `json:"answered,omitempty"`
	// Taken tells that another worker works for the host, Refused that asking
	// again is vain, Error why a call failed.
	Taken   bool   `json:"taken,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
	// Seat is what the caller was granted.
	Seat *held `json:"seat,omitempty"`
	// Records are those of newest, Log identifies the log.
	Records []record `json:"records,omitempty"`
	Log     string   `json:"log,omitempty"`
	// Body is that of last-versions.
	Body json.RawMessage `json:"body,omitempty"`
}

func (a answer) encode() []byte {
	body, err := json.Marshal(a)
	if err != nil {
		// A command on the log that is no JSON, which no controller writes.
		body, _ = json.Marshal(answer{Refused: true, Error: err.Error()})
	}
	return body
}

func refuse(format string, args ...any) answer {
	return answer{Refused: true, Error: fmt.Sprintf(format, args...)}
}

func failed(err error) answer { return answer{Error: err.Error()} }

// answer does what a call asks for. Only the worker that has the host's seat
// is listened to (AV-15).
func (g *Gate) answer(ctx context.Context, host string, verb []string, msg *nats.Msg) answer {
	worker, session := msg.Header.Get(headerWorker), msg.Header.Get(headerSession)
	if len(verb) == 1 && verb[0] == verbSeat {
		return g.seats.ask(ctx, host, worker, session)
	}
	if h, has := g.seats.heard(host, worker, session); !has {
		return answer{Taken: true, Error: h.String()}
	}
	switch {
	case len(verb) == 2 && verb[0] == verbLeave:
		return g.seats.leave(ctx, host, worker, session, verb[1])
	case len(verb) == 3 && verb[0] == verbReply:
		return g.reply(ctx, host, verb[1], message.Action(verb[2]), msg.Data)
	case len(verb) == 1 && verb[0] == verbVersions:
		return g.versions(ctx, host, msg.Data)
	case len(verb) == 1 && verb[0] == verbNewest:
		return answer{Log: g.log.identity(), Records: g.board.newest(host)}
	case len(verb) == 1 && verb[0] == verbLastVersions:
		return g.lastVersions(ctx, host)
	}
	return refuse("there is no call %q", strings.Join(verb, "."))
}

// reply appends a host's answer to a command of the newest run. Older runs
// take no more answers, so that a host adds at most three records to a run.
func (g *Gate) reply(ctx context.Context, host, run string, action message.Action, body []byte) answer {
	id, err := strconv.ParseUint(run, 10, 64)
	switch {
	case err != nil || !action.Known():
		return refuse("%q of run %q is no command", action, run)
	case len(body) > maxReply:
		return refuse("a reply has at most %d bytes, this one %d", maxReply, len(body))
	}
	newest, err := g.isNewest(ctx, id)
	switch {
	case err != nil:
		return failed(err)
	case !newest:
		return refuse("run %d is not the newest", id)
	}
	msg := nats.NewMsg(g.log.subjects.Reply(id, action, host))
	msg.Data = body
	msg.Header.Set(format.Header, format.Record.HeaderValue())
	_, err = g.log.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
	switch {
	case rejected(err):
		return answer{Answered: true}
	case err != nil:
		return failed(err)
	}
	return answer{}
}

// isNewest reports whether a run is the newest. The board may be behind, but
// it is never ahead, so only a run that it does not know yet is looked up.
func (g *Gate) isNewest(ctx context.Context, run uint64) (bool, error) {
	if known := g.board.run(); run <= known {
		return run == known && known != 0, nil
	}
	newest, err := g.log.last(ctx, g.log.subjects.CommandAll())
	if err != nil || newest == nil {
		return false, err
	}
	return newest.Sequence == run, nil
}

func (g *Gate) versions(ctx context.Context, host string, body []byte) answer {
	if _, err := message.DecodeVersions(body); err != nil {
		return refuse("%v", err)
	}
	if err := g.keeper.PutVersions(ctx, g.log.subjects.Tenant, log.Token(host), body); err != nil {
		return failed(err)
	}
	return answer{}
}

func (g *Gate) lastVersions(ctx context.Context, host string) answer {
	body, err := g.keeper.Versions(ctx, g.log.subjects.Tenant, log.Token(host))
	if err != nil {
		return failed(err)
	}
	return answer{Body: body}
}
