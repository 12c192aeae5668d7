package webhook

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestSign checks the signature of the example in the specification.
func TestSign(t *testing.T) {
	t.Parallel()
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := Sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("the signature is %s, not %s", got, want)
	}
}

// TestVerify checks what a receiver accepts.
func TestVerify(t *testing.T) {
	t.Parallel()
	key, other := []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("o", 32))
	now := time.Unix(1_800_000_000, 0)
	body := []byte(`{"type":"test"}`)
	header := func(at time.Time, signatures ...string) http.Header {
		h := http.Header{}
		h.Set(HeaderID, "msg_1")
		h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
		h.Set(HeaderSignature, strings.Join(signatures, " "))
		return h
	}
	good := Sign(key, "msg_1", now, body)
	for name, row := range map[string]struct {
		header http.Header
		body   string
		ok     bool
	}{
		"right":             {header(now, good), string(body), true},
		"one of several":    {header(now, Sign(other, "msg_1", now, body), good), string(body), true},
		"another secret":    {header(now, Sign(other, "msg_1", now, body)), string(body), false},
		"another body":      {header(now, good), `{"type":"tesT"}`, false},
		"another id":        {header(now, Sign(key, "msg_2", now, body)), string(body), false},
		"another time":      {header(now.Add(time.Second), good), string(body), false},
		"too old":           {header(now.Add(-Tolerance-time.Second), Sign(key, "msg_1", now.Add(-Tolerance-time.Second), body)), string(body), false},
		"no signature":      {header(now), string(body), false},
		"no header":         {http.Header{}, string(body), false},
		"another algorithm": {header(now, "v1a,"+strings.TrimPrefix(good, "v1,")), string(body), false},
	} {
		if err := Verify(key, row.header, []byte(row.body), now); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDecide checks what follows from the outcome of a try.
func TestDecide(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		outcome Outcome
		tries   int
		age     time.Duration
		want    Verdict
		// least and most are the delays without and with all of the jitter.
		least, most time.Duration
	}{
		"accepted":                      {Outcome{Status: 204}, 3, time.Hour, Delivered, 0, 0},
		"gone":                          {Outcome{Status: 410}, 1, 0, Gone, 0, 0},
		"no answer":                     {Outcome{Err: "connection refused"}, 1, 0, Retry, 2500 * time.Millisecond, 5 * time.Second},
		"no answer again":               {Outcome{Err: "connection refused"}, 4, time.Minute, Retry, 20 * time.Second, 40 * time.Second},
		"no answer for hours":           {Outcome{Err: "connection refused"}, 1 << 40, 23 * time.Hour, Retry, 450 * time.Second, 15 * time.Minute},
		"no answer for a day":           {Outcome{Err: "connection refused"}, 100, 24 * time.Hour, Dead, 0, 0},
		"old news, accepted":            {Outcome{Status: 200}, 1, 72 * time.Hour, Delivered, 0, 0},
		"its own trouble":               {Outcome{Status: 500}, 20, time.Hour, Retry, 450 * time.Second, 15 * time.Minute},
		"asked to wait":                 {Outcome{Status: 429, After: time.Minute}, 1, 0, Retry, time.Minute, time.Minute},
		"asked to wait for a moment":    {Outcome{Status: 429, After: time.Second}, 1, 0, Retry, 2500 * time.Millisecond, 5 * time.Second},
		"asked to wait for a year":      {Outcome{Status: 503, After: 8760 * time.Hour}, 1, 0, Retry, time.Hour, time.Hour},
		"asked to wait again and again": {Outcome{Status: 429, After: time.Minute}, 50, time.Hour, Retry, 450 * time.Second, 15 * time.Minute},
		"refused":                       {Outcome{Status: 400}, 7, 0, Retry, 160 * time.Second, 320 * time.Second},
		"refused for good":              {Outcome{Status: 400}, 8, 0, Dead, 0, 0},
		"a redirect":                    {Outcome{Status: 302, Err: "redirects"}, 1, 0, Retry, 2500 * time.Millisecond, 5 * time.Second},
	} {
		for random, want := range map[float64]time.Duration{0: row.least, 1: row.most} {
			if got, after := Decide(row.outcome, row.tries, row.age, random); got != row.want || after != want {
				t.Errorf("%s, random %v: %d after %s; want %d after %s", name, random, got, after, row.want, want)
			}
		}
	}
}

// anywhere is the rule of a site that allows all local addresses.
func anywhere(t *testing.T) dial.Rule {
	t.Helper()
	local, err := dial.Parse([]string{dial.Any})
	if err != nil {
		t.Fatal(err)
	}
	return local
}

// TestUnanswered checks what is said of a receiver that does not answer: why, but nothing of
// what came instead of HTTP.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	listen := func(greeting string) string {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, greeting)
				_, _ = io.CopyN(io.Discard, conn, 100)
				_ = conn.Close()
			}
		}()
		return listener.Addr().String()
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	for address, want := range map[string]string{
		"http://" + listen("SSH-2.0-OpenSSH_9.2 secret\r\n"):           "the answer is not HTTP",
		"http://" + listen("HTTP/1.1 200 OK\r\nsecret\r\n\r\n"):        "the answer is not HTTP",
		"http://" + listen("HTTP/1.1 secret\r\n\r\n"):                  "the answer is not HTTP",
		"https://" + listen("SSH-2.0-OpenSSH_9.2 secret and more\r\n"): "first record does not look like a TLS handshake",
		tls.URL:              "certificate signed by unknown authority",
		"http://127.0.0.1:1": "connection refused",
		"http://no.invalid":  "no.invalid",
	} {
		o := post(t.Context(), newClient(anywhere(t)), "test", address, []byte("key"), v1.News{ID: "msg_1"}, time.Now())
		if !strings.Contains(o.Err, want) || strings.Contains(o.Err, "secret") {
			t.Errorf("%s: %q, want %q", address, o.Err, want)
		}
	}
}
