package hosts

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The states by which hosts are chosen.
var states = []string{"online", "offline", "busy", "outdated", "missed"}

// filter chooses hosts: those that fit each member that is given.
type filter struct {
	application, role, state string
	labels                   map[string]string
	// versions are constraints by package.
	versions map[string]string
	// outdatedSince keeps hosts that have been outdated since then or longer.
	outdatedSince time.Time
}

// keeps reports whether the filter chooses a host. Its constraints must be valid.
func (f filter) keeps(h v1.Host) bool {
	for name, value := range f.labels {
		if has, ok := h.Labels[name]; !ok || has != value {
			return false
		}
	}
	for name, text := range f.versions {
		constraints, err := parseConstraints(text)
		version, ok := h.Versions[name]
		if err != nil || !ok || !constraints.allow(version) {
			return false
		}
	}
	return (f.application == "" || h.Application == f.application) &&
		(f.role == "" || h.Role == f.role) &&
		(f.state == "" || f.inState(h)) &&
		(f.outdatedSince.IsZero() || h.OutdatedSince != nil && !h.OutdatedSince.After(f.outdatedSince))
}

func (f filter) inState(h v1.Host) bool {
	switch f.state {
	case "online":
		return h.Online
	case "offline":
		return !h.Online
	case "busy":
		return h.Busy != nil
	case "outdated":
		return h.OutdatedSince != nil
	default:
		return h.MissedSince != nil
	}
}

// constraint compares a version with another.
type constraint struct{ operator, version string }

type constraints []constraint

// operators are those of constraints; one that begins with another comes first.
var operators = []string{">=", "<=", "!=", ">", "<", "="}

// parseConstraints parses constraints such as ">= 6.12, < 6.13". A version alone means =.
func parseConstraints(text string) (constraints, error) {
	var all constraints
	for part := range strings.SplitSeq(text, ",") {
		c := constraint{operator: "=", version: strings.TrimSpace(part)}
		for _, operator := range operators {
			if rest, ok := strings.CutPrefix(c.version, operator); ok {
				c = constraint{operator, strings.TrimSpace(rest)}
				break
			}
		}
		if c.version == "" || strings.ContainsAny(c.version, " <>=!") {
			return nil, fmt.Errorf("%q is not a version constraint; use %s and a version, such as \">= 6.12, < 6.13\"", text, strings.Join(operators, ", "))
		}
		all = append(all, c)
	}
	return all, nil
}

// constraintRule is the rule of an attribute with constraints.
func constraintRule(text string) error {
	_, err := parseConstraints(text)
	return err
}

func (all constraints) allow(version string) bool {
	for _, c := range all {
		order := compareVersions(version, c.version)
		ok := map[string]bool{">=": order >= 0, "<=": order <= 0, "!=": order != 0, ">": order > 0, "<": order < 0, "=": order == 0}
		if !ok[c.operator] {
			return false
		}
	}
	return true
}

// compareVersions compares two versions as dpkg does, which suits other systems too: the
// epoch before a colon first, then digits as numbers and all else as text, in which ~ comes
// before the end and letters before other characters (deb-version(7)).
func compareVersions(a, b string) int {
	epochA, restA := epoch(a)
	epochB, restB := epoch(b)
	if order := compareNumbers(epochA, epochB); order != 0 {
		return order
	}
	for restA != "" || restB != "" {
		var textA, textB, numberA, numberB string
		textA, restA = span(restA, false)
		textB, restB = span(restB, false)
		if order := compareTexts(textA, textB); order != 0 {
			return order
		}
		numberA, restA = span(restA, true)
		numberB, restB = span(restB, true)
		if order := compareNumbers(numberA, numberB); order != 0 {
			return order
		}
	}
	return 0
}

func epoch(version string) (number, rest string) {
	if before, after, found := strings.Cut(version, ":"); found {
		return before, after
	}
	return "0", version
}

// span cuts the digits, or what is no digit, from the beginning of a version.
func span(version string, digits bool) (first, rest string) {
	end := strings.IndexFunc(version, func(r rune) bool { return ('0' <= r && r <= '9') != digits })
	if end < 0 {
		end = len(version)
	}
	return version[:end], version[end:]
}

func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func compareTexts(a, b string) int {
	for i := range max(len(a), len(b)) {
		if order := cmp.Compare(rank(a, i), rank(b, i)); order != 0 {
			return order
		}
	}
	return 0
}

// rank orders the characters of a text: ~, the end, letters, all else.
func rank(text string, i int) int {
	const others = 256
	switch {
	case i >= len(text):
		return 0
	case text[i] == '~':
		return -1
	case 'a' <= text[i]|0x20 && text[i]|0x20 <= 'z':
		return int(text[i])
	default:
		return others + int(text[i])
	}
}
