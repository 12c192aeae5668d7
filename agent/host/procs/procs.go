// Package procs tells people which process did something on a host, and who has started that. It
// decides nothing, and what it cannot read it does not tell.
package procs

import (
	"fmt"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Name is the name of a process; empty if it has ended.
func Name(pid int) string { return strings.TrimSpace(read(pid, "comm")) }

// StartedBy says who has started a process: the unit of systemd that it belongs to, such as
// apt-daily-upgrade.service or packagekit.service, or whose login. It is empty if nobody can tell.
func StartedBy(pid int) string {
	return ownerOf(read(pid, "cgroup"), func(uid string) string {
		if known, err := user.LookupId(uid); err == nil {
			return known.Username
		}
		return "user " + uid
	})
}

// read returns a file of a process; empty if it has ended.
func read(pid int, name string) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	if err != nil {
		return ""
	}
	return string(text)
}

// ownerOf reads /proc/PID/cgroup, cgroups(7). Logins are in slices with the number of their user,
// whatever that has become since, such as root by sudo.
func ownerOf(groups string, name func(uid string) string) string {
	at := group(groups)
	if _, slice, ok := strings.Cut(at, "/user-"); ok {
		if uid, _, ok := strings.Cut(slice, ".slice"); ok {
			return "a login of " + name(uid)
		}
	}
	return unit(at)
}

// group returns the control group that systemd has made.
func group(groups string) string {
	for line := range strings.Lines(groups) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controller, at, _ := strings.Cut(rest, ":")
		if (controller == "" || controller == "name=systemd") && unit(at) != "" {
			return at
		}
	}
	return ""
}

// unit returns the unit that a control group belongs to.
func unit(group string) string {
	for at := path.Clean(group); at != "." && at != "/"; at = path.Dir(at) {
		if base := path.Base(at); strings.HasSuffix(base, ".service") || strings.HasSuffix(base, ".scope") {
			return base
		}
	}
	return ""
}

// Stopper says who has systemd stop or restart the unit of this process, or the machine: the
// command waits for that. It is empty if nobody does.
func Stopper() string {
	own := unit(group(read(os.Getpid(), "cgroup")))
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range all {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		words := strings.Split(strings.TrimRight(read(pid, "cmdline"), "\x00"), "\x00")
		if !stops(words, own) {
			continue
		}
		who := fmt.Sprintf("%s (process %d)", strings.Join(words, " "), pid)
		if parent := parentOf(read(pid, "stat")); parent > 1 {
			who += fmt.Sprintf(" of %s (process %d)", Name(parent), parent)
		}
		if by := StartedBy(pid); by != "" {
			who += ", started by " + by
		}
		return who
	}
	return ""
}

// stops reports whether a command has systemd stop a unit or the machine.
func stops(words []string, unit string) bool {
	if path.Base(words[0]) != "systemctl" {
		return false
	}
	has := func(wanted ...string) bool {
		return slices.ContainsFunc(words[1:], func(word string) bool { return slices.Contains(wanted, word) })
	}
	return has("reboot", "poweroff", "halt", "kexec", "soft-reboot", "isolate") ||
		unit != "" && has("restart", "try-restart", "reload-or-restart", "stop", "kill") && has(unit, strings.TrimSuffix(unit, ".service"))
}

// parentOf reads the parent in /proc/PID/stat, proc_pid_stat(5): the second field after the name,
// which may contain anything.
func parentOf(stat string) int {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
