// Package fetch fetches the calendars of tenants that are declared by a URL, each on its
// schedule, and keeps what it fetched in the store. Only what is in the store is in force: the
// controller reads it there.
//
// After and Due decide what follows from an answer, and when to ask next; they read no clock. A
// Fetcher is the loop around them. It changes no calendar that people declare, and an answer that
// is not a whole calendar never replaces the events that were fetched before.
package fetch

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// firstRetry is how long after a failed try the next one is made. It doubles with each
	// that fails, up to how often the calendar is fetched.
	firstRetry = time.Minute
	// maxRetryAfter bounds for how long a source may ask to be left alone.
	maxRetryAfter = 24 * time.Hour
	// maxError bounds the text of an error, in bytes.
	maxError = 500
)

// Answer is what a source has answered.
type Answer struct {
	// Err says why there is no answer; empty if there is one.
	Err    string
	Status int
	Body   string
	// ContentType, ETag and LastModified are headers, RetryAfter is how long the source asks to
	// be left alone.
	ContentType, ETag, LastModified string
	RetryAfter                      time.Duration
}

// Target is a calendar with a URL, as it is declared.
type Target struct {
	Tenant, Name string
	Calendar     v1.Calendar
	// Revision is the number of its revision.
	Revision uint64
	// Read tells that this process has read a whole text for the calendar. An older version may
	// have read the text that was kept before, and made something else of it.
	Read bool
}

// Due returns when to fetch a calendar of which the site keeps a copy; nil means none. A
// calendar that was written anew is due at once. What was planned by a clock that was ahead is
// not waited for.
func Due(t Target, kept *v1.CalendarCopy, now time.Time) time.Time {
	if kept == nil || kept.Revision != t.Revision || kept.URL != t.Calendar.URL {
		return now
	}
	if latest := now.Add(max(t.every(), maxRetryAfter)); kept.Next.After(latest) {
		return now
	}
	return kept.Next
}

// current reports whether what the site keeps was read by this process, for this revision of the
// calendar. If not, it is asked for as a whole: another version of the program, or another
// revision, may take other events from the same text.
func (t Target) current(kept *v1.CalendarCopy) bool {
	return t.Read && kept != nil && kept.Source == t.Calendar.URL && kept.Revision == t.Revision
}

// every is how often the calendar is fetched: up to a tenth longer than declared, each calendar by
// another part of it, so that those of many sites do not ask at once.
func (t Target) every() time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Tenant + "\n" + t.Name + "\n" + t.Calendar.URL))
	every := t.Calendar.RefreshEvery()
	return every + every/10*time.Duration(h.Sum32()%1000)/1000
}

// After returns what the site keeps of a calendar after an answer. kept is what it kept before;
// nil means nothing.
func After(t Target, kept *v1.CalendarCopy, a Answer, now time.Time) v1.CalendarCopy {
	now = now.UTC()
	var next v1.CalendarCopy
	if kept != nil {
		next = *kept
	}
	if next.URL != t.Calendar.URL { // It is another source that has failed so far.
		next.Tries, next.Error, next.FailingSince = 0, "", time.Time{}
	}
	current := t.current(kept)
	if !current {
		next.ETag, next.LastModified = "", ""
	}
	next.URL, next.Revision = t.Calendar.URL, t.Revision
	why := take(&next, t, a, current, now)
	if why == "" {
		if next.Failing() {
			next.RecoveredAt = now
		}
		next.Tries, next.Error, next.FailingSince = 0, "", time.Time{}
		next.Next = now.Add(t.every())
		return next
	}
	if next.Tries == 0 {
		next.FailingSince = now
	}
	next.Tries++
	next.Error = text.Cut(why, maxError, "…")
	next.Next = now.Add(max(retryAfter(next.Tries, t.every()), min(a.RetryAfter, maxRetryAfter)))
	return next
}

// retryAfter is how long after so many failed tries the next one is made.
func retryAfter(tries int, every time.Duration) time.Duration {
	after := firstRetry
	for range tries - 1 {
		if after *= 2; after >= every {
			return every
		}
	}
	return after
}

// take puts what was answered into a copy, or returns why it cannot be used.
func take(next *v1.CalendarCopy, t Target, a Answer, current bool, now time.Time) (why string) {
	switch {
	case a.Err != "":
		return a.Err
	case a.Status == http.StatusNotModified && current:
		next.FetchedAt = now
		return ""
	case a.Status != http.StatusOK:
		return unexpected(a)
	case len(a.Body) > v1.MaxCalendar:
		return fmt.Sprintf("the answer is longer than %d bytes; publish less in one calendar, such as no past events", v1.MaxCalendar)
	}
	events, leftOut, wrong := v1.PublishedEvents(t.Calendar.Kind, a.Body)
	if len(wrong) > 0 {
		return notCalendar(a, wrong)
	}
	switch {
	case next.Source != t.Calendar.URL:
		next.EmptiedAt = time.Time{}
	case len(events) == 0 && len(next.Events) > 0:
		next.EmptiedAt = now
	}
	if next.Source != t.Calendar.URL || !sameEvents(events, next.Events) {
		next.Events, next.ChangedAt = events, now
	}
	next.LeftOut = nil
	for _, p := range leftOut {
		next.LeftOut = append(next.LeftOut, p.String())
	}
	next.Source, next.FetchedAt, next.ETag, next.LastModified = t.Calendar.URL, now, a.ETag, a.LastModified
	return ""
}

func sameEvents(a, b []v1.Event) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

// unexpected says what to do about a status.
func unexpected(a Answer) string {
	said := strings.TrimSpace(fmt.Sprintf("the server answers %d %s", a.Status, http.StatusText(a.Status)))
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return said + "; use the address that the calendar program gives out for subscribing without a login, and check that it is still shared"
	case http.StatusTooManyRequests:
		return said + "; fetch it less often (refresh)"
	}
	return said
}

// notCalendar says what is wrong with a text that was answered.
func notCalendar(a Answer, wrong v1.Problems) string {
	if media, _, _ := strings.Cut(a.ContentType, ";"); strings.EqualFold(strings.TrimSpace(media), "text/html") {
		return "the answer is a web page and not an iCalendar text; use the address for subscribing, which often ends in .ics"
	}
	said := wrong[0].String()
	if more := len(wrong) - 1; more > 0 {
		said += fmt.Sprintf(", and %d more", more)
	}
	return "the answer cannot be used: " + said
}
