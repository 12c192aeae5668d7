package dnf

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// changes returns the changes of what dnf would do, each package once. A package that
// is installed beside its older versions, such as a kernel, has no version before,
// unless dnf removes the oldest of them in exchange.
func changes(would resolved, now database) []message.Change {
	all := map[string]message.Change{}
	for _, it := range slices.Concat(would.packages, would.replaced) {
		c := all[it.key]
		c.Name = it.key
		switch it.action {
		case removes:
			c.From = it.version
		case upgrades, downgrades:
			c.From, c.To = now.newest(it.key), it.version
			if old := now.otherArchitecture(it.key); c.From == "" && old != "" {
				all[old] = message.Change{Name: old, From: now.newest(old)}
			}
		default:
			c.To = it.version
		}
		all[it.key] = c
	}
	return slices.Collect(maps.Values(all))
}

// otherArchitecture returns the package that an upgrade replaces when it goes from
// noarch to the architecture of the host, or back.
func (d database) otherArchitecture(key string) string {
	name, arch := splitKey(key)
	if arch != "noarch" {
		if other := name + ".noarch"; len(d[other]) > 0 {
			return other
		}
		return ""
	}
	for _, other := range slices.Sorted(maps.Keys(d)) {
		if bare, _ := splitKey(other); bare == name {
			return other
		}
	}
	return ""
}

// available are the newest versions that repositories have of installed packages, by
// "name.arch".
type available map[string]string

// heldBack are facts about packages that stay as they are.
type heldBack struct {
	now database
	// offered are those that dnf may install, unlocked those without the locks of
	// versionlock, all those without locks and excludes.
	offered, unlocked, all available
	changes                []message.Change
	skipped                []item
	rejected               message.Rejected
	what                   release.Packages
}

// lock takes what is locked out of what is offered.
func (h heldBack) lock(locks []versionlock) {
	for key, version := range h.all {
		if locksOut(locks, key, version) {
			h.unlocked[key] = version
		}
	}
	maps.DeleteFunc(h.offered, func(key, version string) bool { return locksOut(locks, key, version) })
}

// list tells why each package stays that has a newer version.
func (h heldBack) list() []message.HeldPackage {
	planned, skipped := map[string]bool{}, map[string]bool{}
	for _, c := range h.changes {
		planned[c.Name] = true
	}
	for _, it := range h.skipped {
		skipped[it.key] = true
	}
	var held []message.HeldPackage
	for _, key := range slices.Sorted(maps.Keys(h.all)) {
		if planned[key] {
			continue
		}
		reason := "dnf does not choose it now"
		name, _ := splitKey(key)
		leftOut := strategy.LeftOut(h.what, name)
		switch {
		case leftOut != "":
			reason = leftOut
		case h.rejected.Has(key, h.all[key]):
			reason = "it was rolled back on this host"
		case h.offered[key] == "" && h.unlocked[key] == "":
			reason = "excluded by excludepkgs in the configuration of dnf"
		case h.offered[key] == "":
			reason = "locked to its version by dnf versionlock"
		case skipped[key]:
			reason = "its dependencies are not met now"
		case h.what.Select == release.Security:
			reason = "not a security update"
		case h.what.Select == release.Listed:
			reason = listed + " names another version"
		}
		held = append(held, message.HeldPackage{Name: key, Version: h.now.newest(key), Offered: h.all[key], Reason: reason})
	}
	return held
}
