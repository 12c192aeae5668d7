package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The names under which hosts report their system; package osinfo has them.
const (
	image        = "os-image"
	distribution = "os"
)

// Running returns which version a host runs of what the release is for, by the versions that it
// reports, and the name under which it does. That is the first name of Installs to which the release
// brings its own version; without one it is the image of the system, or the distribution. It is false
// if the host reports none.
func (r Release) Running(reported map[string]string) (name, version string, known bool) {
	for _, name := range slices.Sorted(maps.Keys(r.Installs)) {
		if r.Version != "" && r.Installs[name] == r.Version {
			version, known = reported[name]
			return name, version, known
		}
	}
	for _, name := range []string{image, distribution} {
		// The report is "debian 12.9": the id and its version.
		if _, version, found := strings.Cut(reported[name], " "); found {
			return name, version, true
		}
	}
	return distribution, "", false
}

// Misfit says why a host must not go to the release, by the versions that it reports; empty if it may.
func (r Release) Misfit(reported map[string]string) string {
	r = r.WithDefaults()
	name, running, known := r.Running(reported)
	switch {
	case len(r.From) > 0 && !known:
		return fmt.Sprintf("it reports no version of %s; the release is for %s", name, strings.Join(r.From, " or "))
	case len(r.From) > 0 && !slices.ContainsFunc(r.From, func(text string) bool { return fits(r.Scheme, text, running) }):
		return fmt.Sprintf("its %s is %s; the release is for %s", name, running, strings.Join(r.From, " or "))
	}
	if order, ordered := Order(r.Scheme, r.Version, running); known && r.Version != "" && ordered && order < 0 {
		switch {
		case !r.Downgrade:
			return fmt.Sprintf("its %s is %s, which is newer than %s; the release is not for downgrades", name, running, r.Version)
		case !sameMajor(r.Scheme, r.Version, running):
			return fmt.Sprintf("its %s is %s; a downgrade to %s goes over a major version", name, running, r.Version)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requires)) {
		switch version, known := reported[name]; {
		case !known:
			return fmt.Sprintf("it reports no version of %s; the release requires %s", name, r.Requires[name])
		case !fits(r.requiredScheme(), r.Requires[name], version):
			return fmt.Sprintf("its %s is %s; the release requires %s", name, version, r.Requires[name])
		}
	}
	return ""
}

// requiredScheme is how the versions of Requires are compared: as rpm does for a release of rpm, else
// as dpkg does, which suits the versions of other systems too.
func (r Release) requiredScheme() Scheme {
	if r.Scheme == RPM {
		return RPM
	}
	return Deb
}

func fits(scheme Scheme, text, version string) bool {
	within, err := ParseRange(scheme, text)
	return err == nil && within.Fits(version)
}

// Lacking returns, in order, the names of Installs under which a host reports another version, or
// none.
func (r Release) Lacking(reported map[string]string) []string {
	var lacking []string
	for _, name := range slices.Sorted(maps.Keys(r.Installs)) {
		if version, known := reported[name]; !known || version != r.Installs[name] {
			lacking = append(lacking, name)
		}
	}
	return lacking
}
