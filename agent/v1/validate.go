package v1

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// The limits of a configuration and of a start request.
const (
	MaxWindows      = 100
	MaxApplications = 1000
	// MaxReason bounds a reason, in characters.
	MaxReason = 1000
)

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (o OSUpgrade) Validate() Problems {
	return append(o.validateApplications(), o.validateWindows()...)
}

func (o OSUpgrade) validateApplications() Problems {
	const field = "worker-applications"
	if n := len(o.WorkerApplications); n > MaxApplications {
		return Problems{tooMany(field, n, MaxApplications)}
	}
	var found Problems
	first := map[string]int{}
	for i, application := range o.WorkerApplications {
		path, name := fmt.Sprintf("%s[%d].name", field, i), application.Name
		other, twice := first[name]
		switch {
		case !ValidName(name):
			found = append(found, problem(path, name, notAName))
		case twice:
			found = append(found, problem(path, name, fmt.Sprintf("is %s[%d] again; name each application once", field, other)))
		default:
			first[name] = i
		}
	}
	return found
}

func (o OSUpgrade) validateWindows() Problems {
	const field = "maintenance-windows"
	if n := len(o.MaintenanceWindows); n > MaxWindows {
		return Problems{tooMany(field, n, MaxWindows)}
	}
	var found Problems
	first := map[window.Window]int{}
	for i, entry := range o.MaintenanceWindows {
		path := fmt.Sprintf("%s[%d]", field, i)
		w, wrong := entry.parse()
		for _, p := range wrong {
			found = append(found, Problem{Field: path + "." + p.Field, Value: short(p.Value), Message: p.Err.Error()})
		}
		other, twice := first[w]
		switch {
		case len(wrong) > 0:
		case twice:
			found = append(found, problem(path, spell(w).text(), fmt.Sprintf("is %s[%d] again; give each window once", field, other)))
		default:
			first[w] = i
		}
	}
	return found
}

// Windows returns the windows as values to compute with, in the order of the
// entries. The error is Problems.
func (o OSUpgrade) Windows() ([]window.Window, error) {
	if wrong := o.validateWindows(); len(wrong) > 0 {
		return nil, wrong
	}
	windows := make([]window.Window, len(o.MaintenanceWindows))
	for i, entry := range o.MaintenanceWindows {
		windows[i], _ = entry.parse()
	}
	return windows, nil
}

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (s Start) Validate() Problems {
	var found Problems
	if s.OverrideWindow && strings.TrimSpace(s.Reason) == "" {
		found = append(found, problem("reason", s.Reason, "is no reason; a start outside of the maintenance windows needs one"))
	} else {
		found = append(found, validateReason(s.Reason)...)
	}
	if s.Duration == "" {
		return found
	}
	if _, err := window.ParseLength(s.Duration); err != nil {
		found = append(found, Problem{Field: "duration", Value: short(s.Duration), Message: err.Error()})
	}
	if !s.OverrideWindow {
		found = append(found, problem("duration", s.Duration, "bounds a run outside of the maintenance windows; give it with override-window, or leave it out"))
	}
	return found
}

// validateReason checks that a reason can be kept and shown.
func validateReason(reason string) Problems {
	switch count := utf8.RuneCountInString(reason); {
	case count > MaxReason:
		return Problems{{Field: "reason", Value: short(reason), Message: fmt.Sprintf("%d characters are too many; use at most %d", count, MaxReason)}}
	case strings.ContainsFunc(reason, unprintable):
		return Problems{problem("reason", reason, "has characters that cannot be shown; use letters, digits, signs and blanks on one line")}
	}
	return nil
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

func tooMany(field string, count, most int) Problem {
	return Problem{Field: field, Value: strconv.Itoa(count), Message: fmt.Sprintf("%d entries are too many; use at most %d", count, most)}
}

func problem(field, value, message string) Problem {
	return Problem{Field: field, Value: short(value), Message: strconv.Quote(short(value)) + " " + message}
}

// short cuts a value where it would drown the message.
func short(value string) string {
	const limit = 200
	if len(value) <= limit {
		return value
	}
	return strings.ToValidUTF8(value[:limit], "") + "..."
}
