package api_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// events reads an event stream up to the first event that has a name, and returns the
// names and ids of the events until then.
func (c *caller) events(since, until string) (names []string, id string) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.dev.Endpoint+statePath+"/events", http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.dev.Token)
	if since != "" {
		request.Header.Set("Last-Event-ID", since)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			names = append(names, value)
		case field == "id":
			id = value
		case lines.Text() == "" && len(names) > 0 && names[len(names)-1] == until:
			return names, id
		}
	}
	c.t.Fatalf("the stream ended after %q: %v", names, lines.Err())
	return nil, ""
}

// TestLastEventID checks that the id of an event means the same to a site that has been
// started again, and that an id of another log is told to be one.
func TestLastEventID(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	names, id := c.events("", "situation")
	if strings.Join(names, " ") != "situation" || id == "" {
		t.Fatalf("the stream begins with %q, id %q", names, id)
	}
	if err := c.dev.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := dev.Start(t.Context(), dev.Options{Dir: c.dir})
	if err != nil {
		t.Fatal(err)
	}
	c.dev = again
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	names, now := c.events(id, "situation")
	if strings.Join(names, " ") != "situation" || now != id {
		t.Errorf("after a restart the stream begins with %q, id %q; want that of before, %q", names, now, id)
	}
	for _, foreign := range []string{"x" + id, id + "1", "42", strings.Repeat("9", 5000)} {
		if names, _ := c.events(foreign, "situation"); strings.Join(names, " ") != "reset situation" {
			t.Errorf("with Last-Event-ID %.80q the stream begins with %q; want reset", foreign, names)
		}
	}
}
