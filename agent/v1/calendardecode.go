package v1

import "github.com/osupgrade/terraform-provider-osupgrade/agent/document"

// DecodeCalendar reads a body and validates it, as DecodeOSUpgrade does.
func DecodeCalendar(contentType string, body []byte) (Calendar, error) {
	return Calendar{}.Merge(contentType, body)
}

// Merge returns the calendar with the members that are in a body of PATCH in
// place of its own. The error is that of DecodeCalendar.
func (c Calendar) Merge(contentType string, body []byte) (Calendar, error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return Calendar{}, problems(err)
	}
	merged := readCalendar(d.Root(), c)
	if err := d.Err(merged.Validate()...); err != nil {
		return Calendar{}, problems(err)
	}
	return merged, nil
}

// readCalendar reads the members that are there over those of c.
func readCalendar(o document.Object, c Calendar) Calendar {
	for key, into := range map[string]*string{"kind": &c.Kind, "description": &c.Description, "ics": &c.ICS} {
		if o.Has(key) {
			*into, _ = o.Text(key)
		}
	}
	if o.Has("events") {
		if c.Events = each(o, "events", readEvent); len(c.Events) == 0 {
			c.Events = nil
		}
	}
	return c
}

func readEvent(o document.Object) Event {
	var e Event
	for key, into := range map[string]*string{
		"summary": &e.Summary, "start": &e.Start, "end": &e.End, "duration": &e.Duration,
		"timezone": &e.Timezone, "rrule": &e.RRule,
	} {
		*into, _ = o.Text(key)
	}
	e.AllDay, _ = o.Bool("all-day")
	e.RDate, e.ExDate = texts(o, "rdate"), texts(o, "exdate")
	return e
}
