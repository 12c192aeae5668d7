package v1

import (
	"encoding/json"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// MaxReleases is how many releases a tenant may have.
const MaxReleases = 500

// Release is what an upgrade installs, the object at
// /v1/config/tenants/{tenant}/os-upgrade/releases/{name}. Package release has its members and their
// rules.
type Release = release.Release

// ReleaseInfo is an entry of the list at /v1/config/tenants/{tenant}/os-upgrade/releases.
type ReleaseInfo struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	// Digest is the digest of all that never changes of the release.
	Digest string `json:"digest"`
	// Withdrawn says why the release must not be installed any more; absent while it may.
	Withdrawn *release.Withdrawn `json:"withdrawn,omitempty"`
	// Installs are the versions that a host must report afterwards, by their names.
	Installs map[string]string `json:"installs,omitempty"`
	// NamedBy is what names the release: "the configuration", and "environment NAME".
	NamedBy []string `json:"named-by,omitempty"`
	// ETag is the ETag of the release.
	ETag string `json:"etag,omitempty"`
	// Release is the release itself; only in a list with content=true.
	Release *Release `json:"release,omitempty"`
}

// Installed is what a run has installed, as a release, at
// /v1/state/tenants/{tenant}/os-upgrade/runs/{id}/installed.
type Installed struct {
	// Release lists each package that all hosts with changes have changed, with its exact version.
	Release Release `json:"release"`
	// LeftOut are the packages that only some of them have changed, such as "nginx on 3 of 40 hosts":
	// the release would install them on the others, too.
	LeftOut []string `json:"left-out,omitempty"`
}

// NewRelease is the body of POST .../os-upgrade/releases: a release and its name.
type NewRelease struct {
	Name string `json:"name"`
	// Description is for people. It may change.
	Description string `json:"description,omitempty"`
	// Component is the part of a host that the release is for: os, also if absent.
	Component string `json:"component,omitempty"`
	// Version is what the release is called by those who build it, such as 2.1.0.
	Version string `json:"version,omitempty"`
	// Scheme is how versions of the release are compared: semver, deb, rpm or opaque.
	Scheme release.Scheme `json:"scheme,omitempty"`
	// From are ranges of versions, such as ">= 2.0, < 2.1", of which a host must run one.
	From []string `json:"from,omitempty"`
	// Requires are ranges of versions that a host must report, by their names, such as kernel.
	Requires map[string]string `json:"requires,omitempty"`
	// Installs are the versions that a host must report afterwards, by their names.
	Installs map[string]string `json:"installs,omitempty"`
	// Downgrade lets the release replace a newer version, within its major version.
	Downgrade bool `json:"downgrade,omitempty"`
	// Packages are packages of the host's repositories.
	Packages *release.Packages `json:"packages,omitempty"`
	// Images are images of the whole system, one for each kind of host.
	Images []release.Image `json:"images,omitempty"`
	// Data is any JSON, for the scripts of the exec strategy.
	Data json.RawMessage `json:"data,omitempty"`
	// Withdrawn says that the release must not be installed any more.
	Withdrawn *release.Withdrawn `json:"withdrawn,omitempty"`
}

// DecodeNewRelease reads the body of a request that creates a release; its error and keep are those
// of Form.Decode.
func DecodeNewRelease(contentType string, body []byte, keep bool) (name string, r Kept[Release], err error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return "", r, err
	}
	var wrong Problems
	if name, _ = d.Root().Text("name"); !names.Valid(name) {
		wrong = Problems{document.Wrong("name", name, "is not the name of a release; "+names.Form)}
	}
	r, err = ReleaseForm.fill(r, d, keep, wrong...)
	return name, r, err
}

// SameRelease reports whether two releases mean the same, apart from when and by whom they were
// withdrawn, which the site writes.
func SameRelease(a, b Release) bool {
	return a.Digest() == b.Digest() && a.Description == b.Description && reasonOf(a) == reasonOf(b)
}

// ReleaseOver returns what a text that declares a release writes over the one that is there: a text
// that says nothing of a withdrawal may be older, and leaves it.
func ReleaseOver(before, after Release) Release {
	if after.Withdrawn == nil {
		after.Withdrawn = before.Withdrawn
	}
	return after
}

func reasonOf(r Release) string {
	if r.Withdrawn == nil {
		return ""
	}
	return r.Withdrawn.Reason
}

// Stamped returns a release that follows another one, with when and by whom it was withdrawn: what a
// client says of that does not count.
func Stamped(before, after Release, now time.Time, by string) Release {
	if after.Withdrawn == nil {
		return after
	}
	w := release.Withdrawn{Reason: after.Withdrawn.Reason, At: now.UTC().Truncate(time.Second), By: by}
	if before.Withdrawn != nil && before.Withdrawn.Reason == w.Reason {
		w = *before.Withdrawn
	}
	after.Withdrawn = &w
	return after
}

// ReleaseInfoOf returns the entry of a release in a list.
func ReleaseInfoOf(name, etag string, r Release) ReleaseInfo {
	return ReleaseInfo{Name: name, Version: r.Version, Description: r.Description, Digest: r.Digest(), Withdrawn: r.Withdrawn, Installs: r.Installs, ETag: etag}
}
