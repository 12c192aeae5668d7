package release

import (
	"strings"
)

// Kind is what a release consists of: the member that it has.
type Kind string

// The kinds of releases.
const (
	OfPackages Kind = "packages"
	OfImages   Kind = "images"
	OfData     Kind = "data"
)

// Known reports whether this version knows the kind.
func (k Kind) Known() bool { return k == OfPackages || k == OfImages || k == OfData }

// Kind returns the kind of a release.
func (r Release) Kind() Kind {
	switch {
	case r.Packages != nil:
		return OfPackages
	case len(r.Images) > 0:
		return OfImages
	}
	return OfData
}

// Kinds returns kinds of releases as a text for people.
func Kinds(all []Kind) string {
	if len(all) == 0 {
		return "no releases"
	}
	names := make([]string, len(all))
	for i, kind := range all {
		names[i] = string(kind)
	}
	return "releases of " + strings.Join(names, " or ")
}
