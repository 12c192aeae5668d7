package release

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// The limits of a release besides MaxText.
const (
	maxFrom     = 20
	maxVersions = 200
	maxPatterns = 1000
	maxImages   = 100
	maxName     = 200
	maxURL      = 2048
	maxReason   = 500
)

// Platforms are the platforms of images.
var Platforms = []string{"linux/386", "linux/amd64", "linux/arm", "linux/arm64", "linux/ppc64le", "linux/riscv64", "linux/s390x"}

// inspector collects what is wrong.
type inspector struct{ found document.Problems }

func (i *inspector) add(field, value, message string) {
	i.found = append(i.found, document.Problem{Field: field, Value: document.Clip(value), Message: message})
}

func (i *inspector) wrong(field, value, message string) {
	i.found = append(i.found, document.Wrong(field, value, message))
}

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (r Release) Validate() document.Problems {
	var i inspector
	scheme := r.WithDefaults().Scheme
	i.line("description", r.Description, maxReason)
	if r.Component != "" && r.Component != OS {
		i.wrong("component", r.Component, "is reserved; use os")
	}
	if !slices.Contains([]Scheme{Semver, Deb, RPM, Opaque}, scheme) {
		i.found = append(i.found, document.NoneOf("scheme", string(r.Scheme), string(Semver), string(Deb), string(RPM), string(Opaque)))
		scheme = Opaque
	}
	if err := wrongVersion(scheme, r.Version); r.Version != "" && err != nil {
		i.wrong("version", r.Version, err.Error())
	}
	i.ranges(scheme, r.From)
	i.requires(r.requiredScheme(), r.Requires)
	i.installs(r.Installs)
	if r.Downgrade && (scheme == Opaque || r.Version == "") {
		i.add("downgrade", "true", "without a version and a scheme that orders versions nothing is a downgrade; give both, or leave it out")
	}
	i.content(r)
	if r.Withdrawn != nil {
		if strings.TrimSpace(r.Withdrawn.Reason) == "" {
			i.add("withdrawn.reason", "", "it is missing; say why the release must not be installed any more")
		}
		i.line("withdrawn.reason", r.Withdrawn.Reason, maxReason)
	}
	return i.found
}

// TooLarge says that the text of a release, which is right, is too large; empty if it is not.
func (r Release) TooLarge() string {
	if size := len(r.Text()); size > MaxText {
		return fmt.Sprintf("the release has %d bytes; use at most %d", size, MaxText)
	}
	return ""
}

// Future returns what is wrong with the times of a release that is declared now.
func (r Release) Future(now time.Time) document.Problems {
	if p := r.Packages; p != nil && p.AsOf.After(now) {
		return document.Problems{document.Wrong("packages.as-of", p.AsOf.UTC().Format(time.RFC3339), "is in the future, so what it selects is not known yet; use a time up to now, "+now.UTC().Format(time.RFC3339))}
	}
	return nil
}

// line checks a text for people, which is one line.
func (i *inspector) line(field, text string, most int) {
	switch {
	case len(text) > most:
		i.wrong(field, text, fmt.Sprintf("has %d bytes; use at most %d", len(text), most))
	case !names.Printable(text):
		i.wrong(field, text, "has characters that cannot be printed; use one line of text")
	}
}

func (i *inspector) ranges(scheme Scheme, from []string) {
	if len(from) > maxFrom {
		i.found = append(i.found, document.TooMany("from", len(from), maxFrom))
		return
	}
	for n, text := range from {
		field := fmt.Sprintf("from[%d]", n)
		if _, err := ParseRange(scheme, text); err != nil {
			i.add(field, text, err.Error())
		} else if slices.Contains(from[:n], text) {
			i.wrong(field, text, "is there twice; give each range once")
		}
	}
}

func (i *inspector) requires(scheme Scheme, requires map[string]string) {
	i.versionNames("requires", requires, func(field, text string) {
		if _, err := ParseRange(scheme, text); err != nil {
			i.add(field, text, err.Error())
		}
	})
}

func (i *inspector) installs(installs map[string]string) {
	i.versionNames("installs", installs, func(field, version string) {
		if version == "" || len(version) > maxName || !names.Printable(version) {
			i.wrong(field, version, fmt.Sprintf("is not a version; use 1 to %d characters that can be printed", maxName))
		}
	})
}

// versionNames checks a member whose keys are the names of versions, and each of its values.
func (i *inspector) versionNames(member string, versions map[string]string, value func(field, text string)) {
	if len(versions) > maxVersions {
		i.found = append(i.found, document.TooMany(member, len(versions), maxVersions))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		field := memberOf(member, name)
		if name == "" || len(name) > maxName || !names.Printable(name) {
			i.wrong(field, name, fmt.Sprintf("is not the name of a version that hosts report; use 1 to %d characters that can be printed", maxName))
			continue
		}
		value(field, versions[name])
	}
}

// content checks that there is exactly one of packages, images and data.
func (i *inspector) content(r Release) {
	var given []string
	if r.Packages != nil {
		given = append(given, "packages")
		i.packages(*r.Packages)
	}
	if len(r.Images) > 0 {
		given = append(given, "images")
		i.images(r.Images)
	}
	if r.Data != nil {
		given = append(given, "data")
		if value, err := anyJSON(r.Data); err != nil {
			i.add("data", "", "it is not JSON: "+err.Error())
		} else if value == nil {
			i.add("data", "null", "null is not a value; give one or leave it out")
		}
	}
	switch {
	case len(given) == 0:
		i.add("packages", "", "it is missing; give packages, images or data")
	case len(given) > 1:
		i.add(given[1], "", given[0]+" is given, too; give only one of packages, images and data")
	}
}

func anyJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	if err == nil && d.More() {
		err = fmt.Errorf("more follows after the value")
	}
	return value, err
}

func (i *inspector) packages(p Packages) {
	switch p.Select {
	case "", All, Security, Listed:
	default:
		i.found = append(i.found, document.NoneOf("packages.select", p.Select, All, Security, Listed))
	}
	i.patterns("packages.only", p.Only, p.Select == Listed)
	i.patterns("packages.except", p.Except, false)
	if p.Select == Listed && len(p.Only) == 0 {
		i.add("packages.only", "", "it is missing; name the packages that select listed upgrades")
	}
	if y := p.AsOf.UTC().Year(); !p.AsOf.IsZero() && (y < 2000 || y > 9999) {
		i.wrong("packages.as-of", p.AsOf.Format(time.RFC3339), "is before any repository; use a time since 2000")
	}
	if p.Distribution == "" {
		return
	}
	if !names.ValidLabel(p.Distribution) {
		i.wrong("packages.distribution", p.Distribution, "is not the release of a distribution; use one such as trixie or 42")
	}
	if p.Select == Security || p.Select == Listed || len(p.Only) > 0 {
		i.wrong("packages.distribution", p.Distribution, "upgrades all packages; leave select and only out")
	}
}

// patterns checks patterns of the names of packages, which may be name=version where exact is true.
func (i *inspector) patterns(field string, patterns []string, exact bool) {
	if len(patterns) > maxPatterns {
		i.found = append(i.found, document.TooMany(field, len(patterns), maxPatterns))
		return
	}
	seen := map[string]bool{}
	for n, text := range patterns {
		at := fmt.Sprintf("%s[%d]", field, n)
		name, version, hasVersion := strings.Cut(text, "=")
		_, err := path.Match(name, "")
		switch {
		case name == "" || len(text) > maxName || err != nil || !names.Printable(text) || strings.Contains(text, " "):
			i.wrong(at, text, `is not a pattern of the names of packages; use one such as "linux-image-*"`)
		case hasVersion && !exact:
			i.wrong(at, text, "has a version; use select listed and only for exact versions")
		case hasVersion && version == "":
			i.wrong(at, text, "has no version after =; use name=version or the name alone")
		case seen[text]:
			i.wrong(at, text, "is there twice; give each pattern once")
		}
		seen[text] = true
	}
}

func (i *inspector) images(images []Image) {
	if len(images) > maxImages {
		i.found = append(i.found, document.TooMany("images", len(images), maxImages))
		return
	}
	for n, image := range images {
		i.image(fmt.Sprintf("images[%d]", n), image)
		if slices.ContainsFunc(images[:n], func(other Image) bool {
			return other.Platform == image.Platform && other.Compatible == image.Compatible
		}) {
			i.wrong(fmt.Sprintf("images[%d].compatible", n), image.Compatible, "is that of another image of the same platform; give one image for each kind of host")
		}
	}
}

func (i *inspector) image(field string, image Image) {
	if image.Platform != "" && !slices.Contains(Platforms, image.Platform) {
		i.found = append(i.found, document.NoneOf(field+".platform", image.Platform, Platforms...))
	}
	i.line(field+".compatible", image.Compatible, maxName)
	switch address, err := url.Parse(image.URL); {
	case image.URL == "":
		i.add(field+".url", "", "it is missing; say where the image is")
	case len(image.URL) > maxURL || !names.Printable(image.URL) || strings.Contains(image.URL, " ") || strings.HasPrefix(image.URL, "-"):
		// A program that gets it as an argument would take it for an option.
		i.wrong(field+".url", image.URL, fmt.Sprintf("is not the place of an image; use up to %d characters, without spaces and without - at the beginning", maxURL))
	case err == nil && address.User != nil:
		i.add(field+".url", "", "it has a user or a password; whoever reads the configuration would read it, too")
	}
	if sum, err := hex.DecodeString(image.SHA256); image.SHA256 != "" && (err != nil || len(sum) != 32 || image.SHA256 != strings.ToLower(image.SHA256)) {
		i.wrong(field+".sha256", image.SHA256, "is not a SHA-256 sum; use 64 of 0-9 and a-f")
	}
}

func (image Image) compare(other Image) int {
	return cmp.Or(cmp.Compare(image.Platform, other.Platform), cmp.Compare(image.Compatible, other.Compatible))
}
