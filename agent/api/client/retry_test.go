package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	reset := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	const all, harmless, none = "GET HEAD PUT DELETE POST", "GET HEAD PUT DELETE", ""
	for name, row := range map[string]struct {
		status int
		err    error
		want   string
	}{
		"success":            {200, nil, none},
		"not modified":       {304, nil, none},
		"bad request":        {400, nil, none},
		"unauthorized":       {401, nil, none},
		"forbidden":          {403, nil, none},
		"not found":          {404, nil, none},
		"conflict":           {409, nil, none},
		"precondition":       {412, nil, none},
		"too many":           {429, nil, all},
		"server error":       {500, nil, harmless},
		"not implemented":    {501, nil, none},
		"bad gateway":        {502, nil, harmless},
		"unavailable":        {503, nil, all},
		"gateway timeout":    {504, nil, harmless},
		"connection refused": {0, refused, all},
		"connection reset":   {0, reset, harmless},
		"end of file":        {0, io.EOF, harmless},
		"timeout of a try":   {0, context.DeadlineExceeded, harmless},
		"wrong certificate":  {0, &tls.CertificateVerificationError{Err: errors.New("x509")}, none},
		"no TLS":             {0, tls.RecordHeaderError{Msg: "first record does not look like TLS"}, none},
		"body cut":           {0, &bodyError{200, io.ErrUnexpectedEOF}, harmless},
		"body too large":     {0, &bodyError{200, errTooLarge}, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH"} {
				if again(&tally{method: method}, row.status, row.err) && method != http.MethodPatch {
					got += " " + method
				}
			}
			want := row.want
			if want != none {
				want = " " + want
			}
			wantEqual(t, "methods", got, want)
			wantEqual(t, "PATCH as POST", again(&tally{method: "PATCH"}, row.status, row.err), again(&tally{method: "POST"}, row.status, row.err))
			wantEqual(t, "POST with an id as PUT", again(&tally{method: "POST", repeatable: true}, row.status, row.err), again(&tally{method: "PUT"}, row.status, row.err))
		})
	}
}

func TestJitterStaysInItsSpan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "min"))
		high := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "max"))
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		random := rapid.Float64Range(0, 0.999999).Draw(t, "random")
		got := jitter(low, high, n, random)
		span := high
		if n < 12 {
			span = min(high, low<<n)
		}
		if got < 0 || got > span {
			t.Fatalf("jitter %s is outside of 0 to %s", got, span)
		}
		// 42 doublings bring a nanosecond past an hour.
		if whole := jitter(low, high, n, 1); n >= 42 && whole != high {
			t.Fatalf("after many tries the span is %s, not %s", whole, high)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		status int
		header string
		want   time.Duration
		there  bool
	}{
		"seconds":                {429, "7", 7 * time.Second, true},
		"unavailable":            {503, "7", 7 * time.Second, true},
		"zero":                   {429, "0", 0, true},
		"a date":                 {429, "Sat, 21 Nov 2026 12:01:00 GMT", time.Minute, true},
		"a date that is past":    {429, "Sat, 21 Nov 2026 11:00:00 GMT", 0, true},
		"a date far away":        {429, "Sat, 21 Nov 2099 11:00:00 GMT", longestWait, true},
		"absurd":                 {429, "2000000000", longestWait, true},
		"more than any number":   {429, "99999999999999999999", 0, false},
		"negative":               {429, "-1", 0, false},
		"words":                  {429, "soon", 0, false},
		"nothing":                {429, "", 0, false},
		"of a status without it": {500, "7", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, there := retryAfter(&http.Response{StatusCode: row.status, Header: http.Header{"Retry-After": {row.header}}}, now)
			wantEqual(t, "wait", got, row.want)
			wantEqual(t, "there", there, row.there)
		})
	}
	if _, there := retryAfter(nil, now); there {
		t.Error("no answer has a Retry-After")
	}
}

// bubble runs a test of a client and its server in simulated time; at its end
// no goroutine of either may be left.
func bubble(t *testing.T, handler http.HandlerFunc, do func(t *testing.T, c *Client), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { do(t, piped(t, handler, change...)) })
}

func TestRetryAfterIsWaitedOut(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) == 1 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, `{"id": 5}`)
	}, func(t *testing.T, c *Client) {
		begin := time.Now()
		run, err := c.Start(t.Context(), "acme", v1.Start{})
		if err != nil || run.ID != 5 {
			t.Fatalf("got run %d and error %v", run.ID, err)
		}
		wantEqual(t, "simulated time", time.Since(begin), 7*time.Second)
	})
}

func TestRetryAfterBeyondTheDeadlineIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := c.Hosts(ctx, "acme", "")
		if !HasStatus(err, http.StatusTooManyRequests) {
			t.Fatalf("got %v, want the 429", err)
		}
		wantEqual(t, "simulated time", time.Since(begin), 0)
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		begin := time.Now()
		_, err := c.Hosts(ctx, "acme", "")
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the end of the context", err)
		}
		wantEqual(t, "simulated time", time.Since(begin), 3*time.Second)
	})
}

func TestTryIsBounded(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	dripping := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			_ = wait.Sleep(r.Context(), time.Second)
		}
	}
	for name, serve := range map[string]http.HandlerFunc{"a silent server": silent, "a dripping server": dripping} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			counted := func(w http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				serve(w, r)
			}
			bubble(t, counted, func(t *testing.T, c *Client) {
				begin := time.Now()
				_, err := c.Hosts(t.Context(), "acme", "")
				wantError(t, err, "cannot GET /v1/state/tenants/acme/os-upgrade/hosts", "after 3 tries")
				wantEqual(t, "tries of GET", tries.Swap(0), 3)
				if took := time.Since(begin); took < 30*time.Second || took > 30*time.Second+1500*time.Millisecond {
					t.Errorf("took %s of simulated time, want 3 tries of 10 s and the waits between", took)
				}
				if _, err = c.Start(t.Context(), "acme", v1.Start{}); err == nil {
					t.Error("a start that timed out has succeeded")
				}
				wantEqual(t, "tries of POST", tries.Load(), 1)
			}, retries(2), func(o *Options) { o.Timeout = 10 * time.Second })
		})
	}
}

func TestConnectionThatWasRefused(t *testing.T) {
	t.Parallel()
	// A port of chance that was closed again may be another test's by now.
	const address = "http://127.0.0.1:1"
	s, err := Options{Endpoint: address, Token: "secret-word", Retries: 2}.check()
	if err != nil {
		t.Fatal(err)
	}
	_, err = build(s, newTransport(s.tls), hasty).Start(t.Context(), "acme", v1.Start{})
	wantError(t, err, "cannot POST /v1/state/tenants/acme/os-upgrade/start", "connection refused", "after 3 tries")
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error("the cause is lost")
	}
}
