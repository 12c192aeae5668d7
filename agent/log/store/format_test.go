package store_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// outputOf7 is the output of an action of run 7.
var outputOf7 = report.ID{Kind: report.Output, Run: 7, Part: "upgrade"}

// kinds are all that the store keeps: how each is written and read, and where.
var kinds = []struct {
	name, subject string
	// header tells that the number of the format stands in a header, guards that a
	// write looks at what is there first.
	header, guards bool
	write          func(*testing.T, *store.Store) error
	read           func(*testing.T, *store.Store) (any, error)
}{
	{
		name: "configuration", subject: "$KV.osu-intent.acme._.config",
		write: func(t *testing.T, s *store.Store) error {
			_, err := s.PutConfig(t.Context(), "acme", v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}}}}, store.Revision{})
			return err
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			value, _, err := s.Config(t.Context(), "acme")
			return value.Value, err
		},
	},
	{
		name: "rollout", subject: "$KV.osu-intent.acme._.rollout",
		write: func(t *testing.T, s *store.Store) error {
			_, err := s.PutRollout(t.Context(), "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{}}, store.Revision{})
			return err
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			value, _, err := s.Rollout(t.Context(), "acme")
			return value.Value, err
		},
	},
	{
		name: "calendar", subject: "$KV.osu-intent.acme._.calendar.freeze",
		write: func(t *testing.T, s *store.Store) error {
			_, err := s.PutCalendar(t.Context(), "acme", "freeze", v1.Kept[v1.Calendar]{Value: v1.Calendar{Kind: "freeze"}}, store.Revision{})
			return err
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			value, _, err := s.Calendar(t.Context(), "acme", "freeze")
			return value.Value, err
		},
	},
	{
		name: "host", subject: "$KV.osu-hosts.acme.h01",
		write: func(t *testing.T, s *store.Store) error {
			return s.PutHost(t.Context(), "h01", store.Host{Tenant: "acme", Name: "h01", Application: "app", Labels: map[string]string{"ring": "0"}})
		},
		read: func(t *testing.T, s *store.Store) (any, error) { return s.Hosts(t.Context(), "acme") },
	},
	{
		name: "last-runs", subject: "$KV.osu-hosts.acme._.last-runs",
		write: func(t *testing.T, s *store.Store) error {
			at := time.Date(2026, 11, 24, 4, 0, 0, 0, time.UTC)
			ran := v1.HostRun{ID: 7, Phase: "finished", Result: "partial", Status: "failed", Class: "space", RolledBack: true, EndedAt: &at}
			return errors.Join(s.PutHost(t.Context(), "h01", store.Host{Tenant: "acme", Name: "h01", Application: "app"}),
				s.PutLastRuns(t.Context(), "acme", store.LastRuns([]store.Host{{Name: "h01", LastRun: ran, MissedSince: at}})))
		},
		read: func(t *testing.T, s *store.Store) (any, error) { return s.Hosts(t.Context(), "acme") },
	},
	{
		name: "versions", subject: "$KV.osu-versions.acme.h01", guards: true,
		write: func(t *testing.T, s *store.Store) error {
			return s.PutReport(t.Context(), "acme", "h01", report.Versions.Of([]byte(`{"format":"7","kernel":"6.1"}`)))
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			kept, err := s.Report(t.Context(), "acme", "h01", versions)
			return string(kept.Body), err
		},
	},
	{
		name: "output", subject: "osu-output.acme.7.h01.upgrade", header: true, guards: true,
		write: func(t *testing.T, s *store.Store) error {
			return s.PutReport(t.Context(), "acme", "h01", report.Report{ID: outputOf7, Body: []byte(`{"progress":50}`), Cut: true})
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			kept, err := s.Report(t.Context(), "acme", "h01", outputOf7)
			kept.At = time.Time{}
			return kept, err
		},
	},
	{
		name: "webhook", subject: "$KV.osu-intent.acme._.webhook.chat",
		write: func(t *testing.T, s *store.Store) error {
			w := store.KeptWebhook{Webhook: v1.Webhook{URL: "https://a.example/", Secret: "whsec_never"}, Sealed: "c2VhbGVk", Created: time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC), After: 7}
			_, err := s.PutWebhook(t.Context(), "acme", "chat", w, store.Revision{})
			return err
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			value, _, err := s.Webhook(t.Context(), "acme", "chat")
			return value, err
		},
	},
	{
		name: "copy", subject: "$KV.osu-intent.acme._.copy.holidays",
		write: func(t *testing.T, s *store.Store) error {
			at := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
			_, err := s.PutCalendarCopy(t.Context(), "acme", "holidays", v1.CalendarCopy{
				URL: "https://a.example/", Revision: 7, Source: "https://a.example/", Events: []v1.Event{{Start: "2026-12-24", AllDay: true}}, FetchedAt: at, ChangedAt: at,
				ETag: `"a"`, Error: "no", Tries: 1, FailingSince: at, Next: at.Add(time.Minute),
			}, store.Revision{})
			return err
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			value, _, err := s.CalendarCopy(t.Context(), "acme", "holidays")
			return value, err
		},
	},
	{
		name: "webhook-state", subject: "$KV.osu-webhooks.acme.chat",
		write: func(t *testing.T, s *store.Store) error {
			at := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
			dead := v1.DeadLetter{News: v1.News{ID: "msg_7", Type: v1.NewsRunOpened, Timestamp: at}, At: at, Error: "no", Tries: 8}
			return s.PutWebhookState(t.Context(), "acme", "chat", store.WebhookState{Created: at, Done: 7, Tries: 1, Error: "no", Next: at, Dead: []v1.DeadLetter{dead}})
		},
		read: func(t *testing.T, s *store.Store) (any, error) { return s.WebhookState(t.Context(), "acme", "chat") },
	},
	{
		name: "news", subject: "osu-news.acme.msg_7", header: true,
		write: func(t *testing.T, s *store.Store) error {
			_, err := s.PutNews(t.Context(), "acme", v1.News{ID: "msg_7", Type: v1.NewsRunOpened, Timestamp: time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC), Data: v1.NewsData{Tenant: "acme", Text: "Run 7.", Run: 7}}, 7)
			return err
		},
		read: func(t *testing.T, s *store.Store) (any, error) {
			all, err := s.News(t.Context(), "acme")
			if len(all) == 0 {
				return nil, err
			}
			newest := all[len(all)-1]
			newest.Number = 0
			return newest, err
		},
	},
	{
		name: "run", subject: "osu-runs.acme.7", header: true, guards: true,
		write: func(t *testing.T, s *store.Store) error { return s.PutRun(t.Context(), "acme", endedRun(7), 12) },
		read: func(t *testing.T, s *store.Store) (any, error) {
			run, err := s.Run(t.Context(), "acme", 7)
			listed := v1.Run{}
			return []any{run, &listed}, errors.Join(err, s.Runs(t.Context(), "acme", func(r v1.Run) bool {
				listed = r
				return false
			}))
		},
	},
}

// storedMessage is how a fixture holds what is stored. Gzip is a body that is
// stored compressed: how well differs between versions of Go.
type storedMessage struct {
	Header map[string][]string `json:"header,omitempty"`
	Body   json.RawMessage     `json:"body,omitempty"`
	Gzip   json.RawMessage     `json:"gzip,omitempty"`
}

// last returns the last message of a subject, without what the server adds.
func last(t *testing.T, nc *nats.Conn, subject string) *nats.Msg {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	name, err := js.StreamNameBySubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := stream.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	msg := nats.NewMsg(subject)
	msg.Data = raw.Data
	for name, values := range raw.Header {
		if strings.HasPrefix(name, "Osu-") {
			msg.Header[name] = values
		}
	}
	return msg
}

func fixtureOf(t *testing.T, msg *nats.Msg) []byte {
	t.Helper()
	m := storedMessage{Header: msg.Header, Body: msg.Data}
	if reader, err := gzip.NewReader(bytes.NewReader(msg.Data)); err == nil {
		m.Body = nil
		if m.Gzip, err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func publish(t *testing.T, nc *nats.Conn, msg *nats.Msg) {
	t.Helper()
	if _, err := nc.RequestMsg(msg, 10*time.Second); err != nil {
		t.Fatal(err)
	}
}

// TestFormats holds all that the store writes against the fixtures of format 1,
// and reads these, alone and with a member more. What is of format 2 is refused
// by name: it is not damaged.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			writer, from := openWith(t)
			if err := kind.write(t, writer); err != nil {
				t.Fatal(err)
			}
			want, err := kind.read(t, writer)
			if err != nil {
				t.Fatal(err)
			}
			var kept storedMessage
			text := formattest.Golden(t, "testdata/format1/"+kind.name+".json", fixtureOf(t, last(t, from, kind.subject)))
			if err := json.Unmarshal(text, &kept); err != nil {
				t.Fatal(err)
			}
			msg := &nats.Msg{Subject: kind.subject, Header: kept.Header, Data: kept.Body}
			if kept.Gzip != nil {
				var packed bytes.Buffer
				w := gzip.NewWriter(&packed)
				if _, err := w.Write(kept.Gzip); errors.Join(err, w.Close()) != nil {
					t.Fatal(err)
				}
				msg.Data = packed.Bytes()
			}
			reader, to := openWith(t)
			// The streams of a tenant are made when they are first needed.
			if _, err := reader.Run(t.Context(), "acme", 1); !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if _, err := reader.Report(t.Context(), "acme", "h01", outputOf7); !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if _, err := reader.News(t.Context(), "acme"); err != nil {
				t.Fatal(err)
			}
			// Last runs are those of hosts that are known.
			if err := reader.PutHost(t.Context(), "h01", store.Host{Tenant: "acme", Name: "h01", Application: "app"}); err != nil {
				t.Fatal(err)
			}
			check := func(what string) {
				publish(t, to, msg)
				if got, err := kind.read(t, reader); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s is read as %+v, %v", what, got, err)
				}
			}
			check("the fixture")
			if kind.header {
				msg.Header.Set("Osu-More", "1")
				check("the fixture with a header more")
				msg.Header.Set("Osu-Format", "2")
			} else {
				msg.Data = bytes.Replace(kept.Body, []byte(`"format":1`), []byte(`"format":1,"more":{"of":1}`), 1)
				check("the fixture with a member more")
				msg.Data = bytes.Replace(kept.Body, []byte(`"format":1`), []byte(`"format":2`), 1)
			}
			publish(t, to, msg)
			if got, err := kind.read(t, reader); !format.IsUnsupported(err) || errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "written by format 2, this version reads 1") {
				t.Errorf("what is of format 2 is read as %+v, %v", got, err)
			}
			if err := kind.write(t, reader); kind.guards && !format.IsUnsupported(err) {
				t.Errorf("what is of format 2 is written over: %v", err)
			}
		})
	}
}
