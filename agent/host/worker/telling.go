package worker

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// telling is what a worker remembers of the reports that it has sent of one kind.
type telling struct {
	told report.Told
	// since and sent count the bytes that were sent in a day.
	since time.Time
	sent  int
}

const day = 24 * time.Hour

// tells reports whether a report is to be sent: it is another one, or the site would take the
// one that it has for stale. limited reports that it is to be sent and must wait, because the
// host has sent too much in this day.
func (o telling) tells(kind *report.Kind, digest string, size int, now time.Time) (tell, limited bool) {
	if age := now.Sub(o.told.At); digest == o.told.Digest && (kind.Again == 0 || age >= 0 && age < kind.Again) {
		return false, false
	}
	o = o.today(now)
	if kind.MaxDay != 0 && o.sent+size > kind.MaxDay {
		return false, true
	}
	return true, false
}

// after returns what is remembered after a report was sent.
func (o telling) after(digest string, size int, now time.Time) telling {
	o = o.today(now)
	o.sent += size
	o.told = report.Told{Digest: digest, At: now}
	return o
}

// today begins the next day if it is due. A clock that was set back begins one, too.
func (o telling) today(now time.Time) telling {
	if age := now.Sub(o.since); age < 0 || age >= day {
		o.since, o.sent = now, 0
	}
	return o
}
