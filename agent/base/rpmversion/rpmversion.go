// Package rpmversion compares versions of packages as rpm does (rpm-version(7)).
package rpmversion

import (
	"strconv"
	"strings"
)

// Compare returns -1 if version a is before b, and 1 if it is after it. It compares by epoch, then by
// version, then by release.
func Compare(a, b string) int {
	epochA, versionA, releaseA := splitEVR(a)
	epochB, versionB, releaseB := splitEVR(b)
	if epochA != epochB {
		if epochA < epochB {
			return -1
		}
		return 1
	}
	if order := compareSegments(versionA, versionB); order != 0 {
		return order
	}
	return compareSegments(releaseA, releaseB)
}

func splitEVR(version string) (epoch uint64, v, release string) {
	if before, after, ok := strings.Cut(version, ":"); ok {
		epoch, _ = strconv.ParseUint(before, 10, 32)
		version = after
	}
	if i := strings.LastIndexByte(version, '-'); i >= 0 {
		return epoch, version[:i], version[i+1:]
	}
	return epoch, version, ""
}

// compareSegments compares versions as rpm does: runs of digits by their value, runs of
// letters by their bytes, a number is newer than letters, "~" is older than
// everything, "^" newer than the end and older than everything else. Other bytes only
// separate.
func compareSegments(a, b string) int {
	for a != "" || b != "" {
		a, b = strings.TrimLeftFunc(a, separates), strings.TrimLeftFunc(b, separates)
		if done, order := compareMarks(&a, &b); done {
			return order
		} else if order != 0 {
			continue
		}
		if a == "" || b == "" {
			break
		}
		numeric := isDigit(a[0])
		headA, restA := segment(a, numeric)
		headB, restB := segment(b, numeric)
		if headB == "" { // A number is newer than letters.
			if numeric {
				return 1
			}
			return -1
		}
		if numeric {
			headA, headB = strings.TrimLeft(headA, "0"), strings.TrimLeft(headB, "0")
			if len(headA) != len(headB) {
				return sign(len(headA) - len(headB))
			}
		}
		if order := strings.Compare(headA, headB); order != 0 {
			return order
		}
		a, b = restA, restB
	}
	return sign(len(a) - len(b))
}

// compareMarks compares "~" and "^" at the front of both. done says that the comparison
// is over; otherwise skip is 1 when both had the same mark, which is cut.
func compareMarks(a, b *string) (done bool, order int) {
	for _, mark := range []struct {
		sign string
		// with is the result when only the first has it, against something and the end.
		something, end int
	}{{"~", -1, -1}, {"^", -1, 1}} {
		hasA, hasB := strings.HasPrefix(*a, mark.sign), strings.HasPrefix(*b, mark.sign)
		switch {
		case hasA && hasB:
			*a, *b = (*a)[1:], (*b)[1:]
			return false, 1
		case hasA && *b == "":
			return true, mark.end
		case hasA:
			return true, mark.something
		case hasB && *a == "":
			return true, -mark.end
		case hasB:
			return true, -mark.something
		}
	}
	return false, 0
}

func separates(r rune) bool {
	return r != '~' && r != '^' && (r > 127 || !isDigit(byte(r)) && !isLetter(byte(r)))
}

// segment cuts the run of digits, or of letters, at the front.
func segment(version string, numeric bool) (head, rest string) {
	i := 0
	for i < len(version) && (numeric && isDigit(version[i]) || !numeric && isLetter(version[i])) {
		i++
	}
	return version[:i], version[i:]
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func sign(n int) int { return min(max(n, -1), 1) }
