package v1

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// CalendarState tells what the site fetched of a calendar with a URL: an entry of
// /v1/state/tenants/{tenant}/os-upgrade/calendars.
type CalendarState struct {
	Name string `json:"name"`
	// Kind is allow or freeze.
	Kind string `json:"kind"`
	// Host is the host of the URL. The rest of a URL may be a secret.
	Host string `json:"host"`
	// Status is waiting (for the first answer), fetched, retrying or failing.
	Status string `json:"status"`
	// FetchedAt is when the calendar was last fetched, or found to be unchanged, and
	// ChangedAt when the events last changed; absent if it was never fetched.
	FetchedAt *time.Time `json:"fetched-at,omitempty"`
	ChangedAt *time.Time `json:"changed-at,omitempty"`
	// NextFetch is when the site fetches it again.
	NextFetch *time.Time `json:"next-fetch,omitempty"`
	// Error says why the last try failed, Tries how many have failed in a row, and
	// FailingSince when the first of these was; absent when the last try succeeded.
	Error        string     `json:"error,omitempty"`
	Tries        int        `json:"tries,omitempty"`
	FailingSince *time.Time `json:"failing-since,omitempty"`
	// EventCount is the number of events. Events are the events; only in the answer for one
	// calendar, and in a list with content=true.
	EventCount int     `json:"event-count"`
	Events     []Event `json:"events,omitempty"`
	// LeftOut says which events of the text never happen or are earlier revisions of others.
	LeftOut []string `json:"left-out,omitempty"`
}

// The values of CalendarState.Status.
const (
	CalendarWaiting  = "waiting"
	CalendarFetched  = "fetched"
	CalendarRetrying = "retrying"
	// CalendarFailing means that at least FailingTries tries in a row have failed.
	CalendarFailing = "failing"
)

// FailingTries is after how many failed tries in a row people are told.
const FailingTries = 3

// CalendarCopy is what a site keeps of a calendar with a URL: the events that it fetched
// last, and how the last try went.
type CalendarCopy struct {
	// URL is the address of the last try, Revision that of the calendar that named it.
	URL      string `json:"url"`
	Revision uint64 `json:"revision"`
	// Source is the address from which Events were fetched; empty if they never were.
	Source  string   `json:"source,omitempty"`
	Events  []Event  `json:"events,omitempty"`
	LeftOut []string `json:"left-out,omitempty"`
	// FetchedAt is when they were fetched, or found to be unchanged, ChangedAt when they
	// last changed. ETag and LastModified are the source's.
	FetchedAt    time.Time `json:"fetched-at,omitzero"`
	ChangedAt    time.Time `json:"changed-at,omitzero"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last-modified,omitempty"`
	// Error says why the last try failed; Tries counts those that have failed in a row, from
	// FailingSince on.
	Error        string    `json:"error,omitempty"`
	Tries        int       `json:"tries,omitempty"`
	FailingSince time.Time `json:"failing-since,omitzero"`
	// RecoveredAt is when a row of failed tries last ended that people were told of.
	RecoveredAt time.Time `json:"recovered-at,omitzero"`
	// EmptiedAt is when the source last had no events any more after it had some.
	EmptiedAt time.Time `json:"emptied-at,omitzero"`
	// Next is when to fetch next.
	Next time.Time `json:"next"`
}

// Failing reports whether so many tries have failed in a row that people are told.
func (c CalendarCopy) Failing() bool { return c.Tries >= FailingTries }

// In returns a calendar as it is in force: one with a URL has the events of its copy. known
// is false if these were never fetched. A nil copy is none.
func (c *CalendarCopy) In(declared Calendar) (inForce Calendar, known bool) {
	if declared.URL == "" {
		return declared, true
	}
	known = c != nil && c.Source == declared.URL
	if inForce = declared; known {
		inForce.Events = c.Events
	}
	inForce.URL, inForce.Refresh = "", ""
	return inForce, known
}

// State returns what is shown of a calendar with a URL. A nil copy is none.
func (c *CalendarCopy) State(name string, declared Calendar) CalendarState {
	s := CalendarState{Name: name, Kind: declared.Kind, Host: declared.Host(), Status: CalendarWaiting}
	if c == nil {
		return s
	}
	if c.Source == declared.URL {
		s.Status, s.EventCount, s.Events, s.LeftOut = CalendarFetched, len(c.Events), c.Events, c.LeftOut
		s.FetchedAt, s.ChangedAt = shownTime(c.FetchedAt), shownTime(c.ChangedAt)
	}
	if c.URL != declared.URL {
		return s
	}
	s.NextFetch = shownTime(c.Next)
	if c.Error != "" {
		s.Error, s.Tries, s.FailingSince, s.Status = c.Error, c.Tries, shownTime(c.FailingSince), CalendarRetrying
	}
	if c.Failing() {
		s.Status = CalendarFailing
	}
	return s
}

// shownTime is a time as the API shows it; nil for none.
func shownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Truncate(time.Second))
}

// RefreshEvery is how often a calendar with a URL is fetched.
func (c Calendar) RefreshEvery() time.Duration {
	if every, err := window.ParseDurationWithin(c.Refresh, MinRefresh, MaxRefresh); err == nil {
		return every
	}
	return DefaultRefresh
}

// Host is the host of the calendar's URL, with a port if it has one; empty without a URL.
func (c Calendar) Host() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Recorded returns the calendar as an audit record shows it: in canonical form, and with a sum
// for all of the URL but its host, because it may be a secret.
func (c Calendar) Recorded() Calendar {
	c = c.Canonical()
	if c.URL != "" {
		c.URL = fmt.Sprintf("https://%s/(sha256:%.6x)", c.Host(), sha256.Sum256([]byte(c.URL)))
	}
	return c
}

// validateURL returns what is wrong with the URL, and with what goes with it.
func (c Calendar) validateURL() (found Problems) {
	if c.URL == "" {
		if c.Refresh != "" {
			found = append(found, document.Wrong("refresh", c.Refresh, "is for a calendar with a url, and this one has none; leave it out"))
		}
		return found
	}
	u, wrong := readURL(c.URL, "https://calendar.example/freeze.ics", "use the secret address that calendar programs give out for sharing")
	switch {
	case wrong != "":
	case u.Scheme == "webcal", u.Scheme == "webcals":
		wrong = "is not https; write https instead of " + u.Scheme
	case u.Scheme != "https":
		wrong = "is not https; use https, so that nobody on the way can change the calendar"
	}
	if wrong != "" {
		found = append(found, Problem{Field: "url", Message: "the address " + wrong}) // It may be a secret.
	}
	if len(c.Events) > 0 || c.icsText() != "" {
		found = append(found, Problem{Field: "url", Message: "cannot stand beside events or an iCalendar text; use one of them"})
	}
	if c.Refresh != "" {
		if _, err := window.ParseDurationWithin(c.Refresh, MinRefresh, MaxRefresh); err != nil {
			found = append(found, Problem{Field: "refresh", Value: document.Clip(c.Refresh), Message: err.Error()})
		}
	}
	return found
}

// PublishedEvents returns the events of an iCalendar text that somebody publishes for a calendar
// of a kind, and what is left out of them. Their order does not depend on that in the text. With
// any problem it returns no events.
func PublishedEvents(kind, ics string) (events []Event, leftOut, found Problems) {
	parsed, never, wrong := calendar.Published(ics)
	if len(parsed) > 0 { // Whether they fit the kind.
		_, wrong = calendar.Parse("", calendar.Text{Kind: kind, ICS: &ics})
	}
	if len(wrong) > 0 {
		return nil, nil, problemsOf(wrong)
	}
	for _, e := range parsed {
		events = append(events, Event(e))
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return events, problemsOf(never), Calendar{Kind: kind, Events: events}.Validate()
}
