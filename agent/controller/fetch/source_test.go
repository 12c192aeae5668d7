package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// secretPath is the path of a calendar that only those know who share it.
const secretPath = "/swordfish/freeze.ics"

// source is a real https server.
type source struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Pointer[http.Request]
}

func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Store(r)
		(*s.answer.Load())(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// client trusts the server's certificate if it is to, and may connect to its address if local.
func (s *source) client(t *testing.T, trusts, local bool) *http.Client {
	t.Helper()
	var rule dial.Rule
	if local {
		var err error
		if rule, err = dial.Parse([]string{dial.Any}); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	if trusts {
		roots.AddCert(s.Certificate())
	}
	return newClient(rule, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
}

func (s *source) target() Target {
	return Target{Tenant: "acme", Name: "xmas", Calendar: v1.Calendar{Kind: "freeze", URL: s.URL + secretPath}, Revision: 1, Read: true}
}

// TestAsk checks what each answer of a source comes to.
func TestAsk(t *testing.T) {
	t.Parallel()
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != secretPath {
				_, _ = io.WriteString(w, ics("20261221 there"))
				return
			}
			http.Redirect(w, r, to, http.StatusFound)
		}
	}
	for _, row := range []struct {
		name                string
		answer              http.HandlerFunc
		distrusted, foreign bool
		why                 string
	}{
		{name: "a calendar", answer: text(ics("20261221 a"))},
		{name: "a redirect on the same host", answer: redirect("/other.ics?secret=swordfish")},
		{name: "a redirect to another host", answer: redirect("https://evil.example/swordfish"), why: "the server redirects to another host, evil.example, which is not followed; use the address there"},
		{name: "a redirect to another port", answer: redirect("https://127.0.0.1:1/swordfish"), why: "redirects to another host, 127.0.0.1:1"},
		{name: "a redirect to http", answer: redirect("http://calendar.example/swordfish"), why: "redirects to http://calendar.example, which is not https"},
		{name: "a redirect to itself", answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, secretPath, http.StatusFound) }, why: "has redirected more than 5 times"},
		{name: "huge", answer: func(w http.ResponseWriter, _ *http.Request) {
			line := []byte(strings.Repeat("X", 1<<10))
			for range 4 << 10 {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, why: "longer than 1048576 bytes"},
		{name: "cut off", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "BEGIN:VCALENDAR\r\n")
			panic(http.ErrAbortHandler)
		}, why: "EOF"},
		{name: "a long header", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
		}, why: "header is too long"},
		{name: "the certificate is not trusted", answer: text(ics()), distrusted: true, why: "certificate"},
		{name: "an address of this machine", answer: text(ics()), foreign: true, why: "osupgrade-agent serve --allow-local 127.0.0.1:"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t)
			s.answer.Store(&row.answer)
			got := After(s.target(), nil, ask(t.Context(), s.client(t, !row.distrusted, !row.foreign), "osupgrade-agent/test", s.target(), nil), noon)
			if !strings.Contains(got.Error, row.why) || (got.Error == "") != (row.why == "") {
				t.Errorf("the error is %q; want %q", got.Error, row.why)
			}
			if strings.Contains(got.Error, "swordfish") {
				t.Errorf("the error %q repeats the secret part of the URL", got.Error)
			}
			if row.why == "" && len(got.Events) != 1 {
				t.Errorf("fetched are %+v", got.Events)
			}
		})
	}
}

// TestAskWaitsForNobodyForLong checks that a source which sends its answer slowly, or none, is
// given up. It sends a little again and again, so that only a limit of the whole ends it.
func TestAskWaitsForNobodyForLong(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "X")
			_ = http.NewResponseController(w).Flush()
		}
	})
	s.answer.Store(&slow)
	client := s.client(t, true, true)
	client.Transport = endless{client.Transport}
	client.Timeout = 200 * time.Millisecond
	got := ask(t.Context(), client, "osupgrade-agent/test", s.target(), nil)
	if got.Err != "the server has not answered within 200ms" {
		t.Errorf("it is answered %+v", got)
	}
}

// endless has no answer end by its length.
type endless struct{ http.RoundTripper }

func (e endless) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = dripping{response.Body}
	}
	return response, err
}

// dripping is read a byte at a time, and each is thrown away.
type dripping struct{ io.ReadCloser }

func (d dripping) Read(p []byte) (int, error) {
	_, err := d.ReadCloser.Read(p[:1])
	return 0, err
}

// TestAskAgain checks that a source is told what the site has, and that of another it is not.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		w.Header().Set("Last-Modified", "Tue, 24 Nov 2026 12:00:00 GMT")
		if r.Header.Get("If-None-Match") == `"a"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, ics("20261221 a"))
	})
	s.answer.Store(&answer)
	client := s.client(t, true, true)
	first := After(s.target(), nil, ask(t.Context(), client, "osupgrade-agent/test", s.target(), nil), noon)
	if asked := s.asked.Load(); asked.Header.Get("If-None-Match") != "" || asked.UserAgent() != "osupgrade-agent/test" || asked.Header.Get("Authorization") != "" {
		t.Errorf("it is asked %+v", asked.Header)
	}
	second := After(s.target(), &first, ask(t.Context(), client, "osupgrade-agent/test", s.target(), &first), noon.Add(time.Hour))
	if asked := s.asked.Load().Header; asked.Get("If-None-Match") != `"a"` || asked.Get("If-Modified-Since") == "" {
		t.Errorf("it is asked %+v", asked)
	}
	if second.Error != "" || len(second.Events) != 1 || !second.ChangedAt.Equal(noon) || !second.FetchedAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("after 304 the copy is %+v", second)
	}
	first.Source = "https://other.example/"
	ask(t.Context(), client, "osupgrade-agent/test", s.target(), &first)
	if tag := s.asked.Load().Header.Get("If-None-Match"); tag != "" {
		t.Errorf("it is asked whether the calendar of another source has changed: %s", tag)
	}
}

// FuzzAnswer checks that whatever a source answers, the events that were fetched stay or are
// replaced by a whole calendar that can be used.
func FuzzAnswer(f *testing.F) {
	f.Add(200, ics("20261221 a"), "text/calendar")
	f.Add(200, "<html>", "text/html")
	f.Add(304, "", "")
	freeze := target("freeze", "")
	kept := After(freeze, nil, good(ics("20261221 first")), noon)
	f.Fuzz(func(t *testing.T, status int, body, contentType string) {
		got := After(freeze, &kept, Answer{Status: status, Body: body, ContentType: contentType}, noon.Add(time.Hour))
		inForce, known := got.In(freeze.Calendar)
		if _, wrong := inForce.Parse("xmas"); !known || len(wrong) > 0 {
			t.Fatalf("in force is %+v: %v", inForce, wrong)
		}
		if got.Error != "" && fmt.Sprint(got.Events) != fmt.Sprint(kept.Events) {
			t.Fatalf("an answer that cannot be used (%s) replaces the events", got.Error)
		}
		if len(got.Error) > maxError+10 || !got.Next.After(noon.Add(time.Hour)) {
			t.Fatalf("the copy is %+v", got)
		}
	})
}

// TestLocalRule checks that a name of this machine is refused like its address.
func TestLocalRule(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s.answer.Store(&answer)
	at := s.target()
	at.Calendar.URL = "https://localhost:" + fmt.Sprint(netip.MustParseAddrPort(s.Listener.Addr().String()).Port()) + secretPath
	got := ask(t.Context(), s.client(t, true, false), "osupgrade-agent/test", at, nil)
	if !strings.Contains(got.Err, "--allow-local") || s.asked.Load() != nil {
		t.Errorf("it is answered %+v", got)
	}
}
