package api

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// many is a controller with many hosts.
type many struct{ memory }

func (*many) Hosts(context.Context, v1.HostFilter) ([]v1.Host, error) {
	hosts := make([]v1.Host, 100)
	for i := range hosts {
		hosts[i] = v1.Host{Hostname: "h", Application: "a"}
	}
	return hosts, nil
}

// TestCompressed checks that a large answer is compressed for who takes it, a small one and
// the event stream never.
func TestCompressed(t *testing.T) {
	t.Parallel()
	s := serve(t, &many{}, access.Reads)
	get := func(path, takes string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+s.token)
		r.Header.Set("Accept-Encoding", takes)
		w := httptest.NewRecorder()
		s.bare.ServeHTTP(w, r)
		return w
	}
	whole, packed := get(acmeState+"/hosts", ""), get(acmeState+"/hosts", "gzip")
	if whole.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(packed.Header().Get("Vary"), "Accept-Encoding") {
		t.Fatalf("encoded %q and %q, Vary %q", whole.Header().Get("Content-Encoding"), packed.Header().Get("Content-Encoding"), packed.Header().Get("Vary"))
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || string(text) != whole.Body.String() {
		t.Errorf("unpacked is %d bytes, %v; want %d", len(text), err, whole.Body.Len())
	}
	if small := get("/healthz", "gzip"); small.Header().Get("Content-Encoding") != "" {
		t.Error("a small answer is compressed")
	}
	for _, r := range routes() {
		if r.streams() != strings.HasSuffix(r.path, "/events") {
			t.Errorf("%s %s: streams is %t", r.method, r.path, r.streams())
		}
	}
}

// TestRequestID checks that each answer names its request, by the client's own id if that
// can be logged.
func TestRequestID(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads)
	for sent, kept := range map[string]bool{"build-17.a_b:c": true, "": false, "a b": false, "a\"b": false, strings.Repeat("x", 129): false} {
		got := s.want("GET", "/v1/config/nothing", "", 404, "", "X-Request-Id", sent).Get("X-Request-Id")
		if got == "" || (got == sent) != kept {
			t.Errorf("the id of a request with id %q is %q", sent, got)
		}
	}
}

// TestContentCoding checks that a compressed body is refused by name.
func TestContentCoding(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads, access.Writes)
	s.want("PUT", rolloutPath, "{}", 415, "Content-Encoding", "Content-Encoding", "gzip")
	s.want("PUT", rolloutPath, "{}", 201, "", "Content-Encoding", "identity")
	s.want("PUT", rolloutPath, "{}", 415, "is not a content type that is read here", "Content-Type", "text/plain")
}
