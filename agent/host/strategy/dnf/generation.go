package dnf

import (
	"os"
	"path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
)

// generation is all that differs between dnf 4 and dnf5: two programs with much the same
// commands. What upgrades a host asks it and does not know which one it is.
type generation struct {
	// command is the program, name is for people.
	command, name string
	// options are those of every call: no question is asked, a repository that is down is
	// an error, and what cannot be installed as planned is an error.
	options []string
	// cache is where metadata and downloads are kept.
	cache string
	// pidFiles are locks that contain the id of the process which holds them. A process that
	// was killed leaves them, and the next one takes them over.
	pidFiles []string
	// fileLocks are those of fcntl(2).
	fileLocks []string
	// rowEnd is what the format of a row of repoquery ends with.
	rowEnd string
	// unlocked has a query ignore what versionlock locks, everything the excludes, too.
	unlocked, everything []string
	// versionlocks lists what is locked, where no option has a query ignore it alone.
	versionlocks []string
	// nobest has an upgrade leave out what cannot be upgraded.
	nobest string
	// replayCommand carries out a stored transaction. replayFolder says that it is told the
	// folder of the file.
	replayCommand []string
	replayFolder  bool
	// fetch has a replay download and check a transaction, and change nothing.
	fetch string
	// rebootHint asks whether a reboot is required, by what has been fetched.
	rebootHint []string
	// format is the version of a stored transaction. actions and reasons are its words, where
	// they are not those of dnf 4; an action that is "" is left out.
	format           string
	actions, reasons map[string]string
	// resolved reads what is printed with --assumeno, problems what check prints, cut
	// whether history info tells of a transaction that did not end well, and telling which
	// lines tell why a command failed.
	resolved func(printed string) (resolved, error)
	problems func(printed string) []problem
	cut      func(printed string) bool
	telling  func(line string, inError bool) (said string, goesOn bool)
}

// places are where the programs are.
const dnfPath, dnf5Path = "/usr/bin/dnf", "/usr/bin/dnf5"

// generationOf returns the generation that upgrades a host: that of its command dnf, which
// is a link to dnf5 since Fedora 41, or else dnf5 beside it. It is dnf 4 where there is none.
func generationOf(h hostfs.Root) *generation {
	if target, err := os.Readlink(h.Path(dnfPath)); err == nil && path.Base(target) == "dnf5" || !h.Exists(dnfPath) && h.Exists(dnf5Path) {
		return &dnf5
	}
	return &dnf4
}

// problem is what check finds about a package.
type problem struct {
	// packages are those that the problem is about, each as nevra returns it.
	packages []string
	text     string
}

// spell returns a transaction in the words of a generation.
func (g *generation) spell(t storedTransaction) storedTransaction {
	t.Version = g.format
	all := t.RPMs
	t.RPMs = nil
	for _, pkg := range all {
		action, other := g.actions[pkg.Action]
		if other && action == "" {
			continue
		}
		if other {
			pkg.Action = action
		}
		if reason, other := g.reasons[pkg.Reason]; other {
			pkg.Reason = reason
		}
		t.RPMs = append(t.RPMs, pkg)
	}
	return t
}
