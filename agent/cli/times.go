package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// timeFlags say in which zone times are shown.
type timeFlags struct {
	UTC bool `help:"Show times in UTC (default: in your time zone)." name:"utc"`
}

// timeFormat shows times to people: with their date and their zone, because who reads them
// may be at another place or read them on another day.
type timeFormat struct {
	zone *time.Location
	now  time.Time
}

// format returns how this command shows times: in the zone of whoever typed it, which is
// that of the machine or of the variable TZ.
func (f timeFlags) format() timeFormat {
	if f.UTC {
		return timeFormat{time.UTC, time.Now()}
	}
	return timeFormat{time.Local, time.Now()}
}

// at shows an instant, such as "Sat 2026-11-21 01:00:00 CET".
func (f timeFormat) at(t time.Time) string { return t.In(f.zone).Format("Mon 2006-01-02 15:04:05 MST") }

// in shows how long it is until an instant, or since it, to the second.
func (f timeFormat) in(t time.Time) string {
	d := f.now.Sub(t).Abs().Truncate(time.Second)
	return window.FormatDuration(d)
}

// age shows how long ago an instant is: to the hour after a day, to the minute before.
func (f timeFormat) age(t time.Time) string {
	age := max(0, f.now.Sub(t))
	switch {
	case age < time.Minute:
		return "less than 1m"
	case age < 24*time.Hour:
		return window.FormatDuration(age.Truncate(time.Minute))
	}
	return window.FormatDuration(age.Truncate(time.Hour))
}

// since shows when something began and how long ago that is.
func (f timeFormat) since(t time.Time) string {
	if !t.Before(f.now) {
		return "since " + f.at(t)
	}
	return "since " + f.at(t) + ", for " + f.in(t)
}

// instants are how texts of the site name times.
var instants = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// text shows a text of the site with its times as at shows them. What comes after the first
// colon and blank is shown as it is: there the site quotes others, such as a person's reason,
// what a host has printed, or a command to copy. A text that is the words of others as a
// whole is no case for text.
func (f timeFormat) text(s string) string {
	own, quoted := s, ""
	if i := strings.Index(s, ": "); i >= 0 {
		own, quoted = s[:i], s[i:]
	}
	return instants.ReplaceAllStringFunc(own, func(found string) string {
		t, err := time.Parse(time.RFC3339, found)
		if err != nil { // Such as the 31st of February.
			return found
		}
		return f.at(t)
	}) + quoted
}

// refusal shows the times in why the site refuses to start, change or end a run.
func (f timeFormat) refusal(err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	shown := *refused
	shown.Errors = slices.Clone(refused.Errors)
	for i := range shown.Errors {
		shown.Errors[i].Message = f.text(shown.Errors[i].Message)
	}
	return &shown
}
