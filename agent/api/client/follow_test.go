package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
)

// TestFollow checks that who follows is told of the situation, of a run with all its
// hosts though only those came that have changed, and of what has changed; and what is
// said of events that make no sense.
func TestFollow(t *testing.T) {
	t.Parallel()
	const (
		idle    = "event: situation\ndata: {\"status\":\"idle\"}\n\n"
		whole   = "event: run\ndata: {\"id\":2,\"hosts\":[{\"hostname\":\"h01\",\"status\":\"pending\"},{\"hostname\":\"h02\",\"status\":\"pending\"}]}\n\n"
		changed = "event: changes\ndata: {\"id\":2,\"phase\":\"upgrading\",\"hosts\":[{\"hostname\":\"h02\",\"status\":\"upgraded\"}]}\n\n"
		other   = "event: changes\ndata: {\"id\":3,\"hosts\":[]}\n\n"
		unknown = "event: changes\ndata: {\"id\":2,\"hosts\":[{\"hostname\":\"h03\"}]}\n\n"
	)
	for name, row := range map[string]struct {
		stream, want, err string
	}{
		"all":               {idle + whole + changed, "idle; 2  h01=pending h02=pending, new h01 h02; 2 upgrading h01=pending h02=upgraded, new h02; ", ""},
		"twice":             {idle + idle + whole + whole, "idle; 2  h01=pending h02=pending, new h01 h02; ", ""},
		"another kind":      {"event: weather\ndata: {}\n\n" + idle, "idle; ", ""},
		"changes first":     {changed, "", "tells what has changed in run 2, which was not told before"},
		"of another run":    {whole + other, "2  h01=pending h02=pending, new h01 h02; ", "tells what has changed in run 3, which was not told before"},
		"of another host":   {whole + unknown, "2  h01=pending h02=pending, new h01 h02; ", `tells of host "h03", which is not in run 2`},
		"no situation":      {"event: situation\ndata: []\n\n", "", "is not a situation: "},
		"changes of no run": {whole + "event: changes\ndata: 7\n\n", "2  h01=pending h02=pending, new h01 h02; ", "is not a run: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.Inject("GET", "/events", fakeapi.Raw(200, "text/event-stream", row.stream), fakeapi.Status(410, "enough"))
			var told strings.Builder
			err := connect(t, api).Follow(t.Context(), "acme", "", func(n News) bool {
				if n.Situation != nil {
					fmt.Fprintf(&told, "%s; ", n.Situation.Status)
					return true
				}
				fmt.Fprintf(&told, "%d %s", n.Run.ID, n.Run.Phase)
				for _, h := range n.Run.Hosts {
					fmt.Fprintf(&told, " %s=%s", h.Hostname, h.Status)
				}
				told.WriteString(", new")
				for _, h := range n.Hosts {
					told.WriteString(" " + h.Hostname)
				}
				told.WriteString("; ")
				return true
			})
			if row.err == "" {
				row.err = "410"
			}
			wantEqual(t, "told", told.String(), row.want)
			wantError(t, err, row.err)
			wantEqual(t, "query", api.Requests()[0].Query.Get("hosts"), "changed")
		})
	}
}
