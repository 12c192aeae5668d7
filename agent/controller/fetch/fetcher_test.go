package fetch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// web answers for all sources. It takes a second for each answer.
type web struct {
	mu     sync.Mutex
	status int
	body   string
	// tag is the ETag of the body; whoever has it is answered 304.
	tag   string
	asked []time.Time
	// most is how many requests there were at once.
	now, most int
}

func (w *web) set(status int, body string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.body = status, body
}

// name gives the body an ETag.
func (w *web) name(tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tag = tag
}

func (w *web) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.asked = append(w.asked, time.Now())
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now--
	status := w.status
	if w.tag != "" && r.Header.Get("If-None-Match") == w.tag {
		status = http.StatusNotModified
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(w.body)), Header: http.Header{"Etag": {w.tag}}, Request: r}, r.Context().Err()
}

// site is a store, the web, and a Fetcher of a tenant.
type site struct {
	t       *testing.T
	store   *memory.Store
	web     *web
	fetcher *Fetcher
	stop    func()
}

// open starts a Fetcher on a store.
func open(t *testing.T, kept *memory.Store) *site {
	s := &site{t: t, store: kept, web: &web{status: http.StatusOK, body: ics("20261221 a")}}
	s.fetcher = New(Options{
		Store: kept, Version: "test", Log: slog.New(slog.DiscardHandler),
		Client: func() *http.Client { return &http.Client{Transport: s.web, CheckRedirect: stayOnHost} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	run, ended := s.fetcher.Add("acme"), make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	return s
}

func (s *site) put(name string, c v1.Calendar) store.Revision {
	s.t.Helper()
	_, base, err := s.store.Calendar(s.t.Context(), "acme", name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.t.Fatal(err)
	}
	revision, err := s.store.PutCalendar(s.t.Context(), "acme", name, v1.Kept[v1.Calendar]{Value: c}, base)
	if err != nil {
		s.t.Fatal(err)
	}
	return revision
}

// copy returns what is kept; nil for none.
func (s *site) copy(name string) *v1.CalendarCopy {
	s.t.Helper()
	kept, _, err := s.store.CalendarCopy(s.t.Context(), "acme", name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &kept
}

var byURL = v1.Calendar{Kind: "freeze", URL: address}

// TestRunFollowsACalendar checks the life of a calendar with a URL: fetched at once, again each
// hour, again and again while it fails, and forgotten with its URL.
func TestRunFollowsACalendar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.NewStore())
		defer s.stop()
		s.put("plain", v1.Calendar{Kind: "freeze"})
		s.put("xmas", byURL)
		time.Sleep(2 * time.Second)
		if kept := s.copy("xmas"); kept == nil || len(kept.Events) != 1 || s.web.count() != 1 || s.copy("plain") != nil {
			t.Fatalf("after the write the copy is %+v, asked %d times", kept, s.web.count())
		}
		time.Sleep(24 * time.Hour)
		if n := s.web.count(); n < 22 || n > 25 {
			t.Errorf("in a day it is asked %d times", n)
		}
		s.web.set(http.StatusInternalServerError, "")
		before := s.web.count()
		time.Sleep(2 * time.Hour)
		if n := s.web.count() - before; n < 5 || n > 9 {
			t.Errorf("in two hours of failures it is asked %d times", n)
		}
		if kept := s.copy("xmas"); !kept.Failing() || len(kept.Events) != 1 {
			t.Errorf("after failures the copy is %+v", kept)
		}
		s.web.set(http.StatusOK, ics("20261221 a", "20261222 b"))
		time.Sleep(2 * time.Hour)
		if kept := s.copy("xmas"); kept.Error != "" || len(kept.Events) != 2 || kept.RecoveredAt.IsZero() {
			t.Errorf("after the failures the copy is %+v", kept)
		}
		s.put("xmas", v1.Calendar{Kind: "freeze"})
		time.Sleep(time.Minute)
		before = s.web.count()
		time.Sleep(24 * time.Hour)
		if kept := s.copy("xmas"); kept != nil || s.web.count() != before {
			t.Errorf("without a URL the copy is %+v, asked %d times", kept, s.web.count()-before)
		}
		s.put("xmas", byURL)
		time.Sleep(2 * time.Second)
		if kept := s.copy("xmas"); kept == nil || len(kept.Events) != 2 {
			t.Errorf("with a URL again the copy is %+v", kept)
		}
	})
}

// TestRunStartsAnew checks that a restart asks no source before it is due, and has the events
// all along.
func TestRunStartsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := open(t, memory.NewStore())
		first.put("xmas", byURL)
		time.Sleep(2 * time.Second)
		first.stop()
		second := open(t, first.store)
		defer second.stop()
		second.web.set(http.StatusBadGateway, "")
		time.Sleep(50 * time.Minute)
		if n := second.web.count(); n != 0 {
			t.Errorf("after a restart it is asked %d times before it is due", n)
		}
		time.Sleep(20 * time.Minute)
		if kept := second.copy("xmas"); second.web.count() == 0 || len(kept.Events) != 1 || kept.Error == "" {
			t.Errorf("after that the copy is %+v, asked %d times", kept, second.web.count())
		}
	})
}

// TestRunReadsAnew checks that a process reads the whole text once, whatever the process before
// made of it: that may have been an older version, and the text has not changed since.
func TestRunReadsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := open(t, memory.NewStore())
		first.web.name(`"a"`)
		first.put("xmas", byURL)
		time.Sleep(2 * time.Second)
		first.stop()
		older, base, err := first.store.CalendarCopy(t.Context(), "acme", "xmas")
		if err != nil {
			t.Fatal(err)
		}
		older.Events = nil
		if _, err := first.store.PutCalendarCopy(t.Context(), "acme", "xmas", older, base); err != nil {
			t.Fatal(err)
		}
		second := open(t, first.store)
		defer second.stop()
		second.web.name(`"a"`)
		time.Sleep(70 * time.Minute)
		kept := second.copy("xmas")
		if len(kept.Events) != 1 || kept.ETag != `"a"` {
			t.Errorf("after a restart the copy is %+v; want its event", kept)
		}
		second.web.set(http.StatusBadGateway, "") // It is asked with the ETag from then on.
		time.Sleep(70 * time.Minute)
		if kept = second.copy("xmas"); kept.Error != "" || len(kept.Events) != 1 {
			t.Errorf("while the text does not change the copy is %+v", kept)
		}
	})
}

// TestManyAtOnce checks that many calendars ask few sources at once, and that all are fetched.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.NewStore())
		defer s.stop()
		for i := range 20 {
			s.put("c"+strings.Repeat("x", i), byURL)
		}
		time.Sleep(time.Minute)
		copies, err := s.store.CalendarCopies(t.Context(), "acme")
		if err != nil || len(copies) != 20 || s.web.most != atOnce || s.web.count() != 20 {
			t.Errorf("%d copies, %v, asked %d times, %d at once", len(copies), err, s.web.count(), s.web.most)
		}
	})
}

// TestRefresh checks that a person's wish is followed at once, that several share a fetch, and that
// the answer comes once the copy is kept.
func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.NewStore())
		revision := s.put("xmas", byURL)
		if err := s.fetcher.Refresh(t.Context(), "acme", "xmas", revision.Number); err != nil || s.copy("xmas") == nil {
			t.Errorf("just after the write: %v, %+v", err, s.copy("xmas"))
		}
		time.Sleep(10 * time.Minute)
		s.web.set(http.StatusOK, ics("20261221 a", "20261222 b"))
		before := s.web.count()
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() {
				err := s.fetcher.Refresh(t.Context(), "acme", "xmas", revision.Number)
				if kept := s.copy("xmas"); err != nil || len(kept.Events) != 2 {
					t.Errorf("after a wish: %v, %+v", err, kept)
				}
			})
		}
		asking.Wait()
		if n := s.web.count() - before; n > 2 {
			t.Errorf("10 wishes ask %d times", n)
		}
		deleted := s.put("xmas", v1.Calendar{Kind: "freeze"})
		if err := s.fetcher.Refresh(t.Context(), "acme", "xmas", deleted.Number); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("without a URL: %v", err)
		}
		if err := s.fetcher.Refresh(t.Context(), "other", "xmas", 1); !errors.Is(err, errNotServed) {
			t.Errorf("of another tenant: %v", err)
		}
		s.stop()
		if err := s.fetcher.Refresh(t.Context(), "acme", "xmas", revision.Number); !errors.Is(err, errNotServed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestConflict checks that a copy which somebody else has written since is not overwritten
// blindly, and that one which cannot be read is replaced.
func TestConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.NewStore())
		defer s.stop()
		s.put("xmas", byURL)
		time.Sleep(500 * time.Millisecond) // It is being asked.
		other := After(Target{Tenant: "acme", Name: "xmas", Calendar: byURL, Revision: 1}, nil, good(ics("20261224 other")), time.Now())
		if _, err := s.store.PutCalendarCopy(t.Context(), "acme", "xmas", other, store.Revision{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if kept := s.copy("xmas"); len(kept.Events) != 1 || kept.Events[0].Summary != "other" {
			t.Errorf("the copy of another is replaced by %+v", kept)
		}
		s.store.Damage("acme", store.Object{Kind: store.Copy, Name: "xmas"})
		time.Sleep(time.Minute)
		if kept := s.copy("xmas"); len(kept.Events) != 1 || kept.Events[0].Summary != "a" {
			t.Errorf("a damaged copy is replaced by %+v", kept)
		}
	})
}
