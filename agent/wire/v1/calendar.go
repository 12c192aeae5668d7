package v1

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// The limits of calendars, besides those of package calendar.
const (
	// MaxCalendars is how many calendars a tenant may have.
	MaxCalendars = 100
	// MaxCalendar is the maximum length of a calendar as JSON, in bytes. It is that of
	// a request body, whatever form the calendar has in the body.
	MaxCalendar = MaxBody
	// DefaultRefresh is how often a calendar is fetched from its URL.
	DefaultRefresh = time.Hour
	// MinRefresh is how often it is fetched at most, MaxRefresh at least.
	MinRefresh = 15 * time.Minute
	MaxRefresh = 7 * 24 * time.Hour
)

// Calendar is a named set of spans, the object at
// /v1/config/tenants/{tenant}/os-upgrade/calendars/{name}: as events, as an iCalendar text,
// or as the URL of one. A calendar without any of them has no events.
type Calendar struct {
	// Kind is allow (more windows) or freeze (no run, whatever else is open).
	Kind string `json:"kind"`
	// Description is for people.
	Description string  `json:"description,omitempty"`
	Events      []Event `json:"events,omitempty"`
	// ICS is a whole iCalendar text (RFC 5545), kept as it is; nil means that there is
	// none. An empty text is invalid unless there are events, which then replace the text.
	ICS *string `json:"ics,omitempty"`
	// URL is the https address of an iCalendar text, which the site fetches at regular intervals.
	// Anyone who can read the configuration can read it.
	URL string `json:"url,omitempty"`
	// Refresh is how often the site fetches the text: from "15m" to "7d"; "1h" if absent.
	Refresh string `json:"refresh,omitempty"`
}

// Event is one event of a calendar. Times are those of the wall clock in Timezone, such as
// "2026-12-24T18:00"; for an all-day event they are dates.
type Event struct {
	Summary string `json:"summary,omitempty"`
	Start   string `json:"start"`
	// End of an all-day event is the day after its last. An event has an end or a duration;
	// an all-day event may have neither and then lasts one day.
	End string `json:"end,omitempty"`
	// Duration is a length of elapsed time, such as "4h" or "1d4h18s".
	Duration string `json:"duration,omitempty"`
	// Timezone is "site-local", "UTC" or an IANA name; empty means site-local.
	Timezone string `json:"timezone,omitempty"`
	AllDay   bool   `json:"all-day,omitempty"`
	// RRule is a recurrence rule, such as "FREQ=YEARLY" (RFC 5545 3.3.10).
	RRule string `json:"rrule,omitempty"`
	// RDate lists additional starts, ExDate starts to skip.
	RDate  []string `json:"rdate,omitempty"`
	ExDate []string `json:"exdate,omitempty"`
}

// CalendarInfo is an entry of the list at
// /v1/config/tenants/{tenant}/os-upgrade/calendars.
type CalendarInfo struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	Description string `json:"description,omitempty"`
	// Events is the number of events, including those of an iCalendar text.
	Events int `json:"events"`
	// ETag is the ETag of the calendar.
	ETag string `json:"etag,omitempty"`
	// Calendar is the calendar itself; only in a list with content=true.
	Calendar *Calendar `json:"calendar,omitempty"`
	// Fetched is what the site fetched last, of a calendar with a URL; only in a list with
	// content=true.
	Fetched *CalendarState `json:"fetched,omitempty"`
}

// Info returns the calendar's entry in a list.
func (c Calendar) Info(name, etag string) CalendarInfo {
	events := len(c.Events)
	for line := range strings.Lines(c.icsText()) {
		if strings.EqualFold(strings.TrimSpace(line), "BEGIN:VEVENT") {
			events++
		}
	}
	return CalendarInfo{Name: name, Kind: c.Kind, Description: c.Description, Events: events, ETag: etag}
}

func (c Calendar) icsText() string {
	if c.ICS == nil {
		return ""
	}
	return *c.ICS
}

// DecodeCalendar reads a body and validates it, as DecodeOSUpgrade does.
func DecodeCalendar(contentType string, body []byte) (Calendar, error) {
	c, err := decode(contentType, body, Calendar{}, Calendar.Validate)
	return c.withoutEmptyText(), err
}

// NewCalendar is the body of POST .../os-upgrade/calendars: a calendar and its name.
type NewCalendar struct {
	Name string `json:"name"`
	// Kind is allow (more windows) or freeze (no run, whatever else is open).
	Kind        string  `json:"kind"`
	Description string  `json:"description,omitempty"`
	Events      []Event `json:"events,omitempty"`
	// ICS is a whole iCalendar text (RFC 5545), kept as it is.
	ICS *string `json:"ics,omitempty"`
	// URL is the https address of an iCalendar text, which the site fetches at regular intervals.
	URL string `json:"url,omitempty"`
	// Refresh is how often the site fetches the text: from "15m" to "7d"; "1h" if absent.
	Refresh string `json:"refresh,omitempty"`
}

// DecodeNewCalendar reads the body of a request that creates a calendar; its error and keep
// are those of Form.Decode.
func DecodeNewCalendar(contentType string, body []byte, keep bool) (name string, c Kept[Calendar], err error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return "", c, err
	}
	var wrong Problems
	if name, _ = d.Root().Text("name"); !names.Valid(name) {
		wrong = Problems{document.Wrong("name", name, "is not the name of a calendar; "+names.Form)}
	}
	c, err = CalendarForm.fill(c, d, keep, wrong...)
	return name, c, err
}

// withoutEmptyText returns the calendar without an iCalendar text that is empty.
func (c Calendar) withoutEmptyText() Calendar {
	if c.icsText() == "" {
		c.ICS = nil
	}
	return c
}

// Parse reads the calendar for calculating with it. It looks at the canonical
// form, so that an event which is there twice in two spellings is found. One with a URL has
// no events here; see In.
func (c Calendar) Parse(name string) (*calendar.Calendar, Problems) {
	parsed, wrong := calendar.Parse(name, c.Canonical().text())
	return parsed, problemsOf(wrong)
}

func problemsOf(wrong []calendar.Problem) Problems {
	var found Problems
	for _, p := range wrong {
		found = append(found, Problem{Field: p.Path, Value: document.Clip(p.Value), Message: p.Message()})
	}
	return found
}

// EventsOf returns the events of an iCalendar text, which happen at the same times, and what
// is left out of them. With any problem it returns no events.
func EventsOf(ics string) (events []Event, leftOut, found Problems) {
	parsed, never, wrong := calendar.Events(ics)
	for _, e := range parsed {
		events = append(events, Event(e))
	}
	return events, problemsOf(never), problemsOf(wrong)
}

func (c Calendar) text() calendar.Text {
	text := calendar.Text{Kind: c.Kind, ICS: c.ICS}
	for _, e := range c.Events {
		text.Events = append(text.Events, calendar.EventText(e))
	}
	return text
}

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (c Calendar) Validate() Problems {
	_, found := c.Parse("")
	found = append(found, c.validateURL()...)
	for _, p := range validateReason(c.Description) {
		p.Field = "description"
		found = append(found, p)
	}
	if size, err := c.size(); err != nil || size > MaxCalendar {
		found = append(found, Problem{Message: fmt.Sprintf("the calendar is %d bytes long; use at most %d, or several calendars", size, MaxCalendar)})
	}
	return found
}

// size is how long the calendar is as JSON.
func (c Calendar) size() (int, error) {
	text, err := json.Marshal(c)
	return len(text), err
}

// Canonical returns the calendar with each event in the one way to spell it:
// times without seconds that are none, the timezone written out, the duration
// in the fewest units. An iCalendar text stays as it is, and so does what is
// wrong. It shares no list with c.
func (c Calendar) Canonical() Calendar {
	c.Events = append([]Event(nil), c.Events...)
	if every, err := window.ParseDuration(c.Refresh); err == nil {
		c.Refresh = window.FormatDuration(every)
	}
	for i := range c.Events {
		e := &c.Events[i]
		if length, err := window.ParseDuration(e.Duration); err == nil {
			e.Duration = window.FormatDuration(length)
		}
		if zone, err := window.ParseZone(e.Timezone); err == nil {
			e.Timezone = zone.String()
		}
		e.RDate, e.ExDate = append([]string(nil), e.RDate...), append([]string(nil), e.ExDate...)
		respellTimes(&e.Start, &e.End)
		for n := range e.RDate {
			respellTimes(&e.RDate[n])
		}
		for n := range e.ExDate {
			respellTimes(&e.ExDate[n])
		}
	}
	return c
}

func respellTimes(texts ...*string) {
	const seconds, minutes = "2006-01-02T15:04:05", "2006-01-02T15:04"
	for _, text := range texts {
		if at, err := time.Parse(seconds, *text); err == nil && len(*text) == len(seconds) && at.Second() == 0 {
			*text = at.Format(minutes)
		}
	}
}
