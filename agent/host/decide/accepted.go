package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// AcceptedVersions are the versions that an operator accepts although they were given up.
type AcceptedVersions struct {
	Versions []AcceptedVersion `json:"versions"`
}

// AcceptedVersion is a version, and when it was accepted.
type AcceptedVersion struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

// DecodeAccepted reads the file with what an operator accepts.
func DecodeAccepted(body []byte) (a AcceptedVersions, err error) {
	err = format.Boots.DecodeSummed(body, bootsMember, &a)
	return a, err
}

// Encode returns the content of that file.
func (a AcceptedVersions) Encode() ([]byte, error) { return format.Boots.EncodeSummed(bootsMember, a) }

// Accept returns what is accepted once a person accepts a version that the machine gave up or
// that is on trial: then there is no Rejected.
func (b Boots) Accept(a AcceptedVersions, version string, now time.Time) (AcceptedVersions, *Rejected, error) {
	standing := b.Standing(a)
	i := slices.IndexFunc(standing, func(r Rejected) bool { return r.Version == version })
	waits := slices.DeleteFunc(slices.Clone(b.Waits()), func(v string) bool { return a.has(v, b.Trial.Since) })
	if i < 0 && !slices.Contains(waits, version) {
		return a, nil, fmt.Errorf("no version %q is rejected or on trial on this host%s%s", version, listRejected(standing), listOnTrial(waits))
	}
	a.Versions = append(slices.DeleteFunc(slices.Clone(a.Versions), func(v AcceptedVersion) bool { return v.Version == version }), AcceptedVersion{version, now.UTC().Round(0)})
	if i < 0 {
		return a, nil, nil
	}
	return a, &standing[i], nil
}

// Standing returns the versions that nobody has accepted since they were rejected.
func (b Boots) Standing(a AcceptedVersions) []Rejected {
	return slices.DeleteFunc(slices.Clone(b.Rejected), func(r Rejected) bool { return a.has(r.Version, r.At) })
}

// has reports whether a version was accepted since a time.
func (a AcceptedVersions) has(version string, since time.Time) bool {
	return slices.ContainsFunc(a.Versions, func(v AcceptedVersion) bool { return v.Version == version && v.At.After(since) })
}

func listRejected(standing []Rejected) string {
	versions := make([]string, 0, len(standing))
	for _, r := range standing {
		versions = append(versions, r.Version)
	}
	return listVersions("; rejected are ", versions)
}

func listOnTrial(versions []string) string { return listVersions("; on trial are ", versions) }

func listVersions(what string, versions []string) string {
	const named = 10
	if len(versions) == 0 {
		return ""
	}
	return what + text.ListOf(versions[:min(len(versions), named)], len(versions), named)
}
