package v1

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// Canonical returns the calendar with each event in the one way to spell it:
// times without seconds that are none, the timezone written out, the duration
// in the fewest units. An iCalendar text stays as it is, and so does what is
// wrong. It shares no list with c.
func (c Calendar) Canonical() Calendar {
	c.Events = append([]Event(nil), c.Events...)
	for i := range c.Events {
		e := &c.Events[i]
		respell(&e.Duration)
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
