package hosts

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The states by which hosts are chosen.
var states = []string{"online", "offline", "busy", "outdated", "missed"}

// filter chooses hosts: those that fit each member that is given.
type filter struct {
	application, state string
	// fits decides by role and labels.
	fits v1.Matcher
	// versions are constraints by package.
	versions map[string]string
	// outdatedSince keeps hosts that have been outdated since then or longer.
	outdatedSince time.Time
}

// keeps reports whether the filter chooses a host. Its constraints must be valid.
func (f filter) keeps(h v1.Host) bool {
	for name, text := range f.versions {
		within, err := release.ParseRange(release.Deb, text)
		version, ok := h.Versions[name]
		if err != nil || !ok || !within.Fits(version) {
			return false
		}
	}
	return f.fits.Fits(h.Hostname, h.Role, h.InEnvironment(), h.Labels) &&
		(f.application == "" || h.Application == f.application) &&
		(f.state == "" || f.inState(h)) &&
		(f.outdatedSince.IsZero() || h.OutdatedSince != nil && !h.OutdatedSince.After(f.outdatedSince))
}

func (f filter) inState(h v1.Host) bool {
	switch f.state {
	case "online":
		return h.Online
	case "offline":
		return !h.Online
	case "busy":
		return h.Busy != nil
	case "outdated":
		return h.OutdatedSince != nil
	default:
		return h.MissedSince != nil
	}
}

// constraintRule is the rule of an attribute with constraints.
func constraintRule(text string) error {
	_, err := release.ParseRange(release.Deb, text)
	return err
}
