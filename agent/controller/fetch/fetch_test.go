package fetch

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

const address = "https://calendar.example/swordfish/freeze.ics"

// ics is a published text with events, each a line such as "20261221 a day off".
func ics(events ...string) string {
	var b strings.Builder
	b.WriteString("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//a//b//EN\r\n")
	for _, e := range events {
		date, summary, _ := strings.Cut(e, " ")
		b.WriteString("BEGIN:VEVENT\r\nUID:" + e + "\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:" + date + "\r\nSUMMARY:" + summary + "\r\nEND:VEVENT\r\n")
	}
	b.WriteString("END:VCALENDAR\r\n")
	return b.String()
}

func target(kind, refresh string) Target {
	return Target{Tenant: "acme", Name: "xmas", Calendar: v1.Calendar{Kind: kind, URL: address, Refresh: refresh}, Revision: 7, Read: true}
}

func good(text string) Answer { return Answer{Status: http.StatusOK, Body: text, ETag: `"1"`} }

// TestAfter checks what a copy is after an answer, and that no answer but a whole calendar replaces
// the events.
func TestAfter(t *testing.T) {
	t.Parallel()
	freeze := target("freeze", "")
	kept := After(freeze, nil, good(ics("20261221 first")), noon)
	if kept.Error != "" || len(kept.Events) != 1 || kept.Source != address || !kept.FetchedAt.Equal(noon) || !kept.ChangedAt.Equal(noon) || kept.ETag != `"1"` {
		t.Fatalf("the first copy is %+v", kept)
	}
	later := noon.Add(time.Hour)
	long := "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20261221T000000Z\r\nDTEND:20270110T000000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	for _, row := range []struct {
		name   string
		target Target
		answer Answer
		// why is the error; without one, events is how many there are then.
		why     string
		events  int
		changed bool
	}{
		{name: "the same events", answer: good(ics("20261221 first")), events: 1},
		{name: "the same events, stamped anew", answer: good(strings.ReplaceAll(ics("20261221 first"), "DTSTAMP:2026", "DTSTAMP:2027")), events: 1},
		{name: "not modified", answer: Answer{Status: http.StatusNotModified}, events: 1},
		{name: "another event", answer: good(ics("20261221 first", "20261224 second")), events: 2, changed: true},
		{name: "no event", answer: good(ics()), changed: true},
		{name: "cut off", answer: good(strings.TrimSuffix(ics("20261221 first"), "END:VCALENDAR\r\n")), why: "ends within VCALENDAR"},
		{name: "nothing", answer: good(""), why: "begin with BEGIN:VCALENDAR"},
		{name: "a login page", answer: Answer{Status: http.StatusOK, Body: "<html>", ContentType: "Text/HTML; charset=utf-8"}, why: "the answer is a web page"},
		{name: "garbage", answer: good("\xff\xfe"), why: "not UTF-8"},
		{name: "too long", answer: good(strings.Repeat("x", v1.MaxCalendar+1)), why: "longer than 1048576 bytes"},
		{name: "an event that cannot be read", answer: good(ics("20261221 first", "2026 second")), why: "line 13"},
		{name: "too long an event for this kind", target: target("allow", ""), answer: good(long), why: "line 4"},
		{name: "not there", answer: Answer{Status: http.StatusNotFound}, why: "the server answers 404 Not Found; use the address"},
		{name: "no status that there is", answer: Answer{Status: 799}, why: "the server answers 799"},
		{name: "no answer", answer: Answer{Err: "no route to host"}, why: "no route to host"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.target.Name == "" {
				row.target = freeze
			}
			got := After(row.target, &kept, row.answer, later)
			if row.why != "" {
				if !strings.Contains(got.Error, row.why) || got.Tries != 1 || !got.FailingSince.Equal(later) {
					t.Errorf("it has failed %d times since %v: %q; want once, %q", got.Tries, got.FailingSince, got.Error, row.why)
				}
				if len(got.Events) != 1 || got.Source != address || !got.FetchedAt.Equal(noon) || got.ETag != kept.ETag {
					t.Errorf("the copy is %+v; want what was kept", got)
				}
				return
			}
			if emptied := row.changed && row.events == 0; got.EmptiedAt.Equal(later) != emptied {
				t.Errorf("it was emptied at %v", got.EmptiedAt)
			}
			if got.Error != "" || len(got.Events) != row.events || !got.FetchedAt.Equal(later) || got.ChangedAt.Equal(later) != row.changed {
				t.Errorf("the copy is %+v", got)
			}
		})
	}
}

// TestAfterAnotherURL checks that the events of one source are not taken for those of another, nor
// its failures.
func TestAfterAnotherURL(t *testing.T) {
	t.Parallel()
	was := target("freeze", "")
	kept := After(was, nil, good(ics("20261221 first")), noon)
	for range v1.FailingTries {
		kept = After(was, &kept, Answer{Err: "no"}, noon.Add(time.Hour))
	}
	now := was
	now.Calendar.URL, now.Revision = "https://other.example/a.ics", 8
	if at := Due(now, &kept, noon); !at.Equal(noon) {
		t.Errorf("it is due at %v; want at once", at)
	}
	got := After(now, &kept, Answer{Status: http.StatusNotModified}, noon.Add(2*time.Hour))
	if got.Tries != 1 || !strings.Contains(got.Error, "304") {
		t.Errorf("304 without a copy: %+v", got)
	}
	if c, known := got.In(now.Calendar); known || len(c.Events) > 0 || c.URL != "" {
		t.Errorf("in force is %+v, known %v; want nothing", c, known)
	}
	if c, known := got.In(was.Calendar); !known || len(c.Events) != 1 {
		t.Errorf("of the first source is in force %+v, known %v; want its events", c, known)
	}
}

// TestAfterAnotherRevision checks that a calendar that was written anew is asked for as a whole:
// another kind may take other events from the same text. What is kept stays until then.
func TestAfterAnotherRevision(t *testing.T) {
	t.Parallel()
	was := target("freeze", "")
	kept := After(was, nil, good(ics("20261221 first")), noon)
	now := was
	now.Revision++
	if !was.current(&kept) || now.current(&kept) {
		t.Errorf("validators are sent for the revision before: %v, for the new one: %v", was.current(&kept), now.current(&kept))
	}
	got := After(now, &kept, Answer{Status: http.StatusNotModified}, noon.Add(time.Hour))
	if got.Tries != 1 || got.ETag != "" || len(got.Events) != 1 {
		t.Errorf("after 304 the copy is %+v; want its events, a failed try and no ETag", got)
	}
	if got = After(now, &got, good(ics("20261221 first")), noon.Add(2*time.Hour)); got.Tries != 0 || !now.current(&got) || got.ETag == "" {
		t.Errorf("after the whole text the copy is %+v", got)
	}
}

// TestCopyOfAnUnreadableCalendar checks that the copy of a calendar that cannot be read is not
// removed, and that of a calendar without a URL is.
func TestCopyOfAnUnreadableCalendar(t *testing.T) {
	t.Parallel()
	calendar, kept := store.Object{Kind: store.Calendar, Name: "xmas"}, store.Seen{Object: store.Object{Kind: store.Copy, Name: "xmas"}, Copy: &v1.CalendarCopy{}, Number: 7}
	loop := &tenant{calendars: map[string]*subscribed{}}
	loop.see(store.Seen{Object: calendar, Err: store.ErrDamaged})
	loop.see(kept)
	if at := loop.of("xmas").next(noon); !at.IsZero() {
		t.Errorf("the copy of one that cannot be read goes at %v", at)
	}
	loop.see(store.Seen{Object: calendar, Calendar: &v1.Calendar{}, Number: 8})
	if at := loop.of("xmas").next(noon); !at.Equal(noon) {
		t.Errorf("the copy of one without a URL goes at %v; want at once", at)
	}
}

// TestCopyThatCannotBeStored checks that a source is asked no more often than if it had failed
// while its copies cannot be stored.
func TestCopyThatCannotBeStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop := &tenant{Fetcher: New(Options{Log: slog.New(slog.DiscardHandler)})}
		c := &subscribed{target: target("freeze", "")}
		for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			loop.end(c, nil, store.Revision{}, errors.New("the disk is full"))
			if got := time.Until(c.notBefore); got != want {
				t.Errorf("after failure %d it is fetched again in %v; want %v", n+1, got, want)
			}
		}
		loop.end(c, &v1.CalendarCopy{}, store.Revision{Number: 9}, nil)
		if loop.end(c, nil, store.Revision{}, errors.New("the disk is full")); time.Until(c.notBefore) != time.Minute {
			t.Errorf("after one that was stored it is fetched again in %v; want a minute", time.Until(c.notBefore))
		}
	})
}

// TestDue checks when a calendar is fetched.
func TestDue(t *testing.T) {
	t.Parallel()
	hourly, weekly := target("freeze", ""), target("freeze", "7d")
	kept := After(hourly, nil, good(ics()), noon)
	if after := kept.Next.Sub(noon); after < time.Hour || after > 66*time.Minute {
		t.Errorf("it is fetched again after %v; want 1h, and up to a tenth more", after)
	}
	if after := After(weekly, nil, good(ics()), noon).Next.Sub(noon); after < 7*24*time.Hour || after > 8*24*time.Hour {
		t.Errorf("it is fetched again after %v; want 7 days, and up to a tenth more", after)
	}
	written := hourly
	written.Revision++
	for _, row := range []struct {
		name   string
		target Target
		kept   *v1.CalendarCopy
		now    time.Time
		want   time.Time
	}{
		{"never fetched", hourly, nil, noon, noon},
		{"fetched", hourly, &kept, noon.Add(time.Minute), kept.Next},
		{"fetched long ago", hourly, &kept, noon.Add(24 * time.Hour), kept.Next},
		{"written anew", written, &kept, noon.Add(time.Minute), noon.Add(time.Minute)},
		{"fetched by a clock that was ahead", hourly, &kept, noon.Add(-48 * time.Hour), noon.Add(-48 * time.Hour)},
	} {
		if got := Due(row.target, row.kept, row.now); !got.Equal(row.want) {
			t.Errorf("%s: due at %v; want %v", row.name, got, row.want)
		}
	}
	var waits []time.Duration
	now := noon
	for range 8 {
		kept = After(hourly, &kept, Answer{Err: "no"}, now)
		waits = append(waits, kept.Next.Sub(now).Round(time.Minute))
		now = kept.Next
	}
	for i, want := range []string{"1m", "2m", "4m", "8m", "16m", "32m"} {
		if window.FormatDuration(waits[i]) != want {
			t.Errorf("after failed tries it waits %v", waits)
			break
		}
	}
	if last := waits[len(waits)-1]; last < time.Hour || last > 66*time.Minute {
		t.Errorf("after failed tries it waits %v; want at most as long as between good ones", waits)
	}
	busy := After(hourly, nil, Answer{Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Hour}, noon)
	if busy.Next.Sub(noon) != 5*time.Hour {
		t.Errorf("a source that asks for 5 hours is asked after %v", busy.Next.Sub(noon))
	}
	if busy = After(hourly, nil, Answer{Status: http.StatusServiceUnavailable, RetryAfter: 999 * time.Hour}, noon); busy.Next.Sub(noon) != maxRetryAfter {
		t.Errorf("a source that asks for 999 hours is asked after %v", busy.Next.Sub(noon))
	}
}

// TestRecovered checks that people are told of the end of a row of failures only if they were told
// of the row.
func TestRecovered(t *testing.T) {
	t.Parallel()
	freeze := target("freeze", "")
	for fails := range 5 {
		kept, now := After(freeze, nil, good(ics()), noon), noon
		for range fails {
			now = now.Add(time.Hour)
			kept = After(freeze, &kept, Answer{Err: "no"}, now)
		}
		if kept.Failing() != (fails >= v1.FailingTries) {
			t.Errorf("after %d failures it is failing: %v", fails, kept.Failing())
		}
		back := After(freeze, &kept, Answer{Status: http.StatusNotModified}, now.Add(time.Hour))
		if back.Tries != 0 || back.Error != "" || !back.FailingSince.IsZero() || back.RecoveredAt.IsZero() == (fails >= v1.FailingTries) {
			t.Errorf("after %d failures and an answer: %+v", fails, back)
		}
	}
}
