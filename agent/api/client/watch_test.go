package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func TestWatchSeesEachChange(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.AddRun("acme", v1.Run{ID: 3, Phase: "finished", Result: "completed"})
	id := api.AddRun("acme", v1.Run{Phase: "open"})
	var phases []string
	err := connect(t, api).Watch(t.Context(), "acme", func(run v1.Run) bool {
		wantEqual(t, "run", run.ID, id)
		phases = append(phases, run.Phase)
		switch run.Phase {
		case "open":
			api.AddRun("other", v1.Run{Phase: "somebody else's"})
			api.EditRun("acme", id, func(r *v1.Run) { r.Phase = "preparing" })
		case "preparing":
			api.FinishRun("acme", id, "completed", "")
		}
		return !run.Finished()
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"open", "preparing", "finished"}; !slices.Equal(phases, want) {
		t.Errorf("saw %q, want %q", phases, want)
	}
	api.AwaitStreams(0) // The connection is closed.
}

func TestWatchGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	id := api.AddRun("acme", v1.Run{Reason: "0"})
	var seen []string
	err := connect(t, api).Watch(t.Context(), "acme", func(run v1.Run) bool {
		seen = append(seen, run.Reason)
		if run.Reason == "0" {
			// Cut and told later: both changes happen while nobody listens, so only the last is told.
			api.Inject("GET", "/events", fakeapi.Status(503, "sealed"), fakeapi.Status(500, "oops"), fakeapi.CloseBefore(), fakeapi.RetryAfter(429, "0"),
				fakeapi.First(func() {
					api.EditRun("acme", id, func(r *v1.Run) { r.Reason = "1" })
					api.EditRun("acme", id, func(r *v1.Run) { r.Reason = "2" })
				}))
			api.CutStreams()
		}
		return run.Reason != "2"
	})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "seen", strings.Join(seen, " "), "0 2")
	requests := api.Requests()
	wantEqual(t, "faults left", api.Pending(), 0)
	wantEqual(t, "last event id at first", requests[0].Header.Get("Last-Event-ID"), "")
	wantEqual(t, "last event id at the end", requests[len(requests)-1].Header.Get("Last-Event-ID"), "fake-1-0")
}

func TestWatchTellsNothingTwice(t *testing.T) {
	t.Parallel()
	// Our agent sends the newest run at each connection, also an unchanged one.
	var connections atomic.Int32
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		n := connections.Add(1)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = fmt.Fprintf(w, ": hello\n\nevent: run\nid: 5\ndata: {\"id\":41,\"reason\":\"%d\"}\n\n", n/3)
	}, func(t *testing.T, c *Client) {
		var seen []string
		err := c.Watch(t.Context(), "acme", func(run v1.Run) bool {
			seen = append(seen, run.Reason)
			return run.Reason != "2"
		})
		wantEqual(t, "error", err, nil)
		wantEqual(t, "seen", strings.Join(seen, " "), "0 1 2")
		wantEqual(t, "connections", connections.Load(), 6)
	})
}

// TestFollowBeginsAnewAfterReset checks that a client which is told that the log is
// another one forgets what it was told before: a run of the same number is another one.
func TestFollowBeginsAnewAfterReset(t *testing.T) {
	t.Parallel()
	var ids []string
	const told = "event: run\nid: %s\ndata: {\"id\":41,\"hosts\":[{\"hostname\":\"h01\",\"status\":\"upgraded\"}]}\n\n"
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		if len(ids) == 1 {
			_, _ = fmt.Fprintf(w, told, "1f3z0-41")
			return
		}
		_, _ = fmt.Fprintf(w, "event: reset\ndata: {\"reason\":\"another log\"}\n\n"+told, "1f3z1-41")
	}, func(t *testing.T, c *Client) {
		seen := 0
		err := c.Follow(t.Context(), "acme", "", func(n News) bool {
			wantEqual(t, "hosts that have changed", len(n.Hosts), 1)
			seen++
			return seen < 2
		})
		wantEqual(t, "error", err, nil)
	})
	wantEqual(t, "ids", strings.Join(ids, " "), " 1f3z0-41")
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault fakeapi.Fault
		want  []string
	}{
		"at a login page":     {fakeapi.Raw(200, "text/html", "<html>Login"), []string{`content type "text/html", not text/event-stream`}},
		"without its type":    {fakeapi.Raw(200, "", "x"), []string{"not text/event-stream"}},
		"at a 204":            {fakeapi.Raw(204, "", ""), []string{"204 No Content: the API sends no events"}},
		"at a redirect":       {redirect, []string{"302 Found: the API is at"}},
		"without a right":     {fakeapi.Status(403, "not yours"), []string{"403 Forbidden: not yours"}},
		"without a login":     {fakeapi.Status(401, "expired"), []string{"401 Unauthorized: expired"}},
		"where no events are": {fakeapi.Raw(404, "text/plain", "404 page not found"), []string{"404 Not Found: 404 page not found"}},
		"at an event that is no run": {
			fakeapi.Raw(200, "text/event-stream", "event: run\nid: 4\ndata: {\"id\":\"x\"}\n\n"), []string{`event "4" is not a run`, `{"id":"x"}`},
		},
		"at an event without end": {
			fakeapi.Raw(200, "text/event-stream", "data: "+strings.Repeat("x", maxBody)), []string{"an event is larger than 16 MiB"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.Inject("GET", "/events", row.fault)
			err := connect(t, api).Watch(t.Context(), "acme", func(v1.Run) bool {
				t.Error("there is nothing to see")
				return false
			})
			wantError(t, err, append(row.want, "cannot GET /v1/state/tenants/acme/os-upgrade/events: ")...)
			wantEqual(t, "connections", api.Count("GET", "/events"), 1)
		})
	}
}

func TestWatchIgnoresOtherEvents(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.Inject("GET", "/events", fakeapi.Raw(200, "text/event-stream",
		"event: alarm\nid: 3\ndata: fire\n\nid: 4\n\nevent: run\nid: 5\ndata:\n\nevent: run\nid: 6\ndata: {\"id\":41}\n\n"))
	calls := 0
	err := connect(t, api).Watch(t.Context(), "acme", func(run v1.Run) bool {
		calls++
		wantEqual(t, "run", run.ID, 41)
		return false
	})
	wantEqual(t, "error", err, nil)
	wantEqual(t, "calls", calls, 1)
}

func TestWatchOfNothingThere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	failures := 0
	c := connect(t, fakeapi.New(t), func(o *Options) {
		o.Endpoint = "http://127.0.0.1:1"
		o.Debug = func(context.Context, string, map[string]any) {
			if failures++; failures == 3 {
				cancel()
			}
		}
	})
	err := c.Watch(ctx, "acme", func(v1.Run) bool { return true })
	wantError(t, err, "cannot GET /v1/state/tenants/acme/os-upgrade/events any longer", "context canceled", "no event stream: dial tcp 127.0.0.1:1")
	if !errors.Is(err, context.Canceled) {
		t.Error("the end of the context is lost")
	}
}

func TestWatchDoesNotTrustAWrongCertificate(t *testing.T) {
	t.Parallel()
	c := connect(t, fakeapi.NewTLS(t), func(o *Options) { o.CACertPEM = nil })
	wantError(t, c.Watch(t.Context(), "acme", func(v1.Run) bool { return true }), "x509")
}

// beat is an event stream with a comment each period, for a while.
func beat(w http.ResponseWriter, r *http.Request, period, end time.Duration) {
	w.Header().Set("Content-Type", "text/event-stream")
	for begin := time.Now(); time.Since(begin) < end; {
		_, _ = io.WriteString(w, ": alive\n\n")
		_ = http.NewResponseController(w).Flush()
		if wait.Sleep(r.Context(), period) != nil {
			return
		}
	}
	<-r.Context().Done()
}

func TestWatchMissesTheHeartbeat(t *testing.T) {
	t.Parallel()
	begin := make(chan time.Time, 100)
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		begin <- time.Now()
		beat(w, r, 15*time.Second, 10*time.Minute)
	}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		err := c.Watch(ctx, "acme", func(v1.Run) bool { return true })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wantEqual(t, "connections", len(begin), 2)
		// The last comment comes at 9:45, so patience ends 45 s later.
		first, second := <-begin, <-begin
		least := 10*time.Minute + 30*time.Second
		if gap := second.Sub(first); gap < least || gap > least+usualPace.waitMin {
			t.Errorf("connected again after %s, want %s and a short wait", gap, least)
		}
	})
}

// TestFollowAndTheComments checks that who follows is told soon that the site cannot be reached
// when its comments come often, and that a site whose comments are far apart counts as reached
// all the time.
func TestFollowAndTheComments(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		period, silent time.Duration
		trouble        string
	}{
		"often":     {3 * time.Second, 9 * time.Second, "nothing was heard for 9s"},
		"far apart": {15 * time.Second, 45 * time.Second, "nothing was heard for 45s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				beat(w, r, row.period, time.Minute)
			}, func(t *testing.T, c *Client) {
				begin := time.Now()
				err := c.Follow(t.Context(), "acme", "", func(n News) bool {
					wantEqual(t, "trouble", n.Contact.Trouble, row.trouble)
					return false
				})
				wantEqual(t, "error", err, nil)
				wantEqual(t, "told after", time.Since(begin), time.Minute-row.period+row.silent)
			})
		})
	}
}

// TestFollowHearsNoAnswer checks that who follows is told soon that a site does not answer.
func TestFollowHearsNoAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}, func(t *testing.T, c *Client) {
		begin := time.Now()
		err := c.Follow(t.Context(), "acme", "", func(n News) bool {
			wantEqual(t, "trouble", n.Contact.Trouble, "nothing was heard for 9s")
			return false
		})
		wantEqual(t, "error", err, nil)
		wantEqual(t, "told after", time.Since(begin), followIdle)
	})
}

func TestWatchHearsNoAnswer(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	bubble(t, func(_ http.ResponseWriter, r *http.Request) {
		connections.Add(1)
		<-r.Context().Done()
	}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 47*time.Second)
		defer cancel()
		err := c.Watch(ctx, "acme", func(v1.Run) bool { return true })
		wantError(t, err, "no event stream: nothing was heard for 45s")
		wantEqual(t, "connections", connections.Load(), 2)
	})
}

func TestWatchWaitsForItsReader(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		connections.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		for id := 1; id <= 2; id++ {
			_, _ = fmt.Fprintf(w, "event: run\ndata: {\"id\":%d}\n\n", id)
			_ = http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, c *Client) {
		err := c.Watch(t.Context(), "acme", func(run v1.Run) bool {
			_ = wait.Sleep(t.Context(), 10*time.Minute)
			return run.ID != 2
		})
		wantEqual(t, "error", err, nil)
		wantEqual(t, "connections", connections.Load(), 1)
	})
}

func TestWatchWaitsAsItIsTold(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if connections.Add(1) == 1 {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: run\ndata: {\"id\":1}\n\n")
	}, func(t *testing.T, c *Client) {
		begin := time.Now()
		wantEqual(t, "error", c.Watch(t.Context(), "acme", func(v1.Run) bool { return false }), nil)
		wantEqual(t, "simulated time", time.Since(begin), 2*time.Minute)
	})
}

func TestWatchForgetsItsFailures(t *testing.T) {
	t.Parallel()
	const failures, streams = 20, 8
	for name, row := range map[string]struct {
		event bool
		lasts time.Duration
	}{
		"when events come":     {true, 0},
		"when a stream lasted": {false, usualPace.waitMax},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections int // The client has one at a time.
			var ended time.Time
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				connections++
				if connections <= failures {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				if gap := time.Since(ended); connections > failures+1 && gap > usualPace.waitMin {
					t.Errorf("connection %d came after %s, as if the server still failed", connections, gap)
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, ": hello\n\n")
				_ = http.NewResponseController(w).Flush()
				_ = wait.Sleep(r.Context(), row.lasts)
				if row.event || connections == failures+streams {
					_, _ = fmt.Fprintf(w, "event: run\ndata: {\"id\":%d}\n\n", connections)
				}
				ended = time.Now()
			}, func(t *testing.T, c *Client) {
				err := c.Watch(t.Context(), "acme", func(run v1.Run) bool { return run.ID != failures+streams })
				wantEqual(t, "error", err, nil)
			})
		})
	}
}

func TestWatchEndsAtOnceWithTheContext(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]http.HandlerFunc{
		"while it listens": func(w http.ResponseWriter, r *http.Request) { beat(w, r, time.Second, time.Hour) },
		"while it waits": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"while it connects": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, serve, func(t *testing.T, c *Client) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(7*time.Second, cancel)
				begin := time.Now()
				if err := c.Watch(ctx, "acme", func(v1.Run) bool { return true }); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				wantEqual(t, "simulated time", time.Since(begin), 7*time.Second)
			})
		})
	}
}

func TestWatchDoesNotHammer(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		connections.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Watch(ctx, "acme", func(v1.Run) bool { return true }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		// Waits spread over 30 s: 240 in an hour on average.
		if n := connections.Load(); n < 150 || n > 400 {
			t.Errorf("connected %d times in an hour", n)
		}
	})
}

// TestFollowOfSeveralRuns checks that the hosts of runs of several environments are kept apart, and that
// one environment alone can be followed.
func TestFollowOfSeveralRuns(t *testing.T) {
	t.Parallel()
	event := func(kind, data string) string { return "event: " + kind + "\ndata: " + data + "\n\n" }
	var query string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query().Get("environment")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, event("run", `{"id":5,"environment":"basel","hosts":[{"hostname":"b1","status":"prepared"},{"hostname":"b2","status":"prepared"}]}`)+
			event("run", `{"id":7,"environment":"bern","hosts":[{"hostname":"c1","status":"prepared"}]}`)+
			event("changes", `{"id":5,"environment":"basel","hosts":[{"hostname":"b2","status":"upgraded"}]}`)+
			event("changes", `{"id":7,"environment":"bern","hosts":[{"hostname":"c1","status":"failed"}]}`))
	}))
	defer site.Close()
	c, err := New(Options{Endpoint: site.URL, Token: "secret", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var seen []string
	if err := c.Follow(t.Context(), "acme", "basel", func(n News) bool {
		if n.Run != nil {
			line := n.Run.Environment
			for _, h := range n.Run.Hosts {
				line += " " + h.Hostname + "=" + h.Status
			}
			seen = append(seen, line)
		}
		return len(seen) < 4
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"basel b1=prepared b2=prepared", "bern c1=prepared", "basel b1=prepared b2=upgraded", "bern c1=failed"}
	if !slices.Equal(seen, want) || query != "basel" {
		t.Errorf("of %q it sees %q, want %q", query, seen, want)
	}
}
