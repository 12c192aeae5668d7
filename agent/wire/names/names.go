// Package names decides which names are valid: of tenants, applications, calendars
// and stages, of hosts, and of labels. API, log and command line share it, so they
// accept the same names.
package names

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pattern is the form of a name of a tenant, an application, a calendar or a
// stage.
const Pattern = `^[a-z0-9]([a-z0-9\-]*[a-z0-9])?$`

// Form is that form in words.
const Form = `use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends`

// LoginForm is the form of the name of a user or an approle, in words.
const LoginForm = `use 1 to 63 of a-z, 0-9, "-", ".", "_" and "@", with no "-" or "." at the start and no "-" at the end`

// MaxLength bounds a name and a label, in bytes, so that a name fits a DNS label
// (RFC 1035 2.3.4).
const MaxLength = 63

// LabelForm says what the key of a label and its value may be made of.
const LabelForm = `at most 63 of letters, digits, "-", "_", "." and "/"`

// MaxLabels is how many labels a host may have.
const MaxLabels = 50

// maxHost is the longest host name, in bytes (RFC 1123 2.1).
const maxHost = 253

// None of these is a regular expression: a prepare to many hosts has many names.

// Valid reports whether text has the form Pattern and is not longer than
// MaxLength.
func Valid(text string) bool {
	if text == "" || len(text) > MaxLength || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	return all(text, func(c byte) bool { return c == '-' || alphanumeric(c) && !upper(c) })
}

// ValidHost reports whether text can be the name of a host: RFC 1123 2.1, with
// underscores allowed inside because the field uses them.
func ValidHost(text string) bool {
	if text == "" || len(text) > maxHost || !alphanumeric(text[0]) || !alphanumeric(text[len(text)-1]) {
		return false
	}
	return all(text, func(c byte) bool { return alphanumeric(c) || c == '.' || c == '-' || c == '_' })
}

// ValidLogin reports whether text can be the name of a user or an approle: as Valid, and with
// ".", "_" and "@", but for a "." at its beginning.
func ValidLogin(text string) bool {
	return Valid(strings.NewReplacer(".", "a", "_", "a", "@", "a").Replace(text)) && !strings.HasPrefix(text, ".")
}

// ValidLabel reports whether text can be the key of a label, or its value when
// that is not empty.
func ValidLabel(text string) bool {
	if text == "" || len(text) > MaxLength {
		return false
	}
	return all(text, func(c byte) bool { return alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '/' })
}

func all(text string, may func(byte) bool) bool {
	for i := range len(text) {
		if !may(text[i]) {
			return false
		}
	}
	return true
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || upper(c) || '0' <= c && c <= '9'
}

// Printable reports whether text can be shown on one line.
func Printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) })
}
