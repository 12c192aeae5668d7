package gate

import (
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// daily bounds what each host reports in a day (report.Kind.MaxDay). Workers count too, so only
// a host that does not keep to the protocol is refused. A restart of the site counts anew.
type daily struct {
	mu   sync.Mutex
	sent map[reporter]sent
}

// reporter is a host that sends reports of a kind.
type reporter struct {
	host string
	kind *report.Kind
}

// sent is what a reporter has sent in the day that began at since. The last report is counted
// once, however often it is sent again: a host repeats a call whose answer was lost.
type sent struct {
	since time.Time
	bytes int
	last  string
}

const day = 24 * time.Hour

// takes counts a report and reports whether the day of its host has room for it.
func (d *daily) takes(host string, r report.Report, now time.Time) bool {
	if r.Kind.MaxDay == 0 {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	by, digest := reporter{host, r.Kind}, report.Digest(r.Body)
	s := d.sent[by]
	if age := now.Sub(s.since); age < 0 || age >= day {
		s.since, s.bytes = now, 0
	}
	if s.last != digest {
		s.bytes += len(r.Body)
	}
	if s.bytes > r.Kind.MaxDay {
		return false
	}
	s.last = digest
	if d.sent == nil {
		d.sent = map[reporter]sent{}
	}
	d.sent[by] = s
	return true
}
