package apt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// statusFormat has dpkg-query print a line for each package, as parseStatus reads it.
const statusFormat = `${Package}\t${Architecture}\t${db:Status-Want}\t${db:Status-Status}\t${db:Status-Eflag}\t${Version}\t${Installed-Size}\n`

// installed is a package that dpkg knows.
type installed struct {
	// want is what should become of it: "install", "hold", "deinstall" or "purge".
	want string
	// status is how far dpkg has come: "installed", "half-installed", "config-files", ...
	status string
	// reinstall is set when dpkg was interrupted so that only a new unpacking helps.
	reinstall bool
	version   string
	// size is what its files take, in bytes; 0 when unknown.
	size int64
}

// isInstalled reports whether a package is wholly installed and configured.
func (i installed) isInstalled() bool { return i.status == "installed" && !i.reinstall }

// isGone reports whether nothing of a package is left but its configuration.
func (i installed) isGone() bool {
	return !i.reinstall && (i.status == "" || i.status == "config-files" || i.status == "not-installed")
}

// present is the version of which a host has files; empty if it has none.
func (i installed) present() string {
	if i.isGone() {
		return ""
	}
	return i.version
}

// packages are the packages of a host by name: that of apt, which has the
// architecture only when it is another than the host's own.
type packages map[string]installed

// packageName returns the name of a package as apt prints it.
func packageName(name, architecture, native string) string {
	if architecture == "" || architecture == "all" || architecture == native {
		return name
	}
	return name + ":" + architecture
}

// parseStatus reads the output of dpkg-query with statusFormat.
func parseStatus(printed, native string) (packages, error) {
	all := packages{}
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\r\n")
		fields := strings.Split(line, "\t")
		if len(fields) != 7 || fields[0] == "" || fields[3] == "" {
			return nil, fmt.Errorf("dpkg-query printed %.200q, which is not a line of %d fields", line, 7)
		}
		size, _ := strconv.ParseInt(fields[6], 10, 40) // A package need not tell its size.
		all[packageName(fields[0], fields[1], native)] = installed{
			want: fields[2], status: fields[3], reinstall: fields[4] == "reinstreq", version: fields[5], size: max(size, 0) << 10,
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("dpkg-query knows no package; see whether /var/lib/dpkg/status is damaged")
	}
	return all, nil
}

// missing returns the changes that a host does not have, with what it has instead: a
// package is not missing when it is installed and configured in the planned version, or
// gone as planned.
func (p packages) missing(changes []message.Change) []message.Change {
	var missing []message.Change
	for _, c := range changes {
		have := p[c.Name]
		if c.To == "" && have.isGone() || c.To != "" && have.isInstalled() && have.version == c.To {
			continue
		}
		missing = append(missing, message.Change{Name: c.Name, From: have.present(), To: c.To})
	}
	return missing
}

// toUnpack returns the changes without those whose version is unpacked and waits to be configured.
// apt-get -f install configures it unnamed. Named together with --reinstall, apt unpacks it again, has
// fetched no archive for that, and fails: "Internal Error, No file name for".
func (p packages) toUnpack(changes []message.Change) []message.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c message.Change) bool {
		have := p[c.Name]
		return have.version == c.To && !have.reinstall && (have.status == "unpacked" || have.status == "half-configured")
	})
}

// untouched reports whether a host is as it was before any of the changes.
func (p packages) untouched(changes []message.Change) bool {
	for _, c := range changes {
		have := p[c.Name]
		if c.From == "" && !have.isGone() || c.From != "" && (!have.isInstalled() || have.version != c.From) {
			return false
		}
	}
	return true
}

// broken returns the packages that dpkg has not finished with, and reinstall those
// of them that must be unpacked again.
func (p packages) broken() (unfinished, reinstall []string) {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		switch have := p[name]; {
		case have.reinstall:
			reinstall = append(reinstall, name)
		case !have.isInstalled() && !have.isGone():
			unfinished = append(unfinished, name)
		}
	}
	return unfinished, reinstall
}

// after returns the versions that some changes lead to.
func (p packages) after(changes []message.Change) map[string]string {
	versions := map[string]string{}
	for name, have := range p {
		versions[name] = have.present()
	}
	for _, c := range changes {
		versions[c.Name] = c.To
	}
	return versions
}
