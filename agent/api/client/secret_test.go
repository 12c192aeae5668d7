package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func TestCleanHidesEverySpelling(t *testing.T) {
	t.Parallel()
	s := newSecret(`a"b<c>&d/e`)
	for _, text := range []string{`a"b<c>&d/e`, `a\"b\u003cc\u003e\u0026d/e`, "a%22b%3Cc%3E%26d%2Fe", "a%22b%3Cc%3E&d%2Fe"} {
		wantEqual(t, text, s.clean("x "+text+" y"), "x (token) y")
	}
	wantEqual(t, "controls", s.clean("\x1b[2Ja\r\n\tb\x00c\u202e"), "[2Ja b c")
}

// echo answers with the token in every place that a server has.
func echo(status int) fakeapi.Fault {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			w.Header().Set("Location", "http://elsewhere.example/?token="+token)
			w.Header().Set("Content-Type", token)
			w.Header().Set("X-Request-Id", token)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "no such token: %s", token)
		})
	}
}

func TestTokenIsNeverShown(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 302, 400, 401, 403, 404, 412, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var told strings.Builder
			api := fakeapi.New(t)
			c := connect(t, api, retries(-1), func(o *Options) {
				o.Debug = func(_ context.Context, message string, fields map[string]any) {
					mu.Lock()
					defer mu.Unlock()
					_, _ = fmt.Fprintln(&told, message, fields)
				}
			})
			say := func(what string, err error) {
				t.Helper()
				if err == nil {
					t.Errorf("%s: there is no error", what)
				}
				e, _ := errors.AsType[*Error](err)
				mu.Lock()
				defer mu.Unlock()
				_, _ = fmt.Fprintf(&told, "%v %+v %+v\n", err, err, e)
			}
			api.Inject("", "/hosts", echo(status), fakeapi.Cut())
			api.Inject("", "/start", echo(status))
			_, err := c.Hosts(t.Context(), "acme", api.Token)
			say("hosts", err)
			_, err = c.Hosts(t.Context(), "acme", api.Token)
			say("answer cut", err)
			_, err = c.Start(t.Context(), "acme", v1.Start{})
			say("start", err)
			if status < 500 {
				api.Inject("", "/events", echo(status))
				say("events", c.Watch(t.Context(), "acme", func(v1.Run) bool { return true }))
			}
			if strings.Contains(told.String(), api.Token) {
				t.Errorf("the token is shown:\n%s", &told)
			}
			if strings.Count(told.String(), "request answered")+strings.Count(told.String(), "request failed") < 3 {
				t.Errorf("debug was not told of each request:\n%s", &told)
			}
		})
	}
}

func TestDebugTellsOfEachTry(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.Inject("GET", "/hosts", fakeapi.Status(500, "oops"))
	var told []string
	c := connect(t, api, func(o *Options) {
		o.Debug = func(_ context.Context, message string, f map[string]any) {
			told = append(told, fmt.Sprint(message, " ", f["method"], " ", f["path"], " ", f["try"], " ", f["status"]))
		}
	})
	if _, err := c.Hosts(t.Context(), "acme", "north"); err != nil {
		t.Fatal(err)
	}
	const path = "GET /v1/state/tenants/acme/os-upgrade/hosts?site=north"
	wantEqual(t, "told", strings.Join(told, "\n"), "request answered "+path+" 1 500\nrequest answered "+path+" 2 200")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	api := fakeapi.NewTLS(t)
	for name, row := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"with its certificate": {func(*Options) {}, ""},
		"with the system's":    {func(o *Options) { o.CACertPEM = nil }, "x509: certificate signed by unknown authority"},
		"without a check":      {func(o *Options) { o.CACertPEM, o.Insecure = nil, true }, ""},
		"http to https":        {func(o *Options) { o.Endpoint = strings.Replace(o.Endpoint, "https", "http", 1) }, "400 Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := connect(t, api, row.change).Hosts(t.Context(), "acme", "")
			if row.want == "" && err != nil {
				t.Fatal(err)
			}
			if row.want != "" {
				wantError(t, err, row.want)
				if strings.Contains(err.Error(), "tries") {
					t.Errorf("%q was tried again in vain", err)
				}
			}
		})
	}
}
