package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
)

// sooner is the earlier of two times; the zero time is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// earlier is the earlier of two times; the zero time is the earliest.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// stamp is a time as texts for people have it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// maxNames bounds how many hosts a sentence names.
const maxNames = 3

// list lists the first few of names.
func list(names []string) string { return text.List(names, maxNames) }
