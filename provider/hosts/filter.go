package hosts

import (
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/debversion"
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
		constraints, err := parseConstraints(text)
		version, ok := h.Versions[name]
		if err != nil || !ok || !constraints.allow(version) {
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

// constraint compares a version with another.
type constraint struct{ operator, version string }

type constraints []constraint

// operators are those of constraints; one that begins with another comes first.
var operators = []string{">=", "<=", "!=", ">", "<", "="}

// parseConstraints parses constraints such as ">= 6.12, < 6.13". A version alone means =.
func parseConstraints(text string) (constraints, error) {
	var all constraints
	for part := range strings.SplitSeq(text, ",") {
		c := constraint{operator: "=", version: strings.TrimSpace(part)}
		for _, operator := range operators {
			if rest, ok := strings.CutPrefix(c.version, operator); ok {
				c = constraint{operator, strings.TrimSpace(rest)}
				break
			}
		}
		if c.version == "" || strings.ContainsAny(c.version, " <>=!") {
			return nil, fmt.Errorf("%q is not a version constraint; use %s and a version, such as \">= 6.12, < 6.13\"", text, strings.Join(operators, ", "))
		}
		all = append(all, c)
	}
	return all, nil
}

// constraintRule is the rule of an attribute with constraints.
func constraintRule(text string) error {
	_, err := parseConstraints(text)
	return err
}

func (all constraints) allow(version string) bool {
	for _, c := range all {
		order := debversion.Compare(version, c.version)
		ok := map[string]bool{">=": order >= 0, "<=": order <= 0, "!=": order != 0, ">": order > 0, "<": order < 0, "=": order == 0}
		if !ok[c.operator] {
			return false
		}
	}
	return true
}
