// Package release has the release of a system: what an upgrade installs. A release never changes,
// but for its description and its withdrawal, so that its name and its digest are the same thing for
// ever, and every host of a run installs the same.
//
// It decides whether a release is right, which text and which digest it has, and whether a host may
// go to it from what it reports. It reads no clock and no file, and does not know how a strategy
// installs anything.
package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// OS is the component that is the system of a host, the only one so far.
const OS = "os"

// MaxText bounds the text of a release, in bytes.
const MaxText = 64 << 10

// Release is what an upgrade installs. It has exactly one of Packages, Images and Data.
type Release struct {
	// Description is for people. It may change.
	Description string `json:"description,omitempty"`
	// Component is the part of a host that the release is for: os, also if absent.
	Component string `json:"component,omitempty"`
	// Version is what the release is called by those who build it, such as 2.1.0.
	Version string `json:"version,omitempty"`
	// Scheme is how versions of the release are compared: semver, deb or rpm; opaque, also if absent,
	// only tells equal ones from others.
	Scheme Scheme `json:"scheme,omitempty"`
	// From are ranges of versions, such as ">= 2.0, < 2.1". A host must run a version of one of them;
	// any if there is none.
	From []string `json:"from,omitempty"`
	// Requires are ranges of versions that a host must report, by their names, such as kernel.
	Requires map[string]string `json:"requires,omitempty"`
	// Installs are the versions that a host must report afterwards, by their names.
	Installs map[string]string `json:"installs,omitempty"`
	// Downgrade lets the release replace a newer version, within its major version.
	Downgrade bool `json:"downgrade,omitempty"`
	// Packages are packages of the host's repositories.
	Packages *Packages `json:"packages,omitempty"`
	// Images are images of the whole system, one for each kind of host.
	Images []Image `json:"images,omitempty"`
	// Data is any JSON, for the scripts of the exec strategy.
	Data json.RawMessage `json:"data,omitempty"`
	// Withdrawn says that the release must not be installed any more. It may change.
	Withdrawn *Withdrawn `json:"withdrawn,omitempty"`
}

// The packages that a release selects.
const (
	All      = "all"
	Security = "security"
	Listed   = "listed"
)

// Packages are packages of the host's repositories.
type Packages struct {
	// Select is all (also if absent), security (only security updates), or listed (those of Only).
	Select string `json:"select,omitempty"`
	// AsOf is the time as of which the repositories count; absent for the time when a host prepares.
	AsOf time.Time `json:"as-of,omitzero"`
	// Only are patterns of the names of packages that are upgraded, such as "linux-image-*"; all if
	// absent. With listed, "name=version" is exactly that version.
	Only []string `json:"only,omitempty"`
	// Except are patterns of the names of packages that are not upgraded.
	Except []string `json:"except,omitempty"`
	// Distribution is the release of the distribution to which the host is upgraded, such as trixie.
	Distribution string `json:"distribution,omitempty"`
	// Same refuses hosts that would install another version of a package than the first hosts of their
	// run.
	Same bool `json:"same,omitempty"`
}

// Drift says why hosts of one run may get different versions of a package; empty if they cannot.
func (p Packages) Drift() string {
	exact := p.Select == Listed && !slices.ContainsFunc(p.Only, func(only string) bool { return !strings.Contains(only, "=") })
	if !p.AsOf.IsZero() || p.Same || exact {
		return ""
	}
	return "it is not set, so each host installs what its repositories have when it prepares, and hosts may get different versions; set it, or set packages.same to refuse such hosts"
}

// Listed are the packages that select listed upgrades; none with any other select, which takes Only as
// patterns.
func (p Packages) Listed() []string {
	if p.Select != Listed {
		return nil
	}
	return p.Only
}

// Fixed reports whether the release installs the same at any time. Packages without a time are what the
// repositories have when a host prepares, unless each is listed with its version.
func (r Release) Fixed() bool {
	p := r.Packages
	if p == nil || !p.AsOf.IsZero() {
		return true
	}
	return p.Select == Listed && len(p.Only) > 0 && !slices.ContainsFunc(p.Only, func(name string) bool { return !strings.Contains(name, "=") })
}

// Image is an image of the whole system for some hosts.
type Image struct {
	// Platform is the platform of the hosts, such as linux/arm64; any if absent.
	Platform string `json:"platform,omitempty"`
	// Compatible is what an image must be compatible with on these hosts, such as the compatible
	// string of RAUC; any if absent.
	Compatible string `json:"compatible,omitempty"`
	// URL is where the image is: an https URL or the path of a bundle, a ref or commit of OSTree, or
	// the reference of a container image.
	URL string `json:"url"`
	// SHA256 is the sum of the file, in hex.
	SHA256 string `json:"sha256,omitempty"`
	// Size is the size of the file in bytes.
	Size int `json:"size,omitempty" within:"1 17592186044416"`
}

// Withdrawn says why a release must not be installed any more.
type Withdrawn struct {
	Reason string `json:"reason"`
	// At and By are when it was withdrawn and by whom. The site writes both.
	At time.Time `json:"at,omitzero"`
	By string    `json:"by,omitempty"`
}

// WithDefaults returns the release with the defaults of what is absent.
func (r Release) WithDefaults() Release {
	if r.Component == "" {
		r.Component = OS
	}
	if r.Scheme == "" {
		r.Scheme = Opaque
	}
	if p := r.Packages; p != nil && p.Select == "" {
		r.Packages = new(*p)
		r.Packages.Select = All
	}
	return r
}

// Canonical returns the release with each value in its one spelling and each list in order: the order
// has no meaning in any of them. It shares no list with r.
func (r Release) Canonical() Release {
	r.From = inOrder(r.From)
	if r.Packages != nil {
		p := *r.Packages
		p.AsOf = p.AsOf.UTC()
		p.Only, p.Except = inOrder(p.Only), inOrder(p.Except)
		r.Packages = &p
	}
	r.Images = slices.Clone(r.Images)
	slices.SortStableFunc(r.Images, Image.compare)
	if data, err := canonicalJSON(r.Data); err == nil {
		r.Data = data
	}
	return r
}

func inOrder(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// canonicalJSON returns JSON without spaces, with the keys of each object in order.
func canonicalJSON(text json.RawMessage) (json.RawMessage, error) {
	if text == nil {
		return nil, nil
	}
	value, err := anyJSON(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // People read it.
	err = e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Text returns what never changes of a release, in its one spelling. The text stays the same bytes
// in the JSON of whatever contains it, be HTML escaped in it or not.
func (r Release) Text() []byte {
	r = r.Canonical().WithDefaults()
	r.Description, r.Withdrawn = "", nil
	text, err := json.Marshal(r)
	if err != nil {
		// Only Data that is no JSON has no form; Validate refuses it.
		panic("release: " + err.Error())
	}
	return text
}

// Digest returns the digest of the text: sha256: and its sum in hex.
func (r Release) Digest() string { return digestOf(r.Text()) }

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Changed returns the member in which two releases differ, such as packages.as-of; nothing if they have
// the same text.
func Changed(was, is Release) (member string) { return differing(was.Text(), is.Text()) }

// differing returns the first member in which two JSON objects differ.
func differing(was, is []byte) string {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(is, &after) != nil {
		return ""
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		b, a := before[key], after[key]
		switch {
		case bytes.Equal(b, a):
		case key == "data" || len(b) == 0 || len(a) == 0 || b[0] != '{':
			return key
		default:
			return memberOf(key, differing(b, a))
		}
	}
	return ""
}

// Pin is the release of a run: the text that all its hosts install, whatever becomes of the release
// of that name.
type Pin struct {
	Name   string          `json:"name"`
	Digest string          `json:"digest"`
	Text   json.RawMessage `json:"text,omitempty"`
}

// Pin returns the release as a run pins it.
func (r Release) Pin(name string) Pin {
	text := r.Text()
	return Pin{Name: name, Digest: digestOf(text), Text: text}
}

// Release returns the release that is pinned. It refuses a text that does not have the digest.
func (p Pin) Release() (Release, error) {
	r, err := Decode(p.Text, p.Digest)
	if err != nil {
		return Release{}, fmt.Errorf("release %s: %w", p.Name, err)
	}
	return r, nil
}

// Version is the version of the release that is pinned. It reads no more of a text that was checked when
// the pin was read, because people look at a run often.
func (p Pin) Version() string {
	var r struct {
		Version string `json:"version"`
	}
	_ = json.Unmarshal(p.Text, &r)
	return r.Version
}

// Decode reads the text of a release. It refuses one that does not have the digest, is not right, or
// has a member that this version does not know: to leave that out would install something else.
func Decode(text []byte, digest string) (Release, error) {
	if got := digestOf(text); got != digest {
		return Release{}, fmt.Errorf("its text has digest %s instead of %s", got, digest)
	}
	if len(text) > MaxText {
		return Release{}, fmt.Errorf("its text has %d bytes; at most %d are read", len(text), MaxText)
	}
	d, err := document.Parse(document.JSON, text)
	if err != nil {
		return Release{}, err
	}
	var r Release
	d.Root().Fill(&r)
	if err := d.Err(r.Validate()...); err != nil {
		return Release{}, err
	}
	return r, nil
}
