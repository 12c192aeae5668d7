package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// scripted is a controller that shows one snapshot.
type scripted struct {
	broken
	shown v1.Snapshot
}

func (s *scripted) Snapshot(context.Context) (v1.Snapshot, error) { return s.shown, nil }

// page is the response of a stream.
type page struct{ *httptest.ResponseRecorder }

// SetWriteDeadline implements what http.ResponseController looks for.
func (page) SetWriteDeadline(time.Time) error { return nil }

// FlushError implements it as well.
func (page) FlushError() error { return nil }

// heard returns the events that a stream has sent since the last call, each as its
// name and the hosts in it.
func heard(t *testing.T, to page) []string {
	t.Helper()
	var told []string
	for text := range strings.SplitSeq(strings.TrimSpace(to.Body.String()), "\n\n") {
		if text == "" {
			continue
		}
		lines := strings.SplitN(text, "\n", 3)
		var r v1.Run
		word := strings.TrimPrefix(lines[0], "event: ")
		if word == eventSituation {
			told = append(told, word)
			continue
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[2], "data: ")), &r); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		for _, h := range r.Hosts {
			word += " " + h.Hostname + "=" + h.Status
		}
		told = append(told, word)
	}
	to.Body.Reset()
	return told
}

// TestStreamOfChanges checks that a client which keeps the hosts of a run is sent those
// that have changed, all hosts of another run, and nothing when nothing has changed;
// and that every other client is sent runs as a whole.
func TestStreamOfChanges(t *testing.T) {
	t.Parallel()
	start, later := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 1, 0, 5, 0, time.UTC)
	host := func(name, status string, since, end time.Time) v1.RunHost {
		return v1.RunHost{Hostname: name, Status: status, Since: &since, ExpectedEnd: &end}
	}
	rows := []struct {
		what           string
		shown          v1.Snapshot
		changes, whole string
	}{
		{"no run yet", v1.Snapshot{Situation: v1.Situation{Status: "idle"}}, "[situation]", "[situation]"},
		{
			"the first run",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 2, Hosts: []v1.RunHost{host("h01", "preparing", start, later), host("h02", "preparing", start, later)}}},
			"[situation run h01=preparing h02=preparing]", "[situation run h01=preparing h02=preparing]",
		},
		{
			"nothing",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 2, Hosts: []v1.RunHost{host("h01", "preparing", start, later), host("h02", "preparing", start, later)}}},
			"[]", "[]",
		},
		{
			"what is expected of hosts",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 2, Hosts: []v1.RunHost{host("h01", "preparing", start, start), host("h02", "preparing", start, start)}}},
			"[]", "[run h01=preparing h02=preparing]",
		},
		{
			"one host",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 2, Hosts: []v1.RunHost{host("h01", "preparing", start, start), host("h02", "prepared", later, start)}}},
			"[changes h02=prepared]", "[run h01=preparing h02=prepared]",
		},
		{
			"nothing after that",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 2, Hosts: []v1.RunHost{host("h01", "preparing", start, start), host("h02", "prepared", later, start)}}},
			"[]", "[]",
		},
		{
			"the stage",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 2, Phase: "upgrading", Hosts: []v1.RunHost{host("h01", "preparing", start, start), host("h02", "prepared", later, start)}}},
			"[changes]", "[run h01=preparing h02=prepared]",
		},
		{
			"a host that joins",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 2, Hosts: []v1.RunHost{host("h01", "preparing", start, start), host("h02", "prepared", later, start), host("h03", "skipped", later, start)}}},
			"[run h01=preparing h02=prepared h03=skipped]", "[run h01=preparing h02=prepared h03=skipped]",
		},
		{
			"another run",
			v1.Snapshot{Situation: v1.Situation{Status: "preparing"}, Run: &v1.Run{ID: 9, Hosts: []v1.RunHost{host("h01", "preparing", start, start), host("h02", "prepared", later, start), host("h03", "skipped", later, start)}}},
			"[run h01=preparing h02=prepared h03=skipped]", "[run h01=preparing h02=prepared h03=skipped]",
		},
	}
	for _, changes := range []bool{true, false} {
		controller := &scripted{}
		to := page{httptest.NewRecorder()}
		st := &stream{
			call: &call{Request: httptest.NewRequest("GET", "/", http.NoBody), w: to, controller: controller}, out: http.NewResponseController(to), changes: changes,
		}
		for _, row := range rows {
			controller.shown = row.shown
			if err := st.send(); err != nil {
				t.Fatal(err)
			}
			want := row.whole
			if changes {
				want = row.changes
			}
			if got := fmt.Sprint(heard(t, to)); got != want {
				t.Errorf("with changes %t, %s: sent is %s, not %s", changes, row.what, got, want)
			}
		}
	}
}

// TestStreamParameter checks what may be asked of a stream.
func TestStreamParameter(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads)
	s.want("GET", acmeState+"/events?hosts=all", "", 400, `use \"changed\" or omit the parameter`)
}
