package check

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestPrometheus checks what a query that returns something, a value within and beyond its
// bounds, and a server that does not answer come to.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := map[string]string{
			"none": `[]`, "alerts": `[{"metric":{"__name__":"ALERTS","alertname":"DiskFull"},"value":[1,"1"]}]`,
		}[r.FormValue("query")]
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":` + result + `}}`))
	}))
	t.Cleanup(server.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, row := range map[string]struct {
		check rollout.Check
		want  string
	}{
		"nothing":     {rollout.Check{URL: server.URL, Query: "none"}, ""},
		"an alert":    {rollout.Check{URL: server.URL, Query: "alerts"}, fails(`the query returned 1 series, and should return nothing: ALERTS{alertname="DiskFull"} is 1`)},
		"below":       {rollout.Check{URL: server.URL, Query: "alerts", Below: "1.5"}, ""},
		"not above":   {rollout.Check{URL: server.URL, Query: "alerts", Above: "1"}, fails(`ALERTS{alertname="DiskFull"} is 1, which is not above 1`)},
		"no server":   {rollout.Check{URL: gone.URL, Query: "none"}, fails("dial tcp " + strings.TrimPrefix(gone.URL, "http://") + ": connect: connection refused")},
		"not the API": {rollout.Check{URL: server.URL, Query: "x"}, fails("the answer is not one of Prometheus: it is no JSON object; the URL is that of the server, without /api/v1/query")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.check.Type = rollout.Prometheus
			check(t, &Runner{}, single(row.check), row.want)
		})
	}
	local := &Runner{Local: &dial.Rule{}}
	if got := local.Run(t.Context(), single(rollout.Check{Type: rollout.Prometheus, URL: server.URL, Query: "none"})); got.OK || !strings.Contains(got.Text, dial.Flag) {
		t.Errorf("a site that allows no local address says %q", got.Text)
	}
}

// TestAsk checks that a query which is none of a task is asked once, and what its answer comes to.
func TestAsk(t *testing.T) {
	t.Parallel()
	asked, result := 0, `[{"metric":{"__name__":"up"},"value":[1,"0"]}]`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":` + result + `}}`))
	}))
	t.Cleanup(server.Close)
	r, query := &Runner{}, rollout.Query{URL: server.URL, Query: "up == 0"}
	if err := r.Ask(t.Context(), query.Check()); err == nil || err.Error() != "the query returned 1 series, and should return nothing: up is 0" || asked != 1 {
		t.Errorf("asked %d times it is %v", asked, err)
	}
	if result = `[]`; r.Ask(t.Context(), query.Check()) != nil {
		t.Error("a query that returns nothing has failed")
	}
	if err := r.Ask(t.Context(), rollout.Check{Type: "x"}); err == nil {
		t.Error("a type that nobody knows passes")
	}
}

// TestToken checks which files are used as tokens, and that none goes to a server that it is not
// named for.
func TestToken(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := &Runner{Scripts: folder}
	if err := os.Mkdir(filepath.Join(folder, Tokens), 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(server, token string, mode os.FileMode) {
		path := filepath.Join(folder, Tokens, server)
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	put("prometheus:443", "secret\n", 0o640)
	put("open:443", "secret", 0o644)
	put("empty:443", "\n", 0o600)
	put("words:443", "a b", 0o600)
	for server, want := range map[string]string{
		"prometheus:443":  "secret",
		"prometheus:9090": "",
		"other:443":       "",
		"open:443":        "the token for open:443 is not used: its file has mode 0644; others should be able neither to read nor to write it, such as 0640",
		"empty:443":       "the token for empty:443 is not used: its file should have one word, the token",
		"words:443":       "the token for words:443 is not used: its file should have one word, the token",
	} {
		got, err := r.token(server)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", server, got, want)
		}
	}
	if got, err := (&Runner{}).token("prometheus:443"); got != "" || err != nil {
		t.Errorf("without a folder of scripts: got %q, %v", got, err)
	}
}
