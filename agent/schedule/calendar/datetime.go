package calendar

import (
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// dateTime is a date or a wall-clock time in a zone. wall is the instant with
// the same time in UTC; for a date it is midnight.
type dateTime struct {
	wall time.Time
	date bool
	zone window.Zone
}

// The years that a calendar may name. Any other year is probably a typing error.
const firstYear, lastYear = 1970, 2199

var (
	// floating is the zone of a dateTime without a zone.
	floating = window.Zone{}
	utc      = mustZone("UTC")
)

func mustZone(name string) window.Zone {
	zone, err := window.ParseZone(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// parseBasic parses a DATE or DATE-TIME of iCalendar. A trailing Z means UTC,
// whatever zone is given.
func parseBasic(text string, zone window.Zone) (dateTime, error) {
	const form = "use 20261224 or 20261224T180000"
	if wall, err := time.Parse("20060102", text); err == nil {
		return dateTime{wall: wall, date: true, zone: zone}.checked(text)
	}
	if wall, err := time.Parse("20060102T150405Z", text); err == nil && len(text) == len("20060102T150405Z") {
		return dateTime{wall: wall, zone: utc}.checked(text)
	}
	if wall, err := time.Parse("20060102T150405", text); err == nil && len(text) == len("20060102T150405") {
		return dateTime{wall: wall, zone: zone}.checked(text)
	}
	return dateTime{}, fmt.Errorf("%s is not a date or a time; %s", quote(text), form)
}

// parsePlain parses a date or a wall-clock time in the form of an event's fields.
func parsePlain(text string, zone window.Zone) (dateTime, error) {
	if wall, err := time.Parse(time.DateOnly, text); err == nil {
		return dateTime{wall: wall, date: true, zone: zone}.checked(text)
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if wall, err := time.Parse(layout, text); err == nil && len(text) == len(layout) {
			return dateTime{wall: wall, zone: zone}.checked(text)
		}
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return dateTime{}, fmt.Errorf("%s has an offset; write the wall-clock time, such as 2026-12-24T18:00, and name its zone in timezone", quote(text))
	}
	return dateTime{}, fmt.Errorf("%s is not a date or a time; use 2026-12-24 or 2026-12-24T18:00", quote(text))
}

func (s dateTime) checked(text string) (dateTime, error) {
	if year := s.wall.Year(); year < firstYear || year > lastYear {
		return dateTime{}, fmt.Errorf("%s is in the year %d; use %d to %d", quote(text), year, firstYear, lastYear)
	}
	return s, nil
}

var errZones = errors.New("names a zone, but the event goes by the clock of its site; write both with a zone, or neither")

// in converts the dateTime to another zone. A date stays the same date.
func (s dateTime) in(zone window.Zone) (dateTime, error) {
	if s.date || s.zone == zone {
		s.zone = zone
		return s, nil
	}
	if zone == floating || s.zone == floating {
		return dateTime{}, errZones
	}
	return dateTime{wall: window.NewClock(zone.Location(nil)).Wall(s.instant()), zone: zone}, nil
}

// errEnded is the error of a rule that ends before its event starts.
var errEnded = errors.New("is before the event starts; use a later date")

// untilOf parses the UNTIL of an event's rule, the last wall-clock time that may
// be a start. A date includes the whole day. Many programs write a time in UTC
// also for an all-day event; without a zone its date counts.
func untilOf(text string, start dateTime) (time.Time, error) {
	until, err := parseBasic(text, start.zone)
	if err == nil && start.date && start.zone == floating {
		until = dateTime{wall: midnight(until.wall), date: true}
	}
	if err == nil {
		until, err = until.in(start.zone)
	}
	switch {
	case err != nil:
		return time.Time{}, err
	case until.date:
		until.wall = until.wall.Add(day - 1)
	}
	if until.wall.Before(start.wall) {
		return time.Time{}, errEnded
	}
	return until.wall, nil
}

// instant returns the first instant at which the clock shows the dateTime or
// later. The zone must not be floating.
func (s dateTime) instant() time.Time { return window.NewClock(s.zone.Location(nil)).First(s.wall) }

// String returns the form of an event's fields.
func (s dateTime) String() string {
	if s.date {
		return s.wall.Format(time.DateOnly)
	}
	return s.wall.Format("2006-01-02T15:04:05")
}
