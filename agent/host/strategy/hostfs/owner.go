package hostfs

import (
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// startedBy says for people who has started a process: the unit of systemd that it belongs to,
// such as apt-daily-upgrade.service or packagekit.service, or whose login. It is empty if
// nobody can tell.
func startedBy(pid int) string {
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "" // It may just have ended.
	}
	return ownerOf(string(groups), func(uid string) string {
		if known, err := user.LookupId(uid); err == nil {
			return known.Username
		}
		return "user " + uid
	})
}

// ownerOf reads /proc/PID/cgroup, cgroups(7). Logins are in slices with the number of their user,
// whatever that has become since, such as root by sudo.
func ownerOf(groups string, name func(uid string) string) string {
	for line := range strings.Lines(groups) {
		_, controllers, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controller, at, _ := strings.Cut(controllers, ":")
		if controller != "" && controller != "name=systemd" {
			continue
		}
		if _, slice, ok := strings.Cut(at, "/user-"); ok {
			if uid, _, ok := strings.Cut(slice, ".slice"); ok {
				return "a login of " + name(uid)
			}
		}
		for ; at != "." && at != "/"; at = path.Dir(at) {
			if unit := path.Base(at); strings.HasSuffix(unit, ".service") || strings.HasSuffix(unit, ".scope") {
				return unit
			}
		}
	}
	return ""
}
