package message

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// Differing tells that hosts of a run plan different versions of the same packages. Each host that has
// Refused fails as if it could not prepare: the release of the run says that all get the same.
type Differing struct {
	// Packages are the few of which most hosts plan another version, More is how many there are
	// besides them.
	Packages []DifferingPackage `json:"packages,omitempty"`
	More     int                `json:"more,omitempty"`
	Refused  []Refusal          `json:"refused,omitempty"`
}

// DifferingPackage is a package of which hosts plan different versions.
type DifferingPackage struct {
	// Name is the package, System what its hosts run; empty if they do not say so.
	Name   string `json:"name"`
	System string `json:"system,omitempty"`
	// Versions are the planned ones, first the one that counts; Others counts the hosts that plan any
	// besides these.
	Versions []PlannedVersion `json:"versions"`
	Others   int              `json:"others,omitempty"`
}

// PlannedVersion is a version that hosts plan.
type PlannedVersion struct {
	Version string `json:"version"`
	Count   int    `json:"count"`
	// Hosts are some of them.
	Hosts []string `json:"hosts,omitempty"`
}

// Refusal is why hosts are not upgraded.
type Refusal struct {
	Hosts []string `json:"hosts"`
	Why   string   `json:"why"`
}

// String returns a text for people, such as "libssl3: 3.0.15 on 40 hosts, 3.0.16 on 2: c7, c9".
func (p DifferingPackage) String() string {
	versions := make([]string, 0, len(p.Versions))
	for _, v := range p.Versions {
		said := fmt.Sprintf("%s on %d", v.Version, v.Count)
		if len(versions) == 0 {
			said = v.Version + " on " + text.Count(v.Count, "host", "hosts")
		}
		if len(v.Hosts) > 0 {
			said += ": " + text.ListOf(v.Hosts, v.Count, len(v.Hosts))
		}
		versions = append(versions, said)
	}
	if p.Others > 0 {
		versions = append(versions, fmt.Sprintf("other versions on %d", p.Others))
	}
	name := p.Name
	if p.System != "" {
		name += " (" + p.System + ")"
	}
	return name + ": " + strings.Join(versions, ", ")
}

// Texts returns a line for each package that is named, and one for the others.
func (d Differing) Texts() []string {
	var lines []string
	for _, p := range d.Packages {
		lines = append(lines, p.String())
	}
	if d.More > 0 {
		lines = append(lines, "and "+text.Count(d.More, "more package", "more packages"))
	}
	return lines
}

// check tells what is wrong with the event.
func (e Differing) check() error {
	if len(e.Packages) == 0 && len(e.Refused) == 0 {
		return errors.New("packages and refused are empty")
	}
	for _, r := range e.Refused {
		if err := cmp.Or(checkHosts(r.Hosts), present("why", r.Why != "")); err != nil {
			return fmt.Errorf("refused: %w", err)
		}
	}
	if hosts := Hosts(e); len(hosts) > 0 {
		return checkHosts(hosts)
	}
	return nil
}
