package dnf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/rpmversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// database has the installed packages: the versions by "name.arch", the oldest first. A
// package has several when it is one of those that are installed beside each other, such
// as a kernel, or when an upgrade was interrupted.
type database map[string][]string

// sizes are what the files of installed packages take, in bytes, by "name.arch".
type sizes map[string]int64

// databaseFormat is the format of rpm -qa that parseDatabase reads.
const databaseFormat = `%{NAME} %{EPOCHNUM} %{VERSION} %{RELEASE} %{ARCH} %{LONGSIZE}\n`

// parseDatabase reads the output of rpm -qa in databaseFormat.
func parseDatabase(printed string) (database, sizes, error) {
	all, taken := database{}, sizes{}
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		if len(fields) == 6 && fields[4] == "(none)" {
			continue // gpg-pubkey is a key, not a package.
		}
		if len(fields) != 6 {
			return nil, nil, fmt.Errorf("rpm -qa printed %.200q, which is not a package", line)
		}
		version, err := evr(fields[1], fields[2], fields[3])
		if err != nil {
			return nil, nil, fmt.Errorf("rpm -qa printed %.200q: %w", line, err)
		}
		size, err := strconv.ParseInt(fields[5], 10, 62)
		if err != nil || size < 0 {
			return nil, nil, fmt.Errorf("rpm -qa printed %.200q, whose size %.50q is no number of bytes", line, fields[5])
		}
		key := fields[0] + "." + fields[4]
		if !slices.Contains(all[key], version) {
			all[key] = append(all[key], version)
		}
		taken[key] = max(taken[key], size)
	}
	for _, versions := range all {
		slices.SortFunc(versions, rpmversion.Compare)
	}
	return all, taken, nil
}

// evr is a version as dnf prints it: epoch:version-release, without an epoch of 0.
func evr(epoch, version, release string) (string, error) {
	if number, err := strconv.ParseUint(epoch, 10, 32); err != nil {
		return "", fmt.Errorf("the epoch %.50q is no number", epoch)
	} else if number > 0 {
		return strconv.FormatUint(number, 10) + ":" + version + "-" + release, nil
	}
	return version + "-" + release, nil
}

// splitKey cuts "name.arch".
func splitKey(key string) (name, arch string) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return key, ""
	}
	return key[:i], key[i+1:]
}

// nevra is a package as dnf names it: name-epoch:version-release.arch.
func nevra(key, version string) string {
	name, arch := splitKey(key)
	return name + "-" + version + "." + arch
}

// newest returns the newest version of a package; empty if it is not installed.
func (d database) newest(key string) string {
	if versions := d[key]; len(versions) > 0 {
		return versions[len(versions)-1]
	}
	return ""
}

// missing returns the changes that the host does not have. The version before must be
// gone: rpm has both between the installation of the new one and the removal of the old.
func (d database) missing(changes []message.Change) (missing []message.Change) {
	for _, c := range changes {
		if c.To != "" && !slices.Contains(d[c.Name], c.To) {
			missing = append(missing, message.Change{Name: c.Name, From: d.newest(c.Name), To: c.To})
		} else if c.From != "" && slices.Contains(d[c.Name], c.From) {
			missing = append(missing, message.Change{Name: c.Name, From: c.From, To: c.To})
		}
	}
	return missing
}

// untouched reports whether the host has nothing of some changes.
func (d database) untouched(changes []message.Change) bool {
	for _, c := range changes {
		if c.To != "" && slices.Contains(d[c.Name], c.To) || c.From != "" && !slices.Contains(d[c.Name], c.From) {
			return false
		}
	}
	return true
}

// after returns the versions that some changes lead to, by the names of packages.
func (d database) after(changes []message.Change) map[string]string {
	versions := map[string]string{}
	for key := range d {
		name, _ := splitKey(key)
		versions[name] = d.newest(key)
	}
	for _, gone := range []bool{true, false} { // A package may go for that of another architecture.
		for _, c := range changes {
			if name, _ := splitKey(c.Name); gone == (c.To == "") {
				versions[name] = c.To
			}
		}
	}
	return versions
}
