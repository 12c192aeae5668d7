package v1

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// NamePattern is the form of a name of a tenant, an application or a stage
// (AV-2).
const NamePattern = `^[a-z0-9]([a-z0-9\-]*[a-z0-9])?$`

// NameForm is that form in words.
const NameForm = `use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends`

// MaxNameLength bounds a name, in bytes, so that one fits a DNS label
// (RFC 1035 2.3.4).
const MaxNameLength = 63

// maxTitle bounds what a check is called, in characters.
const maxTitle = 100

// maxHostLength is the longest host name, in bytes (RFC 1123 2.1).
const maxHostLength = 253

var (
	namePattern  = regexp.MustCompile(NamePattern)
	hostPattern  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	labelPattern = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
)

// ValidName reports whether name has the form NamePattern and is not longer
// than MaxNameLength.
func ValidName(name string) bool {
	return len(name) <= MaxNameLength && namePattern.MatchString(name)
}

// ValidHost reports whether name can be the name of a host: RFC 1123 2.1, with
// underscores allowed inside because the field uses them.
func ValidHost(name string) bool {
	return len(name) <= maxHostLength && hostPattern.MatchString(name)
}

// ValidLabel reports whether text can be the key of a label, or its value when
// that is not empty.
func ValidLabel(text string) bool {
	return len(text) <= MaxNameLength && labelPattern.MatchString(text)
}

// validRole reports whether a worker can have said that this is its role.
func validRole(text string) bool {
	return strings.TrimSpace(text) == text && text != "" && len(text) <= MaxNameLength && !strings.ContainsFunc(text, unprintable)
}

// validTitle reports whether text can be shown as what something is called.
func validTitle(text string) bool {
	return strings.TrimSpace(text) == text && utf8.RuneCountInString(text) <= maxTitle && !strings.ContainsFunc(text, unprintable)
}
