package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
)

// TestTokenOfAnother checks that the file of one token is no good under the name of another.
func TestTokenOfAnother(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	file := func(text string) string {
		return filepath.Join(c.dir, "credentials", "tokens", principal.ID(text)+".json")
	}
	body, err := os.ReadFile(file(c.dev.Token))
	if err == nil {
		err = os.WriteFile(file("osu_other"), body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.want(c.call("GET", statePath, "", "Authorization", "Bearer osu_other"), 401, "is damaged; make a new token")
}

// TestEventsEndWithTheirToken checks that a stream of events ends soon after its token
// was withdrawn or has expired, and not before.
func TestEventsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	for name, kind := range map[string]struct {
		valid time.Duration
		spoil func(id string) error
	}{
		"withdrawn": {time.Hour, func(id string) error {
			c.want(c.call("DELETE", tokensPath+"/"+id, ""), 204, "")
			return nil
		}},
		"expired": {2 * time.Second, func(string) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var expires time.Time
			ended, opened := (<-chan struct{})(nil), false
			for valid := kind.valid; !opened; valid *= 2 { // On a busy machine it may expire before the stream is open.
				expires = time.Now().Add(valid)
				text, err := c.dev.Tokens.Add(principal.Token{Name: name, Tenant: "demo", Allow: []access.Role{access.Reads}, Expires: &expires})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if ended, opened = follow(t, c.dev.Endpoint+statePath+"/events", text); !opened && time.Since(begun) < valid {
					t.Fatal("a valid token opens no stream")
				}
			}
			select {
			case <-ended:
				if time.Now().Before(expires) {
					t.Fatal("the stream ends at once")
				}
			case <-time.After(time.Second):
			}
			all, err := c.dev.Tokens.List()
			if err != nil {
				t.Fatal(err)
			}
			for _, kept := range all {
				if kept.Value.Name == name {
					if err := kind.spoil(kept.Key); err != nil {
						t.Fatal(err)
					}
				}
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the stream outlives its token")
			}
		})
	}
}

// follow opens a stream of events, and returns a channel that is closed once it ends;
// false when the token is refused.
func follow(t *testing.T, url, token string) (ended <-chan struct{}, opened bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == http.StatusUnauthorized {
		_ = response.Body.Close()
		return nil, false
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the stream is answered %s", response.Status)
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		defer func() { _ = response.Body.Close() }()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		}
	}()
	return end, true
}

// TestMalformedChunk checks that a body that is no HTTP is the client's fault: it is not
// told to try again.
func TestMalformedChunk(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	for _, to := range []string{"PUT " + configPath, "POST " + statePath + "/start", "POST " + statePath + "/pause"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.dev.Endpoint, "http://")) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: site\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
			to, c.dev.Token)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s is answered %s", to, response.Status)
		}
		_ = response.Body.Close()
		_ = conn.Close()
	}
}
