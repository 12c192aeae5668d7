package v1

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// inspector collects what is wrong with the members of a rollout.
type inspector struct {
	found Problems
}

// wrong notes a problem; the message is about the value, which goes first.
func (i *inspector) wrong(field, value, message string) {
	i.found = append(i.found, problem(field, value, message))
}

// failed notes an error that names the value itself.
func (i *inspector) failed(field, value string, err error) {
	i.found = append(i.found, Problem{Field: field, Value: short(value), Message: err.Error()})
}

// limit reports whether a list is short enough.
func (i *inspector) limit(field string, count, most int) bool {
	if count > most {
		i.found = append(i.found, tooMany(field, count, most))
	}
	return count <= most
}

// count checks a count of hosts that may be absent.
func (i *inspector) count(field, text string, least int) {
	if text == "" {
		return
	}
	c, err := ParseCount(text)
	switch {
	case err != nil:
		i.failed(field, text, err)
	case c.N < least:
		i.wrong(field, text, "is too few; use at least 1 or 1%")
	}
}

// span checks a length of time that may be absent.
func (i *inspector) span(field, text string, least, most time.Duration) {
	if text == "" {
		return
	}
	if _, err := window.ParseDurationWithin(text, least, most); err != nil {
		i.failed(field, text, err)
	}
}

// number checks a number for which 0 is absent.
func (i *inspector) number(field string, n, least, most int) {
	if n != 0 && (n < least || n > most) {
		i.found = append(i.found, Problem{Field: field, Value: strconv.Itoa(n), Message: fmt.Sprintf("%d is out of range; use %d to %d", n, least, most)})
	}
}

// choice reports whether a text is one of some.
func (i *inspector) choice(field, text string, of ...string) bool {
	for _, one := range of {
		if one == text {
			return true
		}
	}
	last := len(of) - 1
	message := "is not possible; use " + strings.Join(of[:last], ", ") + " or " + of[last]
	if closest, ok := window.Closest(text, of); ok {
		message += "; did you mean " + closest + "?"
	}
	i.wrong(field, text, message)
	return false
}

// option checks a text that is one of some, or absent.
func (i *inspector) option(field, text string, of ...string) {
	if text != "" {
		i.choice(field, text, of...)
	}
}

// each checks that the entries of a list are right, and there once.
func (i *inspector) each(field string, list []string, most int, valid func(string) bool, message string) {
	if !i.limit(field, len(list), most) {
		return
	}
	first := map[string]int{}
	for n, entry := range list {
		path := fmt.Sprintf("%s[%d]", field, n)
		other, twice := first[entry]
		switch {
		case !valid(entry):
			i.wrong(path, entry, message)
		case twice:
			i.wrong(path, entry, fmt.Sprintf("is %s[%d] again; give it once", field, other))
		default:
			first[entry] = n
		}
	}
}
