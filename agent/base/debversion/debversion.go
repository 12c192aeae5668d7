// Package debversion compares versions of packages as dpkg does (deb-version(7)), which suits
// the versions of other systems too.
package debversion

import "strings"

// Compare returns a negative number if version a is before b, and a positive one if it is after
// it. It compares by epoch, then by upstream version, then by Debian revision.
func Compare(a, b string) int {
	epochA, upstreamA, revisionA := splitVersion(a)
	epochB, upstreamB, revisionB := splitVersion(b)
	for _, pair := range [][2]string{{epochA, epochB}, {upstreamA, upstreamB}, {revisionA, revisionB}} {
		if order := compareParts(pair[0], pair[1]); order != 0 {
			return order
		}
	}
	return 0
}

func splitVersion(version string) (epoch, upstream, revision string) {
	if before, after, ok := strings.Cut(version, ":"); ok {
		epoch, version = before, after
	}
	if i := strings.LastIndexByte(version, '-'); i >= 0 {
		version, revision = version[:i], version[i+1:]
	}
	return epoch, version, revision
}

// compareParts compares text without digits and numbers by turns.
func compareParts(a, b string) int {
	for a != "" || b != "" {
		for a != "" && !isDigit(a[0]) || b != "" && !isDigit(b[0]) {
			if order := rank(a) - rank(b); order != 0 {
				return order
			}
			a, b = a[1:], b[1:]
		}
		numberA, restA := cutNumber(a)
		numberB, restB := cutNumber(b)
		switch {
		case len(numberA) != len(numberB):
			return len(numberA) - len(numberB)
		case numberA != numberB:
			return strings.Compare(numberA, numberB)
		}
		a, b = restA, restB
	}
	return 0
}

// rank orders the first character: "~" is before the end, the end and digits are
// before letters, letters before all else.
func rank(text string) int {
	switch {
	case text == "" || isDigit(text[0]):
		return 0
	case text[0] == '~':
		return -1
	case isLetter(text[0]):
		return int(text[0])
	default:
		return int(text[0]) + 256
	}
}

// cutNumber cuts a number without its leading zeros.
func cutNumber(text string) (number, rest string) {
	end := 0
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	return strings.TrimLeft(text[:end], "0"), text[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
