package run

import (
	"fmt"
	"strings"
	"time"
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

// list is names as people read them.
func list(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}
