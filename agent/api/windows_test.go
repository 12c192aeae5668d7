package api

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// clockwork is a controller whose tenant has one window a week. It records the
// arguments of its calls.
type clockwork struct {
	memory

	from, to time.Time
	count    int
}

func (c *clockwork) Windows(_ context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	c.from, c.to, c.count = from, to, count
	weekly, wrong := window.Parse("Friday", "22:00", "UTC", "4h")
	if len(wrong) > 0 {
		return nil, wrong[0].Err
	}
	return v1.Windows(v1.Schedule([]window.Window{weekly}, nil, nil), from, to, count), nil
}

func TestWindows(t *testing.T) {
	t.Parallel()
	c := &clockwork{}
	s := serve(t, c, access.Reads)
	// Within ten years of now, whenever that is.
	from := time.Now().UTC().Truncate(time.Hour).AddDate(1, 0, 0)
	to := from.AddDate(0, 1, 0)
	path := fmt.Sprintf("%s/windows?from=%s&to=%s&count=3", acmeState, from.Format(time.RFC3339), to.Format(time.RFC3339))
	s.want("GET", path, "", 200, `T02:00:00Z","length":"4h","window-start":"`)
	if !c.from.Equal(from) || !c.to.Equal(to) || c.count != 3 {
		t.Errorf("asked for %s to %s, %d", c.from, c.to, c.count)
	}
	s.want("GET", path+"&fields=length,sources/window&site=test", "", 200, `[{"length":"4h","sources":[{"window":0}]},{"length":"4h"`)
	s.want("GET", path+"&fields=lengths", "", 400, "lengths")
	s.want("GET", path+"&site=mars", "", 404, "mars")
	s.want("GET", path, "", 200, `length: "4h"`, "Accept", "application/yaml")
}

// TestWindowsDefaults checks the arguments for a query without parameters.
func TestWindowsDefaults(t *testing.T) {
	t.Parallel()
	c := &clockwork{}
	s := serve(t, c, access.Reads)
	before := time.Now()
	s.want("GET", "/v1/state/os-upgrade/windows", "", 200, `"length":"4h"`)
	after := time.Now()
	if c.from.Before(before) || c.from.After(after) || c.to.Sub(c.from) != window.Horizon || c.count != 10 {
		t.Errorf("asked for %s to %s, %d; it was %s", c.from, c.to, c.count, before)
	}
}

func TestWrongWindowsQuery(t *testing.T) {
	t.Parallel()
	soon := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	for query, part := range map[string]string{
		"from=tomorrow":                   `"field":"from","value":"tomorrow"`,
		"from=":                           "is not a time",
		"to=2026-13-01T00:00:00Z":         "to: ",
		"to=9999-01-01T00:00:00Z":         "is out of range",
		"from=1815-01-01T00:00:00Z":       `"field":"from"`,
		"count=0":                         "is not a number of windows; use 1 to 1000",
		"count=1001":                      "use 1 to 1000",
		"count=all":                       `"field":"count","value":"all"`,
		"from=" + soon + "&to=" + soon:    "is not after from",
		"limit=3":                         "is not a query parameter here",
		"count=1&count=2":                 "more than once",
		"to=2026-11-21T01:00:00%2B01:00x": "is not a time",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			c := &clockwork{}
			serve(t, c, access.Reads).want("GET", acmeState+"/windows?"+query, "", 400, part)
			if c.count != 0 {
				t.Error("the controller was asked")
			}
		})
	}
	serve(t, &clockwork{}, access.Writes).want("GET", acmeState+"/windows", "", 403, "does not have the right")
}

// slow is a controller whose Windows returns when its client is gone.
type slow struct {
	memory
	looks, most atomic.Int32
}

func (s *slow) Windows(ctx context.Context, _, _ time.Time, _ int) ([]v1.Window, error) {
	now := s.looks.Add(1)
	defer s.looks.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestManyFeeds checks that the number of concurrent computations is limited, that
// further requests get 503, and that the slot of a client that is gone is free.
func TestManyFeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &slow{}
		s := serve(t, c, access.Reads)
		var clients sync.WaitGroup
		var refused atomic.Int32
		ctx, gone := context.WithCancel(t.Context())
		ask := func(ctx context.Context) {
			r := httptest.NewRequestWithContext(ctx, "GET", acmeState+"/windows.ics", nil)
			r.Header.Set("Authorization", "Bearer "+s.token)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			if w.Code == 503 && w.Header().Get("Retry-After") != "" && strings.Contains(w.Body.String(), "try again") {
				refused.Add(1)
			}
		}
		for range windowsPerTenant {
			clients.Go(func() { ask(ctx) })
		}
		synctest.Wait()
		for range 100 {
			clients.Go(func() { ask(ctx) })
		}
		time.Sleep(windowsWait + time.Second)
		if c.most.Load() != windowsPerTenant || refused.Load() != 100 {
			t.Errorf("%d look ahead at once, %d are refused", c.most.Load(), refused.Load())
		}
		gone()
		clients.Wait()
		again, stop := context.WithCancel(t.Context())
		clients.Go(func() { ask(again) })
		synctest.Wait()
		if c.looks.Load() != 1 {
			t.Error("there is no turn after the others are gone")
		}
		stop()
		clients.Wait()
	})
}

// TestFeed checks that the windows of a year can be subscribed to.
func TestFeed(t *testing.T) {
	t.Parallel()
	c := &clockwork{}
	s := serve(t, c, access.Reads)
	header := s.want("GET", acmeState+"/windows.ics", "", 200, "\r\nDTSTART:")
	if got := header.Get("Content-Type"); got != "text/calendar; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if !strings.Contains(header.Get("Content-Disposition"), `"os-upgrade-acme.ics"`) {
		t.Errorf("content disposition %q", header.Get("Content-Disposition"))
	}
	if !c.to.Equal(c.from.AddDate(1, 0, 0)) {
		t.Errorf("asked for %s to %s", c.from, c.to)
	}
	s.want("GET", acmeState+"/windows.ics?count=1", "", 400, "count")
	s.want("GET", "/v1/state/os-upgrade/windows.ics?site=mars", "", 404, "mars")
}
