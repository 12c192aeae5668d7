// Package busy reads, writes and watches the busy leases of a host: files by which
// programs say that the host is not to be upgraded now.
//
// It decides which files count and until when. It never knows runs or the site, and
// deletes no file but one that it was told to.
package busy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/smallfile"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Where the leases are unless somebody says otherwise, and how long one counts at most.
const (
	DefaultDir   = "/run/osupgrade/busy"
	DefaultLimit = 4 * time.Hour
)

// Lease is the content of a file.
type Lease struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until"`
	// PID is the process that works meanwhile, for people; 0 for none.
	PID int `json:"pid,omitempty"`
}

// Found is a file in the folder, as it counts.
type Found struct {
	// Name is that of the file.
	Name string
	Lease
	// Ends is until when the file counts; zero for one that never does.
	Ends time.Time
	// Problem says what is wrong with it, and what would be right; nil when nothing is.
	Problem error
}

// CountsAt reports whether the file says "not now" at a time.
func (f Found) CountsAt(now time.Time) bool { return now.Before(f.Ends) }

const (
	// maxSize bounds a file, in bytes, and maxFiles how many are read.
	maxSize  = 4096
	maxFiles = 100
	// maxSeen bounds the file of what the worker has seen of them: a name has 255 bytes.
	maxSeen = 64 << 10
)

// file is what there is of a file before it is judged.
type file struct {
	smallfile.File
	// first is when it was seen first.
	first time.Time
}

// judge decides how a file counts for a worker that runs as the user self. No file counts
// for longer than the limit from when it was first seen, whatever it says. A file that is
// somebody else's never counts; one that cannot be read counts until the limit, because
// whoever wrote it wanted the host to be left alone.
func judge(f file, limit time.Duration, self int) Found {
	last := f.first.Add(limit)
	found := Found{Name: f.Name}
	switch {
	case !f.Mode.IsRegular():
		found.Problem = fmt.Errorf("busy lease %s does not count: it is no regular file; write a file of JSON", f.Name)
		return found
	case !f.IsTrusted(self):
		found.Problem = fmt.Errorf("busy lease %s does not count: it belongs to user %d; it should belong to root or to the worker's user %d", f.Name, f.Owner, self)
		return found
	}
	lease, err := read(f)
	switch {
	case err != nil:
		found.Problem = fmt.Errorf("busy lease %s cannot be read: %w; it counts until %s", f.Name, err, stamp(last))
		found.Reason, found.Until = found.Problem.Error(), last
	case lease.Until.After(last):
		found.Lease = lease
		found.Problem = fmt.Errorf("busy lease %s ends at %s, beyond the worker's --busy-limit of %s; it counts until %s", f.Name, stamp(lease.Until), limit, stamp(last))
	default:
		found.Lease = lease
	}
	found.Ends = earlier(found.Until, last)
	return found
}

func read(f file) (lease Lease, err error) {
	switch {
	case f.Err != nil:
		return lease, f.Err
	case f.Size > maxSize:
		return lease, fmt.Errorf("it has %d bytes; use at most %d", f.Size, maxSize)
	}
	if err := format.Busy.Decode(f.Body, &lease); err != nil {
		if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("%s is a JSON %s", cmp.Or(typed.Field, "it"), typed.Value)
		}
		return lease, fmt.Errorf(`%w; use {"format":%d,"reason":"backup","until":"2026-01-31T04:00:00Z"}`, err, format.Busy.Newest)
	}
	if lease.Until.IsZero() {
		return lease, errors.New(`until is missing; use a time such as "2026-01-31T04:00:00Z"`)
	}
	lease.Reason = message.NewNotNow(lease.Reason, lease.Until).Reason
	return lease, nil
}

// NotNow sums files up: the reason and the end are those of the file that counts longest.
// It is nil if none counts.
func NotNow(all []Found, now time.Time) *message.NotNow {
	counting := slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return !f.CountsAt(now) })
	if len(counting) == 0 {
		return nil
	}
	last := slices.MaxFunc(counting, func(a, b Found) int { return a.Ends.Compare(b.Ends) })
	reason := last.Reason
	if more := len(counting) - 1; more > 0 {
		reason += fmt.Sprintf(" (and %s)", text.Count(more, "other lease", "other leases"))
	}
	said := message.NewNotNow(reason, last.Ends)
	return &said
}

// nextEnd is when the next file ceases to count; zero when none counts.
func nextEnd(all []Found, now time.Time) (next time.Time) {
	for _, f := range all {
		if f.CountsAt(now) && (next.IsZero() || f.Ends.Before(next)) {
			next = f.Ends
		}
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
