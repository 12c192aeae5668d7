package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// Bounds of the gate.
const (
	// maxReply bounds a reply, in bytes: its text and what JSON makes of it.
	maxReply = 8 * message.MaxText
	// gateWorkers is how many calls of all hosts are answered at once, and
	// callsPerHost how many of one: what comes beyond that is dropped, and an
	// honest host asks again.
	gateWorkers, callsPerHost = 32, 4
)

// The verbs with which a host calls the gate.
const (
	verbReply        = "reply"
	verbVersions     = "versions"
	verbNewest       = "newest"
	verbLastVersions = "last-versions"
)

// Keeper keeps the versions that hosts report. A host has one entry, so that
// it cannot fill the log.
type Keeper interface {
	PutVersions(ctx context.Context, tenant, key string, body []byte) error
	Versions(ctx context.Context, tenant, key string) ([]byte, error)
}

// Gate is where hosts are let in: it takes each host's calls on that host's
// own subject, does what is allowed in the host's name, and answers to that
// host's own inbox, whatever else the call says.
type Gate struct {
	log    *Log
	keeper Keeper
	calls  chan *nats.Msg
	mu     sync.Mutex
	// open counts the calls of each host that are being answered.
	open map[string]int
}

// NewGate makes the gate of a log.
func NewGate(log *Log, keeper Keeper) *Gate {
	return &Gate{log: log, keeper: keeper, calls: make(chan *nats.Msg, gateWorkers), open: map[string]int{}}
}

// Serve answers calls until ctx ends. Several gates share the work.
func (g *Gate) Serve(ctx context.Context) error {
	sub, err := g.log.nats.QueueSubscribe(g.log.subjects.Call("*", ">"), "gate", func(msg *nats.Msg) { g.admit(ctx, msg) })
	if err != nil {
		return fmt.Errorf("cannot let hosts in: %w", err)
	}
	var workers sync.WaitGroup
	for range gateWorkers {
		workers.Go(func() { g.work(ctx) })
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
	workers.Wait()
	return ctx.Err()
}

// caller returns the host of a call and its verb, and whether its answer goes
// to that host.
func (g *Gate) caller(msg *nats.Msg) (host string, verb []string, ok bool) {
	parts := strings.Split(msg.Subject, ".")
	host, ok = topic.Host(parts[2])
	return host, parts[4:], ok && strings.HasPrefix(msg.Reply, g.log.subjects.Inbox(host)+".")
}

// admit takes a call unless its host has too many open already.
func (g *Gate) admit(ctx context.Context, msg *nats.Msg) {
	host, _, ok := g.caller(msg)
	if !ok || !g.begin(host) {
		return
	}
	select {
	case g.calls <- msg:
	case <-ctx.Done():
		g.end(host)
	}
}

func (g *Gate) begin(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[host] >= callsPerHost {
		return false
	}
	g.open[host]++
	return true
}

func (g *Gate) end(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[host]--; g.open[host] == 0 {
		delete(g.open, host)
	}
}

func (g *Gate) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-g.calls:
			host, verb, _ := g.caller(msg)
			limited, cancel := context.WithTimeout(ctx, appendTimeout)
			answer := g.answer(limited, host, verb, msg.Data)
			cancel()
			// Who asked and is gone asks again.
			_ = g.log.nats.Publish(msg.Reply, answer.encode())
			g.end(host)
		}
	}
}

// answer is what the gate says to a call.
type answer struct {
	// Answered tells that the log has a reply to the command already.
	Answered bool `json:"answered,omitempty"`
	// Refused tells that asking again is vain, Error why a call failed.
	Refused bool   `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
	// Records are those of newest, Log identifies the log.
	Records []record `json:"records,omitempty"`
	Log     string   `json:"log,omitempty"`
	// Body is that of last-versions.
	Body json.RawMessage `json:"body,omitempty"`
}

// record is a command on its way to a host.
type record struct {
	Subject string          `json:"subject"`
	Seq     uint64          `json:"seq"`
	Time    time.Time       `json:"time"`
	Run     uint64          `json:"run,omitempty"`
	Body    json.RawMessage `json:"body"`
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

func (g *Gate) answer(ctx context.Context, host string, verb []string, body []byte) answer {
	switch {
	case len(verb) == 3 && verb[0] == verbReply:
		return g.reply(ctx, host, verb[1], message.Action(verb[2]), body)
	case len(verb) == 1 && verb[0] == verbVersions:
		return g.versions(ctx, host, body)
	case len(verb) == 1 && verb[0] == verbNewest:
		return g.newest(ctx, host)
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
	newest, err := g.last(ctx, g.log.subjects.CommandAll())
	if err != nil {
		return failed(err)
	}
	if newest == nil || newest.Sequence != id {
		return refuse("run %d is not the newest", id)
	}
	_, err = g.log.js.Publish(ctx, g.log.subjects.Reply(id, action, host), body, jetstream.WithExpectLastSequencePerSubject(0))
	switch {
	case rejected(err):
		return answer{Answered: true}
	case err != nil:
		return failed(err)
	}
	return answer{}
}

func (g *Gate) versions(ctx context.Context, host string, body []byte) answer {
	if _, err := message.DecodeVersions(body); err != nil {
		return refuse("%v", err)
	}
	if err := g.keeper.PutVersions(ctx, g.log.subjects.Tenant, topic.Token(host), body); err != nil {
		return failed(err)
	}
	return answer{}
}

func (g *Gate) lastVersions(ctx context.Context, host string) answer {
	body, err := g.keeper.Versions(ctx, g.log.subjects.Tenant, topic.Token(host))
	if err != nil {
		return failed(err)
	}
	return answer{Body: body}
}

// newest returns the newest command to all and the newest to the host.
func (g *Gate) newest(ctx context.Context, host string) answer {
	a := answer{Log: g.log.identity()}
	for _, subject := range []string{g.log.subjects.CommandAll(), g.log.subjects.CommandHost(host)} {
		msg, err := g.last(ctx, subject)
		if err != nil {
			return failed(err)
		}
		if msg != nil {
			r := g.log.stored(msg)
			a.Records = append(a.Records, record{Subject: subject, Seq: r.Seq, Time: r.Time, Run: r.Run, Body: r.Body})
		}
	}
	return a
}

// last gets the newest record of a subject; nil when there is none.
func (g *Gate) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	msg, err := g.log.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}

// identity tells this log from one that was made anew in its place.
func (l *Log) identity() string {
	return strconv.FormatInt(l.stream.CachedInfo().Created.UnixNano(), 36)
}
