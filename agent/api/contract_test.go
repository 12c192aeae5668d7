package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

// TestContract plays literal HTTP exchanges with a real agent: each path, method, parameter
// and status of Avassa's page "Subtenant OS upgrade management".
// A file of testdata/contract is one conversation. A line that begins with ">" is sent, one
// that begins with "<" is received, and the rest is for people. Of an answer the status
// line and the headers that are written there are compared, and its body. The first ETag
// that is received is {etag1} from then on, the second {etag2}.
func TestContract(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/contract/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name) //nolint:gosec // The name is from a folder of the tests.
			if err != nil {
				t.Fatal(err)
			}
			c := &conversation{caller: newCaller(t, 2)}
			c.root = strings.TrimPrefix(c.bearer("root", access.AnyTenant, access.Admin), "Bearer ")
			for _, exchange := range exchanges(string(text)) {
				c.play(exchange.sent, exchange.received)
			}
		})
	}
}

// ofThePage are the statuses of each operation of Avassa's page, by method and path. 503 is not
// among them: TestUnready has it, of parts that do not answer.
var ofThePage = map[string]string{
	"GET /v1/config/tenants/{tenant}/os-upgrade":    "200 304 400 401 403 404 412",
	"PUT /v1/config/tenants/{tenant}/os-upgrade":    "201 204 400 401 403 404 412",
	"PATCH /v1/config/tenants/{tenant}/os-upgrade":  "204 400 401 403 404 412",
	"DELETE /v1/config/tenants/{tenant}/os-upgrade": "204 400 401 403 404 412",
	"GET /v1/state/tenants/{tenant}/os-upgrade":     "200 400 401 403 404",
}

// parametersOfThePage are the query parameters of each operation.
var parametersOfThePage = map[string]string{
	"GET /v1/config/tenants/{tenant}/os-upgrade":    "fields validate",
	"PUT /v1/config/tenants/{tenant}/os-upgrade":    "validate",
	"PATCH /v1/config/tenants/{tenant}/os-upgrade":  "validate",
	"DELETE /v1/config/tenants/{tenant}/os-upgrade": "validate",
	"GET /v1/state/tenants/{tenant}/os-upgrade":     "fields site content=config content=nonconfig",
}

// TestContractIsWhole checks that there is an exchange for each method, status and parameter
// of Avassa's page; a parameter counts with an answer of success.
func TestContractIsWhole(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/contract/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name) //nolint:gosec // The name is from a folder of the tests.
		if err != nil {
			t.Fatal(err)
		}
		for _, exchange := range exchanges(string(text)) {
			request, answer := strings.Fields(exchange.sent[0]), strings.Fields(exchange.received[0])
			target, err := url.Parse(request[1])
			if err != nil {
				t.Fatal(err)
			}
			segments := strings.Split(target.Path, "/")
			if len(segments) > 4 && segments[3] == "tenants" {
				segments[4] = "{tenant}"
			}
			operation := request[0] + " " + strings.Join(segments, "/")
			shown[operation+" "+answer[1]] = true
			for parameter, values := range target.Query() {
				if answer[1][0] == '2' {
					shown[operation+" "+parameter] = true
					shown[operation+" "+parameter+"="+values[0]] = true
				}
			}
		}
	}
	for _, table := range []map[string]string{ofThePage, parametersOfThePage} {
		for operation, all := range table {
			for one := range strings.FieldsSeq(all) {
				if !shown[operation+" "+one] {
					t.Errorf("no exchange shows %s %s", operation, one)
				}
			}
		}
	}
}

// exchange is what is sent and what is to be received, as lines.
type exchange struct{ sent, received []string }

func exchanges(text string) []exchange {
	var all []exchange
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch mark, rest, _ := strings.Cut(line+" ", " "); {
		case mark == ">":
			if len(all) == 0 || len(all[len(all)-1].received) > 0 {
				all = append(all, exchange{})
			}
			last := &all[len(all)-1]
			last.sent = append(last.sent, strings.TrimSuffix(rest, " "))
		case mark == "<" && len(all) > 0:
			last := &all[len(all)-1]
			last.received = append(last.received, strings.TrimSuffix(rest, " "))
		}
	}
	return all
}

// conversation plays exchanges one after the other.
type conversation struct {
	*caller
	// root is a token of an admin of all tenants, {root}.
	root  string
	etags []string
}

// filled returns text with the values of this agent.
func (c *conversation) filled(text string) string {
	pairs := []string{"{token}", c.dev.Token, "{root}", c.root}
	for i, tag := range c.etags {
		pairs = append(pairs, fmt.Sprintf("{etag%d}", i+1), tag)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// play sends a request byte for byte and compares the answer.
func (c *conversation) play(sent, received []string) {
	c.t.Helper()
	head, body := apart(sent)
	host := strings.TrimPrefix(c.dev.Endpoint, "http://")
	var request bytes.Buffer
	for _, line := range append(head, "Host: "+host, fmt.Sprintf("Content-Length: %d", len(body)), "Connection: close") {
		request.WriteString(c.filled(line) + "\r\n")
	}
	request.WriteString("\r\n" + body)
	connection, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", host)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	raw := bytes.Clone(request.Bytes())
	if _, err := connection.Write(raw); err != nil {
		c.t.Fatal(err)
	}
	parsed, err := http.ReadRequest(bufio.NewReader(&request))
	if err != nil {
		c.t.Fatalf("%q is no request: %v", head[0], err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), parsed)
	if err != nil {
		c.t.Fatalf("%s: %v", head[0], err)
	}
	defer func() { _ = response.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		c.t.Fatal(err)
	}
	if tag := response.Header.Get("ETag"); tag != "" && (len(c.etags) == 0 || c.etags[len(c.etags)-1] != tag) {
		c.etags = append(c.etags, tag)
	}
	c.compare(head[0], received, response, strings.TrimSpace(text.String()))
}

// compare compares an answer with what was to be received.
func (c *conversation) compare(what string, received []string, response *http.Response, text string) {
	c.t.Helper()
	head, body := apart(received)
	if got := response.Proto + " " + response.Status; got != head[0] {
		c.t.Errorf("%s: received %q with %s; want %q", what, got, text, head[0])
	}
	for _, line := range head[1:] {
		name, value, _ := strings.Cut(c.filled(line), ": ")
		if got := response.Header.Get(name); got != value {
			c.t.Errorf("%s: received %s %q; want %q", what, name, got, value)
		}
	}
	want := strings.TrimSpace(c.filled(body))
	if begin, cut := strings.CutSuffix(want, "..."); text != want && (!cut || !strings.HasPrefix(text, begin)) {
		c.t.Errorf("%s: received\n%s\nwant\n%s", what, text, want)
	}
}

// apart returns the lines of a head, and the body after an empty line.
func apart(lines []string) (head []string, body string) {
	for i, line := range lines {
		if line == "" {
			return lines[:i:i], strings.Join(lines[i+1:], "\n")
		}
	}
	return lines[:len(lines):len(lines)], ""
}
