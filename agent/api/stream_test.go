package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestPositionFollows checks what a client is told that comes back with an id.
func TestPositionFollows(t *testing.T) {
	t.Parallel()
	now := position{log: "1f3z0", seq: 42, news: 9}
	for name, row := range map[string]struct{ id, want string }{
		"the newest":         {now.String(), ""},
		"an older one":       {"1f3z0-7-3", ""},
		"of another log":     {"1f3z1-7-3", `Last-Event-ID "1f3z1-7-3" is of another log than the one that the site has now`},
		"of the future":      {"1f3z0-43-3", `Last-Event-ID "1f3z0-43-3" is beyond the end of the log, which is 1f3z0-42-9`},
		"of news to come":    {"1f3z0-7-10", `Last-Event-ID "1f3z0-7-10" is beyond the end of the log`},
		"too old":            {"1f3z0-7-1", `Last-Event-ID "1f3z0-7-1" is too old: of the news after it, 1 are not kept any more`},
		"of an older server": {"1f3z0-42", `Last-Event-ID "1f3z0-42" is not an id of this stream`},
		"hostile":            {"1f3z0-7-" + strings.Repeat("9", 1000), "is not an id of this stream"},
	} {
		if got := now.follows(row.id, 3); !strings.Contains(got, row.want) || (got == "") != (row.want == "") || len(got) > 300 {
			t.Errorf("%s: %q; want %q", name, got, row.want)
		}
	}
}

// growing is a controller that shows a large situation, another one each time.
type growing struct {
	broken
	turns    atomic.Uint64
	watchers wait.Watchers
}

func (g *growing) Snapshot(context.Context) (v1.Snapshot, error) {
	turn := g.turns.Load()
	return v1.Snapshot{Situation: v1.Situation{Status: strconv.FormatUint(turn, 10) + strings.Repeat("x", 1<<20)}, Seq: turn, Log: "1f3z0"}, nil
}

func (*growing) ReportsSince(context.Context, uint64) ([]v1.VersionsEvent, uint64, error) {
	return nil, 0, nil
}

// streaming serves a stream to each client, and counts those that are open.
func streaming(t *testing.T, g *growing, p streamTimes) (address string, open *atomic.Int32) {
	t.Helper()
	open = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		changed, leave := g.watchers.Add()
		defer leave()
		w.Header().Set("Content-Type", eventStream)
		st := &stream{
			call: &call{Request: r, w: w, controller: g}, out: http.NewResponseController(w), times: p, since: r.Header.Get(lastEventID),
			allowed: func() error { return nil },
		}
		st.follow(changed, nil)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), open
}

// TestSlowReader checks that a client which does not read loses its stream once a write
// has waited for too long, that it holds nobody else up meanwhile, and that nothing is
// queued for it: the changes that it sleeps through are one signal.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	g := &growing{}
	address, open := streaming(t, g, streamTimes{heartbeat: time.Hour, write: 500 * time.Millisecond})
	sleeper, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Close() }()
	if tcp, ok := sleeper.(*net.TCPConn); !ok || tcp.SetReadBuffer(4096) != nil {
		t.Fatal("the connection keeps what is not read")
	}
	if _, err := sleeper.Write([]byte("GET / HTTP/1.1\r\nHost: test\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	reader := get(t, address, nil)
	lines := bufio.NewScanner(reader.Body)
	lines.Buffer(nil, 4<<20)
	gone := false
	for turn := uint64(1); turn < 500 && !gone; turn++ {
		g.turns.Store(turn)
		g.watchers.Notify()
		want := fmt.Sprintf("id: 1f3z0-%d-0", turn)
		found := false
		for !found && lines.Scan() {
			found = lines.Text() == want
		}
		if !found {
			t.Fatalf("the reader was not sent %s: %v", want, lines.Err())
		}
		if gone = open.Load() == 1; !gone {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if !gone {
		t.Error("a client that does not read keeps its stream")
	}
	if g.watchers.Count() != 1 {
		t.Errorf("%d clients watch the controller; want the one that reads", g.watchers.Count())
	}
}

// TestHeartbeats checks that a stream on which nothing happens has a comment in each
// interval, so that clients and proxies know that it is alive.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	address, _ := streaming(t, &growing{}, streamTimes{heartbeat: 20 * time.Millisecond, write: 10 * time.Second})
	lines := bufio.NewScanner(get(t, address, nil).Body)
	lines.Buffer(nil, 4<<20)
	for alive := 0; alive < 3; {
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v", lines.Err())
		}
		if lines.Text() == ": alive" {
			alive++
		}
	}
}

// TestReset checks that a client which comes back with an id of another log is told so
// before anything else, that another client is not, and that neither is told twice.
func TestReset(t *testing.T) {
	t.Parallel()
	g := &growing{}
	g.turns.Store(42)
	for id, want := range map[string]string{"": "", "1f3z0-42-0": "", "1f3z0-7-0": "", "0abc-42-0": "event: reset"} {
		to := page{httptest.NewRecorder()}
		st := &stream{call: &call{Request: httptest.NewRequest("GET", "/", http.NoBody), w: to, controller: g}, out: http.NewResponseController(to), times: usualTimes, since: id}
		if err := errors.Join(st.send(), st.send()); err != nil {
			t.Fatal(err)
		}
		text := to.Body.String()
		if !strings.HasPrefix(text, want) || strings.Count(text, "event: reset") != strings.Count(want, "reset") {
			t.Errorf("with Last-Event-ID %q the stream begins with %.200q; want %q once", id, text, want)
		}
		if !strings.Contains(text, "event: situation\nid: 1f3z0-42-0\n") {
			t.Errorf("with Last-Event-ID %q the situation is not sent", id)
		}
	}
}

// telling is a controller with news.
type telling struct {
	growing
	all []v1.News
}

func (c *telling) News(_ context.Context, after uint64) (all []v1.News, oldest, newest uint64, err error) {
	for _, n := range c.all {
		if n.Number > after {
			all = append(all, n)
		}
	}
	return all, c.all[0].Number, c.all[len(c.all)-1].Number, nil
}

func (*telling) Snapshot(context.Context) (v1.Snapshot, error) {
	return v1.Snapshot{Seq: 42, Log: "1f3z0"}, nil
}

// TestMissedNews checks that a client which comes back is sent the news that it has
// missed, each with an id with which it could come back again; that one which comes for
// the first time is sent those from now on; and that one which was away for too long is
// told so.
func TestMissedNews(t *testing.T) {
	t.Parallel()
	for since, want := range map[string]string{
		"":             "situation 42-5, then news 42-6",
		"1f3z0-40-5":   "situation 42-5, then news 42-6",
		"1f3z0-40-3":   "news 42-4 news 42-5 situation 42-5, then news 42-6",
		"1f3z0-40-2":   "news 42-3 news 42-4 news 42-5 situation 42-5, then news 42-6",
		"1f3z0-40-1":   "reset situation 42-5, then news 42-6",
		"1f3z0-40-6":   "reset situation 42-5, then news 42-6",
		"another-40-3": "reset situation 42-5, then news 42-6",
	} {
		c := &telling{}
		tell := func(number uint64) {
			c.all = append(c.all, v1.News{ID: fmt.Sprint("msg_", number), Type: v1.NewsRunOpened, Number: number})
		}
		tell(3)
		tell(4)
		tell(5)
		to := page{httptest.NewRecorder()}
		st := &stream{call: &call{Request: httptest.NewRequest("GET", "/", http.NoBody), w: to, controller: c}, out: http.NewResponseController(to), times: usualTimes, since: since}
		sent := func() string {
			if err := st.send(); err != nil {
				t.Fatal(err)
			}
			var words []string
			for line := range strings.Lines(to.Body.String()) {
				if name, found := strings.CutPrefix(strings.TrimSpace(line), "event: "); found {
					words = append(words, name)
				} else if id, found := strings.CutPrefix(strings.TrimSpace(line), "id: 1f3z0-"); found {
					words = append(words, id)
				}
			}
			to.Body.Reset()
			return strings.Join(words, " ")
		}
		got := sent()
		tell(6)
		if got += ", then " + sent(); got != want {
			t.Errorf("with Last-Event-ID %q sent is %s; want %s", since, got, want)
		}
	}
}

// get opens a stream.
func get(t *testing.T, address string, header http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}
