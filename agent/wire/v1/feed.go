package v1

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// FeedType is the content type of a feed of windows (RFC 5545 8.1).
const FeedType = "text/calendar; charset=utf-8"

// feedTime is how iCalendar writes an instant.
const feedTime = "20060102T150405Z"

// Feed writes windows as an iCalendar text to subscribe to (RFC 5545). A
// window's UID follows from its start alone, which is its identity, so that a
// reader sees one that is cut later on as the same.
func Feed(site, tenant string, now time.Time, windows []Window) []byte {
	var f feed
	f.line("BEGIN", "VCALENDAR")
	f.line("VERSION", "2.0")
	f.line("PRODID", "-//osupgrade//osupgrade-agent//EN")
	f.line("CALSCALE", "GREGORIAN")
	f.line("METHOD", "PUBLISH")
	title := escape("OS upgrades of " + tenant + " at " + site)
	f.line("NAME", title)
	f.line("X-WR-CALNAME", title)
	f.line("REFRESH-INTERVAL;VALUE=DURATION", "PT1H")
	f.line("X-PUBLISHED-TTL", "PT1H")
	for _, w := range windows {
		f.event(site, tenant, now, w)
	}
	if len(windows) == 0 {
		f.nothing()
	}
	f.line("END", "VCALENDAR")
	return []byte(f.text.String())
}

type feed struct{ text strings.Builder }

func (f *feed) event(site, tenant string, now time.Time, w Window) {
	start := w.Start.UTC().Format(feedTime)
	f.line("BEGIN", "VEVENT")
	of, id := tenant, tenant
	if w.Environment != "" {
		of, id = tenant+": "+w.Environment, tenant+"-"+w.Environment
	}
	f.line("UID", escape(start+"-"+id+"@"+site+".osupgrade"))
	f.line("DTSTAMP", now.UTC().Format(feedTime))
	f.line("DTSTART", start)
	f.line("DTEND", w.End.UTC().Format(feedTime))
	summary := "OS upgrades of " + of
	if w.Skipped != nil {
		summary = "Skipped: " + summary
	}
	f.line("SUMMARY", escape(summary))
	f.line("DESCRIPTION", escape(w.story()))
	f.line("TRANSP", "TRANSPARENT")
	f.line("END", "VEVENT")
}

// nothing is a zone that no event uses: a calendar must have a component
// (RFC 5545 3.6), and some readers take one without for damaged.
func (f *feed) nothing() {
	f.line("BEGIN", "VTIMEZONE")
	f.line("TZID", "UTC")
	f.line("BEGIN", "STANDARD")
	f.line("DTSTART", "19700101T000000")
	f.line("TZOFFSETFROM", "+0000")
	f.line("TZOFFSETTO", "+0000")
	f.line("END", "STANDARD")
	f.line("END", "VTIMEZONE")
}

// story tells in words where a window comes from and what cuts it.
func (w Window) story() string {
	lines := []string{"Lasts " + w.Length + "."}
	if s := w.Skipped; s != nil {
		lines = []string{"Skipped by " + s.By + ": " + s.Reason, lines[0]}
	}
	for _, s := range w.Sources {
		lines = append(lines, "Opened by "+s.String()+".")
	}
	for _, c := range w.Cuts {
		lines = append(lines, fmt.Sprintf("Cut by %s from %s to %s.", c, c.From.UTC().Format(time.RFC3339), c.To.UTC().Format(time.RFC3339)))
	}
	if w.StartMoved {
		lines = append(lines, "It starts late, as the clock skips the time at which it was to start.")
	}
	if w.EndMoved {
		lines = append(lines, "A change of the clock moves the time at which it ends.")
	}
	return strings.Join(lines, "\n")
}

// String names the source for people, who count windows from 1.
func (s WindowSource) String() string {
	if s.Window != nil {
		return "maintenance window " + strconv.Itoa(*s.Window+1)
	}
	return called(s.Calendar, s.Summary)
}

// String names the freeze for people.
func (c WindowCut) String() string { return called(c.Calendar, c.Summary) }

func called(calendar, summary string) string {
	if summary = strings.Join(strings.Fields(summary), " "); summary != "" {
		return "calendar " + calendar + " (" + summary + ")"
	}
	return "calendar " + calendar
}

// escape writes text as a value (RFC 5545 3.3.11).
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`).Replace(text)
}

// maxLine is how long a line is at most, in bytes, without its end (RFC 5545
// 3.1).
const maxLine = 75

// line writes a line, folded where it is too long, but never within a letter.
func (f *feed) line(name, value string) {
	rest, room := strings.ToValidUTF8(name+":"+value, "?"), maxLine
	for len(rest) > room {
		end := room
		for !utf8.RuneStart(rest[end]) {
			end--
		}
		f.text.WriteString(rest[:end] + "\r\n ")
		rest, room = rest[end:], maxLine-1
	}
	f.text.WriteString(rest + "\r\n")
}
