package window

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// list is a calendar with a fixed list of occurrences.
type list struct {
	name string
	all  []Occurrence
}

func (l list) Name() string { return l.name }

func (l list) Occurrences(_ *time.Location, from, to time.Time) iter.Seq[Occurrence] {
	return func(yield func(Occurrence) bool) {
		for i, o := range l.all {
			o.Origin = Origin{Calendar: l.name, Index: i}
			if o.overlaps(from, to) && !yield(o) {
				return
			}
		}
	}
}

// listed makes a calendar of spans such as "06T01:00 06T05:00" of November 2026.
func listed(t *testing.T, name string, spans ...string) Calendar {
	t.Helper()
	l := list{name: name}
	for _, text := range spans {
		from, to, _ := strings.Cut(text, " ")
		l.all = append(l.all, Occurrence{Span: Span{november(t, from), november(t, to)}})
	}
	return l
}

func TestOpeningsOfASchedule(t *testing.T) {
	t.Parallel()
	friday := "Friday 01:00 UTC 4h" // the 6th, 13th, 20th and 27th
	for _, row := range []struct {
		name           string
		window         string
		allow, freezes []string
		want           string
	}{
		{"a window alone", friday, nil, nil, "06T01:00 06T05:00, 13T01:00 13T05:00"},
		{"an event opens", friday, []string{"08T00:00 08T02:00"}, nil, "06T01:00 06T05:00, 08T00:00 08T02:00, 13T01:00 13T05:00"},
		{"an event alone opens", "", []string{"08T00:00 08T02:00"}, nil, "08T00:00 08T02:00"},
		{"an event lengthens a window", friday, []string{"06T05:00 06T07:00"}, nil, "06T01:00 06T07:00, 13T01:00 13T05:00"},
		{"an event begins a window", friday, []string{"06T00:00 06T02:00"}, nil, "06T00:00 06T05:00, 13T01:00 13T05:00"},
		{"a freeze swallows a window", friday, nil, []string{"05T00:00 07T00:00"}, "13T01:00 13T05:00"},
		{"a freeze of just a window", friday, nil, []string{"06T01:00 06T05:00"}, "13T01:00 13T05:00"},
		{"a freeze takes the beginning", friday, nil, []string{"05T00:00 06T03:00"}, "06T03:00 06T05:00, 13T01:00 13T05:00"},
		{"a freeze takes the end", friday, nil, []string{"06T03:00 07T00:00"}, "06T01:00 06T03:00, 13T01:00 13T05:00"},
		{"a freeze cuts in two", friday, nil, []string{"06T02:00 06T03:00"}, "06T01:00 06T02:00, 06T03:00 06T05:00, 13T01:00 13T05:00"},
		{"freezes that overlap cut once", friday, nil, []string{"06T02:00 06T03:00", "06T02:30 06T04:00"}, "06T01:00 06T02:00, 06T04:00 06T05:00, 13T01:00 13T05:00"},
		{"a freeze inside another changes nothing", friday, nil, []string{"06T02:00 06T04:00", "06T02:30 06T03:00"}, "06T01:00 06T02:00, 06T04:00 06T05:00, 13T01:00 13T05:00"},
		{"freezes that touch cut once", friday, nil, []string{"06T02:00 06T03:00", "06T03:00 06T04:00"}, "06T01:00 06T02:00, 06T04:00 06T05:00, 13T01:00 13T05:00"},
		{"a freeze that touches takes nothing", friday, nil, []string{"05T00:00 06T01:00", "06T05:00 06T06:00"}, "06T01:00 06T05:00, 13T01:00 13T05:00"},
		{"a freeze wins over an event", "", []string{"08T00:00 08T02:00"}, []string{"08T00:30 08T01:00"}, "08T00:00 08T00:30, 08T01:00 08T02:00"},
		{"a freeze over weeks", friday, nil, []string{"05T00:00 25T00:00"}, "27T01:00 27T05:00"},
		{"a freeze cuts what never breaks", week7 + " 00:00 UTC 24h", nil, []string{"06T12:00 08T12:00"}, "05T00:00 06T00:00, 06T00:00 06T12:00, 08T12:00 09T00:00, 09T00:00 10T00:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := Schedule{Allow: []Calendar{listed(t, "more", row.allow...)}, Freezes: []Calendar{listed(t, "freeze", row.freezes...)}}
			if f := strings.Fields(row.window); len(f) > 0 {
				p.Windows = []Window{mustParse(t, f[0], f[1], f[2], f[3])}
			}
			var got []string
			for o := range p.Ahead(november(t, "05T00:00"), november(t, "30T00:00"), strings.Count(row.want, ",")+1) {
				got = append(got, spanText(o.Span, true))
			}
			if text := strings.Join(got, ", "); text != row.want {
				t.Fatalf("%s; want %s", text, row.want)
			}
		})
	}
}

func TestOpeningNamesItsWindowsEventsAndFreezes(t *testing.T) {
	t.Parallel()
	p := Schedule{
		Windows: []Window{mustParse(t, "Monday", "01:00", "UTC", "1h"), mustParse(t, "Friday", "01:00", "UTC", "4h")},
		Allow:   []Calendar{listed(t, "more", "01T00:00 01T01:00", "06T04:00 06T07:00")},
		Freezes: []Calendar{listed(t, "far", "12T00:00 12T01:00"), listed(t, "release", "06T02:00 06T03:00", "06T05:00 06T06:00")},
	}
	got := make([]string, 0, 3)
	for o := range p.Ahead(november(t, "06T00:00"), november(t, "07T00:00"), 0) {
		text := spanText(o.Span, true) + " of " + spanText(o.Window, true) + ":"
		for _, open := range o.Open {
			text += fmt.Sprintf(" %s[%d]", open.Origin.Calendar, open.Origin.Index)
		}
		for _, cut := range o.Cuts {
			text += fmt.Sprintf(" without %s[%d]", cut.Origin.Calendar, cut.Origin.Index)
		}
		got = append(got, text)
	}
	want := []string{
		"06T01:00 06T02:00 of 06T01:00 06T07:00: [1] without release[0] without release[1]",
		"06T03:00 06T05:00 of 06T01:00 06T07:00: [1] more[1] without release[0] without release[1]",
		"06T06:00 06T07:00 of 06T01:00 06T07:00: more[1] without release[0] without release[1]",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOpeningReportsAChangeOfTheClock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, start, length string
		at                  string
		startMoved, moved   bool
	}{
		{"an ordinary night", "02:30", "1h", "2026-03-27T12:00:00Z", false, false},
		{"the start is skipped", "02:30", "1h", "2026-03-28T12:00:00Z", true, true},
		{"the end is skipped", "01:30", "1h", "2026-03-28T12:00:00Z", false, true},
		{"an hour is skipped in between", "01:00", "4h", "2026-03-28T12:00:00Z", false, true},
		{"an hour happens twice in between", "01:00", "4h", "2026-10-24T12:00:00Z", false, true},
		{"the start happens twice", "02:30", "15m", "2026-10-24T12:00:00Z", false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			at, err := time.Parse(time.RFC3339, row.at)
			if err != nil {
				t.Fatal(err)
			}
			p := Schedule{Windows: []Window{mustParse(t, week7, row.start, "Europe/Stockholm", row.length)}}
			o, ok := p.Next(at)
			if !ok || o.StartMoved() != row.startMoved || o.EndMoved() != row.moved {
				t.Fatalf("%v: start moved %v, end moved %v", o.Span, o.StartMoved(), o.EndMoved())
			}
		})
	}
}

func TestNextFreeze(t *testing.T) {
	t.Parallel()
	p := Schedule{Freezes: []Calendar{
		listed(t, "a", "06T02:00 06T04:00", "09T00:00 09T01:00"),
		listed(t, "b", "06T03:00 06T05:00", "06T05:00 06T06:00", "06T07:00 06T08:00"),
	}}
	for _, row := range []struct{ name, at, freeze, until string }{
		{"before", "06T01:59", "", ""},
		{"as it begins", "06T02:00", "a[0]", "06T06:00"},
		{"where two overlap the first counts", "06T03:30", "a[0]", "06T06:00"},
		{"when the first is over", "06T04:00", "b[0]", "06T06:00"},
		{"as another follows", "06T05:00", "b[1]", "06T06:00"},
		{"as the last ends", "06T06:00", "", ""},
		{"alone", "09T00:59", "a[1]", "09T01:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, end := "", ""
			at := november(t, row.at)
			freeze, ok := p.NextFreeze(at)
			if !ok {
				t.Fatal("no freeze")
			}
			if freeze.Contains(at) {
				got, end = fmt.Sprintf("%s[%d]", freeze.First.Origin.Calendar, freeze.First.Origin.Index), freeze.End.Format("02T15:04")
			}
			if got != row.freeze || end != row.until {
				t.Fatalf("%s until %s; want %s until %s", got, end, row.freeze, row.until)
			}
		})
	}
}

func TestNextStopsAtTheHorizon(t *testing.T) {
	t.Parallel()
	at := november(t, "01T00:00")
	far := list{name: "far", all: []Occurrence{{Span: Span{at.Add(Horizon), at.Add(Horizon + time.Hour)}}}}
	if o, ok := (Schedule{Allow: []Calendar{far}}).Next(at); ok {
		t.Errorf("opening %v", o.Span)
	}
	if o, ok := (Schedule{Allow: []Calendar{far}}).Next(at.Add(time.Minute)); !ok || o.Span != far.all[0].Span {
		t.Errorf("opening %v, %v", o.Span, ok)
	}
	crowd := list{name: "crowd", all: make([]Occurrence, maxSeen)}
	for i := range crowd.all {
		crowd.all[i].Span = Span{at, at.Add(longest)}
	}
	friday := []Window{mustParse(t, "Friday", "01:00", "UTC", "4h")}
	if o, ok := (Schedule{Windows: friday, Freezes: []Calendar{crowd}}).Next(at); ok {
		t.Errorf("opening %v after too many freezes", o.Span)
	}
	crowd.all = crowd.all[:maxSeen-10]
	if o, ok := (Schedule{Windows: friday, Freezes: []Calendar{crowd}}).Next(at); !ok || o.Start.Day() != 13 {
		t.Errorf("opening %v, %v after many freezes", o.Span, ok)
	}
	ever := list{name: "ever", all: []Occurrence{{Span: Span{at, at.Add(2 * Horizon)}}}}
	p := Schedule{Windows: friday, Freezes: []Calendar{ever}}
	if o, ok := p.Next(at); ok {
		t.Errorf("opening %v in a freeze", o.Span)
	}
}

// drawList draws occurrences near the instant that a test examines.
func drawList(name string, near time.Time, most time.Duration) *rapid.Generator[Calendar] {
	return rapid.Custom(func(t *rapid.T) Calendar {
		l := list{name: name}
		for range rapid.IntRange(0, 6).Draw(t, name) {
			start := near.Add(time.Duration(rapid.IntRange(-3*24*60, 5*24*60).Draw(t, "start")) * time.Minute)
			length := time.Duration(rapid.OneOf(rapid.IntRange(1, 300), rapid.IntRange(1, int(most/time.Minute))).Draw(t, "length")) * time.Minute
			l.all = append(l.all, Occurrence{Span: Span{start, start.Add(length)}})
		}
		return l
	})
}

func drawSchedule(t *rapid.T, near time.Time) Schedule {
	return Schedule{
		Windows: rapid.SliceOfN(rapid.Custom(drawWindow), 0, 3).Draw(t, "windows"),
		Allow:   []Calendar{drawList("more", near, MaxDuration).Draw(t, "allow")},
		Freezes: []Calendar{drawList("a", near, 2*day).Draw(t, "a"), drawList("b", near, 20*day).Draw(t, "b")},
		Site:    drawSite(t),
	}
}

func TestOpeningsMatchASlowOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := drawInstant(t)
		p := drawSchedule(t, from)
		const minutes = 4 * 24 * 60
		open := oracle(p.Windows, p.Site, from, minutes)
		got := make([]bool, minutes)
		to := from.Add(minutes * time.Minute)
		last := from.Add(-longest)
		for o := range p.Ahead(from, to, 0) {
			if o.Start.Before(last) || !o.End.After(o.Start) || o.Window.Start.After(o.Start) || o.Window.End.Before(o.End) || len(o.Open) == 0 {
				t.Fatalf("opening %+v after %v", o, last)
			}
			last = o.End
			mark(got, from, o.Span)
		}
		frozen := make([]bool, minutes)
		for o := range p.Allow[0].Occurrences(nil, from, to) {
			mark(open, from, o.Span)
		}
		for _, c := range p.Freezes {
			for o := range c.Occurrences(nil, from, to) {
				mark(frozen, from, o.Span)
			}
		}
		for i := range open {
			at := from.Add(time.Duration(i) * time.Minute)
			if want := open[i] && !frozen[i]; got[i] != want {
				t.Fatalf("at %v open: %v; want %v", at, got[i], want)
			}
			if i%97 == 0 {
				if freeze, ok := p.NextFreeze(at); ok && !freeze.End.After(at) || (ok && freeze.Contains(at)) != frozen[i] {
					t.Fatalf("at %v the next freeze is %v, %v; want one in force: %v", at, freeze.Span, ok, frozen[i])
				}
			}
		}
	})
}

// mark marks the minutes of a span, of those from an instant on.
func mark(minutes []bool, from time.Time, s Span) {
	for i := range minutes {
		minutes[i] = minutes[i] || s.Contains(from.Add(time.Duration(i)*time.Minute))
	}
}

func TestEveryInstantOfAnOpeningHasThatOpening(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := drawInstant(t)
		p := drawSchedule(t, from)
		ahead := slices.Collect(p.Ahead(from, from.Add(8*day), 20))
		for _, o := range ahead {
			inside := o.Start.Add(time.Duration(rapid.Int64Range(0, int64(o.Length())-1).Draw(t, "inside")))
			for _, at := range []time.Time{o.Start, inside, o.End.Add(-1)} {
				if other, ok := p.Current(at); !ok || other.Span != o.Span || other.Window != o.Window {
					t.Fatalf("at %v the opening is %v of %v, %v; want %v of %v", at, other.Span, other.Window, ok, o.Span, o.Window)
				}
			}
		}
		if next, ok := p.Next(from); ok && len(ahead) > 0 && next.Span != ahead[0].Span {
			t.Fatalf("next is %v; the first ahead %v", next.Span, ahead[0].Span)
		}
	})
}

// Memory grows with the number of simultaneous occurrences, not with the time
// that is searched.
func TestMemoryIsConstantInTheHorizon(t *testing.T) {
	t.Parallel()
	held := func(years int) (chunk, taken int) {
		p := Schedule{Windows: []Window{
			mustParse(t, week7, "00:00", "UTC", "24h"), mustParse(t, week7, "06:00", "Asia/Tokyo", "7d"), mustParse(t, "Friday", "01:00", "UTC", "4h"),
		}}
		from := november(t, "01T00:00")
		windows := unions{feed: newFeed(p.opening(), p.Site, from, lookback)}
		freezes := cutter{feed: newFeed(p.opening(), p.Site, from, day)}
		for {
			window, _, ok := windows.next(from, from.AddDate(years, 0, 0))
			if !ok {
				return chunk, taken
			}
			freezes.leave(window)
			freezes.cutting(window)
			chunk = max(chunk, cap(windows.feed.chunk), cap(freezes.feed.chunk))
			taken = max(taken, cap(windows.taken), cap(freezes.taken))
		}
	}
	chunk, taken := held(3)
	if laterChunk, laterTaken := held(60); laterChunk > chunk || laterTaken > taken {
		t.Fatalf("for 3 years %d and %d are held, for 60 years %d and %d", chunk, taken, laterChunk, laterTaken)
	}
}

const week7 = "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday"

// Each window is "days start zone duration"; a span is "start end", both in UTC
// as "02T15:04" of November 2026, whose 1st is a Sunday, unless the row says
// otherwise.
func TestCurrentAndNext(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		windows []string
		at      string
		current string
		next    string
	}{
		{"no window", nil, "02T00:00", "", ""},
		{"before it opens", []string{"Friday 01:00 UTC 4h"}, "06T00:59", "", "06T01:00 06T05:00"},
		{"as it opens", []string{"Friday 01:00 UTC 4h"}, "06T01:00", "06T01:00 06T05:00", "06T01:00 06T05:00"},
		{"just before it closes", []string{"Friday 01:00 UTC 4h"}, "06T04:59", "06T01:00 06T05:00", "06T01:00 06T05:00"},
		{"as it closes", []string{"Friday 01:00 UTC 4h"}, "06T05:00", "", "13T01:00 13T05:00"},
		{"across midnight the day is that of the start", []string{"Friday 23:00 UTC 6h"}, "07T02:00", "06T23:00 07T05:00", "06T23:00 07T05:00"},
		{"across midnight it does not open on the day it closes", []string{"Friday 23:00 UTC 6h"}, "06T02:00", "", "06T23:00 07T05:00"},
		{"longer than a day", []string{"Friday 22:00 UTC 2d"}, "08T21:59", "06T22:00 08T22:00", "06T22:00 08T22:00"},
		{"the day of another zone", []string{"Monday 00:30 Asia/Tokyo 1h"}, "08T15:30", "08T15:30 08T16:30", "08T15:30 08T16:30"},
		{"site-local is the site's zone", []string{"Friday 01:00 site-local 4h"}, "06T00:00", "06T00:00 06T04:00", "06T00:00 06T04:00"},
		{"overlapping windows are one span", []string{"Friday 01:00 UTC 4h", "Friday 03:00 UTC 4h"}, "06T01:00", "06T01:00 06T07:00", "06T01:00 06T07:00"},
		{"touching windows are one span", []string{"Friday 05:00 UTC 2h", "Friday 01:00 UTC 4h"}, "06T06:59", "06T01:00 06T07:00", "06T01:00 06T07:00"},
		{"windows a minute apart are two", []string{"Friday 01:00 UTC 4h", "Friday 05:01 UTC 2h"}, "06T05:00", "", "06T05:01 06T07:01"},
		{"a window inside another changes nothing", []string{"Friday 01:00 UTC 4h", "Friday 02:00 UTC 1h"}, "06T02:30", "06T01:00 06T05:00", "06T01:00 06T05:00"},
		{"windows of two zones overlap in elapsed time", []string{"Friday 01:00 UTC 1h", "Friday 03:00 Europe/Stockholm 1h"}, "06T01:30", "06T01:00 06T03:00", "06T01:00 06T03:00"},
		{"every day around the clock is a span a day", []string{week7 + " 00:00 UTC 24h"}, "06T12:00", "06T00:00 07T00:00", "06T00:00 07T00:00"},
		{"a whole week is a span a week", []string{"Monday 00:00 UTC 7d"}, "06T12:00", "02T00:00 09T00:00", "02T00:00 09T00:00"},
		{"one that never breaks is cut at every start", []string{week7 + " 00:00 UTC 24h", "Friday 06:00 UTC 2h"}, "06T07:00", "06T06:00 07T00:00", "06T06:00 07T00:00"},
		{"five days in a row are one span", []string{"Monday,Tuesday,Wednesday,Thursday,Friday 00:00 UTC 24h"}, "04T12:00", "02T00:00 07T00:00", "02T00:00 07T00:00"},
		{"six days and a window that reaches over the seventh", []string{"Monday 00:00 UTC 6d", "Saturday 20:00 UTC 23h"}, "04T12:00", "02T00:00 08T19:00", "02T00:00 08T19:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			site := mustLocation(t, "Europe/Stockholm")
			var windows []Window
			for _, text := range row.windows {
				f := strings.Fields(text)
				windows = append(windows, mustParse(t, f[0], f[1], f[2], f[3]))
			}
			at := november(t, row.at)
			if got := spanText(Current(windows, site, at)); got != row.current {
				t.Errorf("current span %q; want %q", got, row.current)
			}
			if got := spanText(Next(windows, site, at)); got != row.next {
				t.Errorf("next span %q; want %q", got, row.next)
			}
		})
	}
}

func TestLengthIsElapsedTimeAcrossAChangeOfTheClock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, date string }{
		{"an hour is missing", "2026-03-28T23:00:00Z"},
		{"a repeated hour", "2026-10-24T22:00:00Z"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			start, err := time.Parse(time.RFC3339, row.date)
			if err != nil {
				t.Fatal(err)
			}
			windows := []Window{mustParse(t, "Sunday", "00:00", "Europe/Stockholm", "6h")}
			span, ok := Current(windows, nil, start.Add(time.Hour))
			if want := (Span{start, start.Add(6 * time.Hour)}); !ok || span != want {
				t.Fatalf("span %v, %v; want %v", span, ok, want)
			}
		})
	}
}

func TestEveryDayAroundTheClockPausesForTheRepeatedHour(t *testing.T) {
	t.Parallel()
	windows := []Window{mustParse(t, week7, "00:00", "Europe/Stockholm", "24h")}
	want := Span{time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 22, 0, 0, 0, time.UTC)}
	if span, ok := Current(windows, nil, want.Start); !ok || span != want {
		t.Fatalf("current span %v, %v; want %v", span, ok, want)
	}
	if span, ok := Current(windows, nil, want.End); ok {
		t.Fatalf("span %v in the hour between the days", span)
	}
}

func TestNextSkipsADateThatDoesNotExist(t *testing.T) {
	t.Parallel()
	windows := []Window{mustParse(t, "Friday", "10:00", "Pacific/Apia", "1h")}
	after := time.Date(2011, 12, 23, 21, 0, 0, 0, time.UTC)
	span, ok := Next(windows, nil, after)
	if want := time.Date(2012, 1, 5, 20, 0, 0, 0, time.UTC); !ok || !span.Start.Equal(want) {
		t.Fatalf("next span %v, %v; want start %v", span, ok, want)
	}
}

func november(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04", "2026-11-"+text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func spanText(s Span, ok bool) string {
	if !ok {
		return ""
	}
	return s.Start.Format("02T15:04") + " " + s.End.Format("02T15:04")
}
