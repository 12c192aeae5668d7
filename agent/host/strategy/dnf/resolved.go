package dnf

import (
	"strings"
)

// resolved is what dnf would do.
type resolved struct {
	packages []item
	// skipped would be upgraded if their dependencies were met, or nothing were in the way.
	skipped []item
	// replaced are packages that others obsolete.
	replaced []item
}

// item is a package of a transaction.
type item struct {
	action action
	// key is "name.arch", version epoch:version-release.
	key, version string
}

// action is what becomes of a package.
type action int

const (
	installs action = iota + 1
	upgrades
	downgrades
	removes
	skips
)

// sections are the headings of the table that dnf prints.
var sections = map[string]action{
	"Installing": installs, "Installing dependencies": installs, "Installing weak dependencies": installs,
	"Installing group packages": installs, "Installing group/module packages": installs,
	"Upgrading": upgrades, "Downgrading": downgrades,
	"Removing": removes, "Removing dependent packages": removes, "Removing unused dependencies": removes,
	"Skipping packages with conflicts": skips, "Skipping packages with broken dependencies": skips,
}

// add takes a package of a section.
func (r *resolved) add(it item) {
	if it.action == skips {
		r.skipped = append(r.skipped, it)
	} else {
		r.packages = append(r.packages, it)
	}
}

// plainVersion returns a version as rpm.go has it, or "" if it is none: dnf5 prints an
// epoch of 0.
func plainVersion(printed string) string {
	version := strings.TrimPrefix(printed, "0:")
	if !strings.Contains(version, "-") {
		return ""
	}
	return version
}
