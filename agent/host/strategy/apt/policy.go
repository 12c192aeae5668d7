package apt

import (
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/debversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// policy is what apt-cache policy prints about packages.
type policy map[string]available

// available are the versions of a package that apt knows.
type available struct {
	installed, candidate string
	// versions are all of them, the newest first.
	versions []offer
}

type offer struct {
	version string
	// sources are the indexes that have it, as policy prints them, such as
	// "http://deb.debian.org/debian bookworm/main amd64 Packages".
	sources []string
}

var (
	// tableLine is a version in a version table, such as " *** 1.0 500" or
	// "     2.0 500 (phased 10%)"; sourceLine an index below it.
	tableLine  = text.Pattern(`^ (?:\*\*\*|   ) (\S+) -?\d+(?: \(phased \d+%\))?$`)
	sourceLine = text.Pattern(`^ {6,}-?\d+ (.+)$`)
	// pinnedLine is a package with a pin of its own, such as "     nginx -> 1.22 with priority 1001".
	pinnedLine = text.Pattern(`^ +(\S+) -> (\S+) with priority -?\d+$`)
)

// parsePolicy reads the output of apt-cache policy with names of packages.
func parsePolicy(printed string) (policy, error) {
	all := policy{}
	name := ""
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if line[0] != ' ' {
			name = strings.TrimSuffix(line, ":")
			if name == line || name == "" || strings.ContainsAny(name, " \t") {
				return nil, fmt.Errorf("apt-cache policy printed %.200q, which is not the name of a package", line)
			}
			all[name] = available{}
			continue
		}
		offer := all[name]
		if err := offer.line(line); err != nil || name == "" {
			return nil, fmt.Errorf("apt-cache policy printed %.200q, which is not about a package", line)
		}
		all[name] = offer
	}
	return all, nil
}

func (o *available) line(line string) error {
	if field, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
		if value == "(none)" {
			value = ""
		}
		switch field {
		case "Installed":
			o.installed = value
			return nil
		case "Candidate":
			o.candidate = value
			return nil
		case "Package pin":
			return nil
		}
	}
	if strings.TrimSpace(line) == "Version table:" {
		return nil
	}
	if found := tableLine().FindStringSubmatch(line); found != nil {
		o.versions = append(o.versions, offer{version: found[1]})
		return nil
	}
	found := sourceLine().FindStringSubmatch(line)
	if found == nil || len(o.versions) == 0 {
		return fmt.Errorf("%q", line)
	}
	last := &o.versions[len(o.versions)-1]
	last.sources = append(last.sources, found[1])
	return nil
}

// sources are the indexes of a host and the pins of single packages, as apt-cache
// policy prints them without names.
type sources struct {
	// security has the indexes that are security updates.
	security map[string]bool
	pinned   []string
}

// parseSources reads the output of apt-cache policy without names.
func parseSources(printed string) sources {
	known := sources{security: map[string]bool{}}
	index := ""
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\r\n")
		if release, ok := strings.CutPrefix(strings.TrimSpace(line), "release "); ok {
			known.security[index] = isSecurityRelease(release)
			continue
		}
		if found := pinnedLine().FindStringSubmatch(line); found != nil {
			known.pinned = append(known.pinned, found[1])
			continue
		}
		if priority, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && isNumber(priority) {
			index = rest
		}
	}
	return known
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == ""
}

// isSecurityRelease reports whether a line such as
// "v=12,o=Debian,a=stable-security,n=bookworm-security,l=Debian-Security,c=main,b=amd64"
// is that of security updates: by its label, archive or codename.
func isSecurityRelease(release string) bool {
	for field := range strings.SplitSeq(release, ",") {
		key, value, _ := strings.Cut(field, "=")
		if key == "l" && strings.HasSuffix(value, "-Security") || (key == "a" || key == "n") && strings.HasSuffix(value, "-security") {
			return true
		}
	}
	return false
}

// fromSecurity reports whether a version is from a release of security updates, by
// what apt-get prints about it: "Label:version/archive", several separated by commas.
func fromSecurity(releases string) bool {
	for release := range strings.SplitSeq(releases, ", ") {
		label, archive, _ := strings.Cut(release, ":")
		if _, after, ok := strings.Cut(archive, "/"); ok {
			archive = after
		}
		if strings.HasSuffix(label, "-Security") || strings.HasSuffix(archive, "-security") {
			return true
		}
	}
	return false
}

// securityVersion returns the newest version of security updates that is newer than
// the installed one; empty if there is none.
func (o available) securityVersion(known sources) string {
	for _, v := range o.versions {
		if o.installed != "" && debversion.Compare(v.version, o.installed) <= 0 {
			continue
		}
		for _, index := range v.sources {
			if known.security[index] {
				return v.version
			}
		}
	}
	return ""
}

// newest returns the newest version that is known.
func (o available) newest() string {
	if len(o.versions) == 0 {
		return ""
	}
	return o.versions[0].version
}
