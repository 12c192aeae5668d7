package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// conversation is the fixture: what site and worker of protocol 1 say to each
// other in a run.
const conversation = "testdata/format1/conversation.jsonl"

// exchange is one line of it: a record that the controller appends, a call of the
// worker with the site's response, or telemetry of the worker.
type exchange struct {
	Append    *appended       `json:"append,omitempty"`
	Request   *request        `json:"request,omitempty"`
	Response  json.RawMessage `json:"response,omitempty"`
	Telemetry json.RawMessage `json:"telemetry,omitempty"`
}

type appended struct {
	Kind   message.Kind    `json:"kind"`
	Host   string          `json:"host,omitempty"`
	Run    uint64          `json:"run,omitempty"`
	Epoch  uint64          `json:"epoch,omitempty"`
	Checks bool            `json:"checks,omitempty"`
	Body   json.RawMessage `json:"body"`
}

type request struct {
	Verb        []string        `json:"verb"`
	Worker      string          `json:"worker"`
	Incarnation string          `json:"incarnation"`
	Protocol    int             `json:"protocol"`
	Body        json.RawMessage `json:"body,omitempty"`
}

func readConversation(t *testing.T, text []byte) (all []exchange) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var e exchange
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// play has a worker go through a run. It returns what the worker makes of it.
func play(ctx context.Context, c *gate.Client, appends func(message.Record)) (made []string) {
	note := func(what string, value any, err error) {
		made = append(made, fmt.Sprintf("%s: %v, %v", what, value, err))
	}
	newest := func() {
		records, err := c.Newest(ctx)
		note("newest", len(records), err)
		for _, r := range records {
			note("record", fmt.Sprintf("%d %d run %d host %q epoch %d checks %t log %q %s %s", r.Seq, r.Kind, r.Run, r.Host, r.Epoch, r.Checks, r.Log, r.Time.UTC().Format(time.RFC3339), r.Body), nil)
		}
	}
	epoch, err := c.Lease(ctx, "W1")
	note("lease", epoch, err)
	newest()
	note("alive", "", c.Alive(message.Alive{Application: "app", AgentVersion: "1.0.0", Worker: "W1", Role: "edge", Labels: map[string]string{"ring": "0"}}))
	note("versions", "", c.Report(ctx, report.Versions.Of([]byte(`{"kernel":"6.1"}`))))
	told, err := c.LastReport(ctx, report.Versions)
	note("last versions", told, err)
	appends(prepare("h01", "h02"))
	newest()
	note("reply", "", c.Reply(ctx, 1, message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}))
	appends(message.Record{Kind: message.CommandHost, Host: "h01", Run: 1, Epoch: epoch, Checks: true, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()})
	newest()
	note("progress", "", c.Progress(message.Progress{Run: 1, Percent: 50, Message: "half"}))
	note("outcome", "", c.Outcome(message.Outcome{Run: 1, Kind: message.AfterHost, Host: "h01", Attempt: 1, OK: true, Text: "well"}))
	note("reply", "", c.Reply(ctx, 1, message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: message.Done}}))
	note("the same again", "", c.Reply(ctx, 1, message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: message.Done}}))
	note("give back", "", c.GiveBack(ctx))
	return made
}

// recording is a connection of a worker to a gate that writes the conversation
// down.
type recording struct {
	*process
	text bytes.Buffer
}

func (r *recording) add(e exchange) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	r.text.Write(append(line, '\n'))
}

func (r *recording) Call(ctx context.Context, q gate.Request) ([]byte, error) {
	response, err := r.process.Call(ctx, q)
	r.add(exchange{Request: &request{q.Verb, q.Worker, q.Incarnation, q.Protocol, q.Body}, Response: response})
	return response, err
}

func (r *recording) Send(kind gate.Telemetry, incarnation string, body []byte) error {
	r.add(exchange{Telemetry: body})
	return r.process.Send(kind, incarnation, body)
}

// TestConversation holds what this worker and this site say to each other against
// the fixture of protocol 1. Then it has the worker of the fixture call this site,
// and this worker call the site of the fixture.
func TestConversation(t *testing.T) {
	t.Parallel()
	var made []string
	inBubble(t, func(t *testing.T, r *rig) {
		conn := &recording{process: &process{gate: r.gate(r.log)}}
		conn.Client = gate.NewClient(gate.ClientOptions{Host: "h01", Incarnation: "I1"}, conn)
		r.log.Now = func() time.Time { return time.Now().UTC() }
		made = play(t.Context(), conn.Client, func(record message.Record) {
			r.add(record)
			synctest.Wait()
			conn.add(exchange{Append: &appended{record.Kind, record.Host, record.Run, record.Epoch, record.Checks, record.Body}})
		})
		formattest.Golden(t, conversation, conn.text.Bytes())
	})
	kept := readConversation(t, formattest.Read(t, conversation))
	inBubble(t, func(t *testing.T, r *rig) {
		r.log.Now = func() time.Time { return time.Now().UTC() }
		g := r.gate(r.log)
		for i, e := range kept {
			switch {
			case e.Append != nil:
				r.add(message.Record{Kind: e.Append.Kind, Host: e.Append.Host, Run: e.Append.Run, Epoch: e.Append.Epoch, Checks: e.Append.Checks, Body: []byte(e.Append.Body)})
				synctest.Wait()
			case e.Request != nil:
				q := gate.Request{Verb: e.Request.Verb, Worker: e.Request.Worker, Incarnation: e.Request.Incarnation, Protocol: e.Request.Protocol, Body: e.Request.Body}
				if response := g.Answer(t.Context(), "h01", q).Encode(); !bytes.Equal(response, e.Response) {
					t.Errorf("line %d: this site answers the worker of the fixture\n%s\nnot\n%s", i+1, response, e.Response)
				}
			}
		}
	})
	site := &keptSite{t: t, kept: kept}
	c := gate.NewClient(gate.ClientOptions{Host: "h01", Incarnation: "I1"}, site)
	if got := play(t.Context(), c, func(message.Record) {}); !slices.Equal(got, made) {
		t.Errorf("of the site of the fixture this worker makes\n%q\nnot\n%q", got, made)
	}
}

// keptSite answers as the site of a fixture did.
type keptSite struct {
	t    *testing.T
	kept []exchange
}

// next returns the next line in which the worker says something.
func (s *keptSite) next() exchange {
	for len(s.kept) > 0 && s.kept[0].Append != nil {
		s.kept = s.kept[1:]
	}
	if len(s.kept) == 0 {
		s.t.Fatal("the worker says more than in the fixture")
	}
	e := s.kept[0]
	s.kept = s.kept[1:]
	return e
}

func (s *keptSite) Call(_ context.Context, q gate.Request) ([]byte, error) {
	e := s.next()
	if e.Request == nil || !slices.Equal(e.Request.Verb, q.Verb) || e.Request.Worker != q.Worker || e.Request.Protocol != q.Protocol || !bytes.Equal(e.Request.Body, q.Body) {
		s.t.Errorf("this worker calls %+v, not %+v", q, e.Request)
	}
	return e.Response, nil
}

func (s *keptSite) Send(_ gate.Telemetry, _ string, body []byte) error {
	if e := s.next(); !bytes.Equal(e.Telemetry, body) {
		s.t.Errorf("this worker says %s, not %s", body, e.Telemetry)
	}
	return nil
}

func (*keptSite) Connected() bool { return true }
