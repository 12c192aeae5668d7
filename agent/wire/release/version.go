package release

import (
	"errors"
	"fmt"
	"strings"

	semver "github.com/hashicorp/go-version"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/debversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/rpmversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Scheme is how versions are compared.
type Scheme string

// The schemes.
const (
	// Semver is that of semver.org, also for versions of two or of four numbers.
	Semver Scheme = "semver"
	// Deb is the order of dpkg, RPM that of rpm.
	Deb Scheme = "deb"
	RPM Scheme = "rpm"
	// Opaque knows only equal versions.
	Opaque Scheme = "opaque"
)

// maxVersion bounds a version, in bytes.
const maxVersion = 128

// Order returns a negative number if version a is before b, a positive one if it is after it, and 0 if
// both are the same. It is false if the scheme does not order the two.
func Order(scheme Scheme, a, b string) (order int, ordered bool) {
	switch scheme {
	case Deb:
		return debversion.Compare(a, b), true
	case RPM:
		return rpmversion.Compare(a, b), true
	case Semver:
		left, err := semver.NewVersion(a)
		right, err2 := semver.NewVersion(b)
		if err != nil || err2 != nil {
			return 0, a == b
		}
		return left.Compare(right), true
	}
	return 0, a == b
}

// sameMajor reports whether two versions have the same major version, as far as the scheme has one.
func sameMajor(scheme Scheme, a, b string) bool {
	left, err := semver.NewVersion(a)
	right, err2 := semver.NewVersion(b)
	return scheme != Semver || err == nil && err2 == nil && left.Segments64()[0] == right.Segments64()[0]
}

// wrongVersion returns what is wrong with a version; nil if nothing is.
func wrongVersion(scheme Scheme, version string) error {
	switch {
	case version == "":
		return errors.New("it is missing; give a version")
	case len(version) > maxVersion:
		return fmt.Errorf("has %d bytes; use at most %d", len(version), maxVersion)
	case !names.Printable(version) || strings.ContainsAny(version, " ,<>=!"):
		return errors.New("is not a version; use letters, digits and signs, without spaces, commas and comparisons")
	}
	if _, err := semver.NewVersion(version); scheme == Semver && err != nil {
		return errors.New("is not a version of scheme semver; use one such as 2.1.0, or another scheme")
	}
	return nil
}

// Range is a set of versions: those that fulfil all its comparisons.
type Range struct {
	scheme      Scheme
	comparisons []comparison
}

// comparison compares a version with another.
type comparison struct{ operator, version string }

// operators are those of comparisons; one that begins with another comes first.
var operators = []string{">=", "<=", "!=", ">", "<", "="}

// ParseRange reads a range such as ">= 6.12, < 6.13". A version alone means =. In scheme opaque there
// are only = and !=.
func ParseRange(scheme Scheme, text string) (Range, error) {
	r := Range{scheme: scheme}
	for part := range strings.SplitSeq(text, ",") {
		c := comparison{operator: "=", version: strings.TrimSpace(part)}
		for _, operator := range operators {
			if rest, ok := strings.CutPrefix(c.version, operator); ok {
				c = comparison{operator, strings.TrimSpace(rest)}
				break
			}
		}
		if scheme == Opaque && c.operator != "=" && c.operator != "!=" {
			return Range{}, fmt.Errorf("%q compares versions with %s, and those of scheme opaque have no order; use = or another scheme", document.Clip(text), c.operator)
		}
		if wrongVersion(scheme, c.version) != nil {
			return Range{}, fmt.Errorf("%q is not a range of versions of scheme %s; use %s and a version, such as \">= 6.12, < 6.13\"", document.Clip(text), scheme, strings.Join(operators, ", "))
		}
		r.comparisons = append(r.comparisons, c)
	}
	return r, nil
}

// Fits reports whether a version is in the range. One that the scheme cannot order is in none that
// needs its order.
func (r Range) Fits(version string) bool {
	for _, c := range r.comparisons {
		order, ordered := Order(r.scheme, version, c.version)
		fulfilled := map[string]bool{
			"=": ordered && order == 0, "!=": !ordered || order != 0,
			">=": ordered && order >= 0, "<=": ordered && order <= 0, ">": ordered && order > 0, "<": ordered && order < 0,
		}
		if !fulfilled[c.operator] {
			return false
		}
	}
	return true
}
