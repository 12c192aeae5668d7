package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// shelf keeps the spans that it is handed.
type shelf struct {
	mu   sync.Mutex
	kept []trace.Span
}

func (*shelf) Samples(trace.Context, trace.ID) bool { return true }

func (s *shelf) Put(spans ...trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, spans...)
}

// take returns the spans, as names and ids, and forgets them.
func (s *shelf) take() (names []string, ids []trace.SpanID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.kept {
		names, ids = append(names, span.Name), append(ids, span.Span)
	}
	s.kept = nil
	return names, ids
}

// TestSpansAcrossRestarts checks that the spans of a run are handed over as they end, in the
// trace of who started it, and again by a controller that starts while the run is under way
// or has just ended; not by one that is passive, or starts long after.
func TestSpansAcrossRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		m, spans := newMemory("h01", "h02"), &shelf{}
		begin := func(active bool) (*Controller, func()) {
			o := m.options(t)
			o.Traces = spans
			c := New(o)
			c.SetActive(active)
			return c, m.runs(t, c)
		}
		c, stop := begin(true)
		m.beat("h01", "h02")
		r, err := c.Start(trace.With(t.Context(), trace.Parse(parent)), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h02", r.ID, message.Prepare)
		m.reply("h01", r.ID, message.Upgrade)
		before := []string{"prepare", "prepare", "prepare hosts", "upgrade", "host"}
		synctest.Wait()
		names, ids := spans.take()
		if !slices.Equal(names, before) {
			t.Errorf("the spans before the crash are %q", names)
		}
		stop()
		_, stop = begin(false)
		if names, _ := spans.take(); len(names) > 0 {
			t.Errorf("a passive controller hands over %q", names)
		}
		stop()
		_, stop = begin(true)
		m.beat("h01", "h02")
		if names, again := spans.take(); !slices.Equal(names, before) || !slices.Equal(ids, again) {
			t.Errorf("the spans after the crash are %q %x, and were %x", names, again, ids)
		}
		m.reply("h02", r.ID, message.Upgrade)
		synctest.Wait()
		spans.mu.Lock()
		root := spans.kept[len(spans.kept)-1]
		spans.mu.Unlock()
		if caller := trace.Parse(parent); root.Name != "run" || root.Trace != caller.Trace || root.Parent != caller.Span {
			t.Errorf("the last span is %+v", root)
		}
		names, last := spans.take()
		if after := []string{"upgrade", "host", "stage", "run"}; !slices.Equal(names, after) {
			t.Errorf("the spans after the crash are %q", names)
		}
		if opened := m.events(`"traceparent":"` + parent); len(opened) != 1 {
			t.Errorf("the log has the traceparent in %q", opened)
		}
		stop()
		_, stop = begin(true)
		if _, again := spans.take(); !slices.Equal(again, append(ids, last...)) {
			t.Errorf("shortly after its end, the spans of the run are %x", again)
		}
		stop()
		time.Sleep(resendFor)
		begin(true)
		if names, _ := spans.take(); len(names) > 0 {
			t.Errorf("long after its end, the spans of the run are %q", names)
		}
	})
}

// TestUntracedRun checks that a site which sends no traces writes nothing of them on the
// log, whoever starts a run.
func TestUntracedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		m.upgraded(t, c, "done")
		if opened := fmt.Sprint(m.events(`{"event":"opened"`)); strings.Contains(opened, "traceparent") {
			t.Errorf("the run was opened with %s", opened)
		}
	})
}
