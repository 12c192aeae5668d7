package rollout

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// maxQuery bounds a query, in bytes: it goes into a URL.
const maxQuery = 2048

// query checks an expression of Prometheus as far as its text alone tells: quotes, brackets and its end.
// Whether the server understands it, the server says.
func (i *inspector) query(field, text string) {
	switch wrong := wrongQuery(text); {
	case strings.TrimSpace(text) == "":
		i.wrong(field, text, `is not a query; use an expression such as up{job="ceph"} == 0`)
	case len(text) > maxQuery:
		i.wrong(field, text, fmt.Sprintf("has %d bytes; use at most %d, or a recording rule", len(text), maxQuery))
	case !names.Printable(strings.NewReplacer("\n", " ", "\t", " ").Replace(text)):
		i.wrong(field, text, "has characters that cannot be printed; leave them out")
	case wrong != "":
		i.wrong(field, text, "is not a query: "+wrong)
	}
}

// wrongQuery returns what is wrong with the quotes, brackets and end of an expression; empty if
// nothing is.
func wrongQuery(text string) string {
	var open []rune
	end := ' '
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		at += size
		if r != '#' && !unicode.IsSpace(r) {
			end = r
		}
		switch r {
		case '"', '\'', '`':
			length := quoted(text[at:], r)
			if length < 0 {
				return fmt.Sprintf("the %c at byte %d has no other one to end its text", r, at)
			}
			at += length
		case '#':
			if line := strings.IndexByte(text[at:], '\n'); line >= 0 {
				at += line
			} else {
				at = len(text)
			}
		case '(', '[', '{':
			open = append(open, r)
		case ')', ']', '}':
			if len(open) == 0 || closing[open[len(open)-1]] != r {
				return fmt.Sprintf("nothing is open that the %c at byte %d could close", r, at)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		last := open[len(open)-1]
		return fmt.Sprintf("a %c is not closed; add %c", last, closing[last])
	}
	if strings.ContainsRune("+-*/%^=<>!~,", end) {
		return fmt.Sprintf("it ends with %c; add what follows", end)
	}
	return ""
}

var closing = map[rune]rune{'(': ')', '[': ']', '{': '}'}

// quoted returns the length of a text up to and with the quote that ends it; -1 if none does. A
// backslash escapes in all texts but those in backquotes.
func quoted(text string, quote rune) int {
	for at := 0; at < len(text); at++ {
		switch {
		case text[at] == '\\' && quote != '`':
			at++
		case rune(text[at]) == quote:
			return at + 1
		}
	}
	return -1
}

// bounds checks between which numbers a value has to lie.
func (i *inspector) bounds(field string, below, above Number) {
	for _, n := range []struct {
		member string
		Number
	}{{"below", below}, {"above", above}} {
		if err := n.unreadable(); err != nil {
			i.add(field+"."+n.member, string(n.Number), err.Error())
		}
	}
	if least, most := above.Value(), below.Value(); least != nil && most != nil && *least >= *most {
		i.wrong(field+".below", string(below), fmt.Sprintf("leaves no number above %s; use a greater one", above))
	}
}

// onHosts refuses checks of hosts that can be asked at the site only.
func (i *inspector) onHosts(field string, list []Check) {
	for n, c := range list {
		if kind, known := kindOf(CheckKinds, c.Type); known && kind.AtSite {
			i.wrong(fmt.Sprintf("%s[%d].type", field, n), c.Type, "is asked at the site; use it in checks.start or checks.fleet")
		}
	}
}
