package dnf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/rpmversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// dnf5 is dnf5 5.2.5 or later: Fedora 41 and later. It fetches a transaction by testing it,
// which also checks signatures, conflicts of files and the room on each file system;
// replay has no other way.
var dnf5 = generation{
	command: "dnf5", name: "dnf5",
	options:   []string{"-y", "--setopt=skip_if_unavailable=0", "--setopt=*.skip_if_unavailable=0", "--setopt=skip_broken=0", "--setopt=skip_unavailable=0"},
	cache:     "/var/cache/libdnf5",
	fileLocks: []string{"/run/dnf/rpmtransaction.lock", "/var/lib/dnf/system-repo.lock"},
	rowEnd:    "\n",
	// repoquery heeds versionlock in some versions, and cannot be told not to.
	everything:    []string{"--setopt=disable_excludes=*"},
	versionlocks:  []string{"versionlock", "list"},
	nobest:        "--no-best",
	replayCommand: []string{"replay"},
	replayFolder:  true,
	fetch:         "--setopt=tsflags=test",
	// It wants lists of files, which nothing else fetches: without them it goes by the names
	// of packages alone, and not also by advisories.
	rebootHint: []string{offline, "--setopt=skip_if_unavailable=1", "--setopt=*.skip_if_unavailable=1", "needs-restarting", "-r"},
	format:     "1.0",
	// The version before of a package that is installed again is the package itself.
	actions: map[string]string{"Upgraded": "Replaced", "Downgraded": "Replaced", "Removed": "Remove", "Reinstalled": ""},
	// The reason of an upgrade stays where another one is stronger, and none is the weakest.
	reasons:  map[string]string{"user": "User", "dependency": "Dependency", "unknown": "None"},
	resolved: resolvedByDNF5,
	problems: problemsByDNF5,
	cut:      cutByDNF5,
	telling:  tellingByDNF5,
}

// resolvedByDNF5 reads what dnf5 prints with --assumeno: the table on standard output,
// then the rest. It is as strict as resolvedByDNF4. Where no terminal is, no row is
// wrapped and no version cut off.
func resolvedByDNF5(printed string) (resolved, error) {
	var r resolved
	if !strings.Contains(printed, "\nOperation aborted by the user.") {
		if strings.Contains(printed, nothing) {
			return r, nil
		}
		return r, errors.New("dnf5 ended before it told what it would do")
	}
	table, _, ok := strings.Cut(printed, "\n\nTransaction Summary:\n")
	if !ok {
		return r, errors.New("dnf5 printed no summary after its table of packages")
	}
	_, table, ok = strings.Cut("\n"+table, "\nPackage ")
	if !ok {
		return r, errors.New("dnf5 printed no table of packages")
	}
	section, last := action(0), item{}
	for i, line := range strings.Split(table, "\n") {
		if i == 0 {
			continue // The names of the columns.
		}
		if !strings.HasPrefix(line, " ") {
			named, known := sections[strings.TrimSuffix(line, ":")]
			if !known {
				return resolved{}, fmt.Errorf("dnf5 would do what no plan can name: %.100q", line)
			}
			section = named
			continue
		}
		row, replaces := strings.CutPrefix(line, "   replacing ")
		it, ok := rowByDNF5(row, section)
		if !ok || replaces && last.key == "" {
			return resolved{}, fmt.Errorf("dnf5 printed %.200q, which is not a package", line)
		}
		switch {
		case !replaces:
			r.add(it)
			last = it
		case it.key != last.key: // Otherwise it is the version before.
			r.replaced = append(r.replaced, item{removes, it.key, it.version})
		}
	}
	return r, nil
}

// rowByDNF5 reads a row: name, architecture, version, repository, which may be empty, and
// the size.
func rowByDNF5(row string, section action) (item, bool) {
	words := strings.Fields(row)
	if section == 0 || len(words) < 4 || len(words) > 6 {
		return item{}, false
	}
	version := plainVersion(words[2])
	return item{section, words[0] + "." + words[1], version}, version != ""
}

// problemsByDNF5 reads what dnf5 check prints: the NEVRA of a package, with its epoch, and
// below each of its problems.
func problemsByDNF5(printed string) (all []problem) {
	about := ""
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			about = withoutEpoch0(strings.TrimSpace(line))
			continue
		}
		p := problem{[]string{about}, strings.TrimSpace(about + " has: " + strings.TrimSpace(line))}
		if quoted := strings.Split(line, `"`); len(quoted) > 2 {
			p.packages = append(p.packages, withoutEpoch0(quoted[len(quoted)-2]))
		}
		all = append(all, p)
	}
	return all
}

// withoutEpoch0 returns a NEVRA as nevra does.
func withoutEpoch0(printed string) string {
	if i := strings.LastIndex(printed, "-0:"); i >= 0 {
		return printed[:i+1] + printed[i+3:]
	}
	return printed
}

// cutByDNF5 reports whether dnf5 history info tells of a transaction that did not end well.
// It reads the text, which each dnf5 prints: those of Fedora 41 and 42 have no --json here.
func cutByDNF5(printed string) bool {
	for line := range strings.Lines(printed) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "Status" {
			return strings.TrimSpace(value) != "Ok"
		}
	}
	return false
}

// reasonsOfDNF5 begin lines that tell why dnf5 failed. What it prints otherwise is the
// table, how far it is, and advice that would change the plan.
var reasonsOfDNF5 = text.Pattern(`^(Failed to |Transaction failed|Cannot |Extra package|No match|OpenPGP check|Cache-only|Unknown argument|setopt: |Error|Invalid |Usable URL|There are no |The requested operation|` +
	`Librepo error|Incompatible |- (package|nothing|installing|cannot|file|conflict)|>>> (Curl|Status|Librepo|Non-critical|Error|No more|Downloading|\[RPM\])|\[RPM\] |error: |warning: %)`)

func tellingByDNF5(line string, _ bool) (said string, goesOn bool) {
	plain := message.CleanText(strings.TrimSpace(line))
	if !reasonsOfDNF5().MatchString(plain) {
		return "", false
	}
	return strings.TrimPrefix(plain, ">>> "), false
}

// versionlock is an entry of dnf5 versionlock list: of a package that it names, only
// versions are upgraded to which all conditions of one entry apply.
type versionlock struct {
	name       string
	conditions [][3]string // Key, comparator, value.
}

// parseVersionlocks reads dnf5 versionlock list. What it does not know it skips: dnf5 itself
// heeds the locks, here they only tell why a package stays.
func parseVersionlocks(printed string) (all []versionlock) {
	for line := range strings.Lines(printed) {
		if name, ok := strings.CutPrefix(line, "Package name: "); ok {
			all = append(all, versionlock{name: strings.TrimSpace(name)})
			continue
		}
		if words := strings.Fields(line); len(all) > 0 && len(words) == 3 && !strings.HasPrefix(line, "#") {
			last := &all[len(all)-1]
			last.conditions = append(last.conditions, [3]string{words[0], words[1], words[2]})
		}
	}
	return all
}

// locksOut reports whether a version of a package cannot be upgraded to.
func locksOut(locks []versionlock, key, version string) bool {
	name, arch := splitKey(key)
	named := false
	for _, lock := range locks {
		if !strategy.Matches([]string{lock.name}, name) {
			continue
		}
		named = true
		all := true
		for _, c := range lock.conditions {
			all = all && holds(c, arch, version)
		}
		if all {
			return false
		}
	}
	return named
}

// holds reports whether a condition applies to a version. A value without a release stands
// for each release of it.
func holds(condition [3]string, arch, version string) bool {
	sign, value := 0, condition[2]
	switch condition[0] {
	case "arch":
		sign = strings.Compare(arch, value)
	case "epoch":
		epoch, _, found := strings.Cut(version, ":")
		if !found {
			epoch = "0"
		}
		sign = rpmversion.Compare(epoch, value)
	default:
		if !strings.Contains(value, "-") {
			version, _, _ = strings.Cut(version, "-")
		}
		if sign = rpmversion.Compare(version, value); strategy.Matches([]string{value}, version) {
			sign = 0
		}
	}
	switch condition[1] {
	case "=":
		return sign == 0
	case "!=":
		return sign != 0
	case "<":
		return sign < 0
	case "<=":
		return sign <= 0
	case ">":
		return sign > 0
	case ">=":
		return sign >= 0
	}
	return false
}
