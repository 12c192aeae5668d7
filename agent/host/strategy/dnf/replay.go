package dnf

import (
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/rpmversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// storedTransaction is a transaction that dnf history replay carries out: exactly that, or an
// error that names what else it would change. dnf-transaction-json(5). Its words are
// those of dnf 4; generation.spell has those of dnf5.
type storedTransaction struct {
	Version string `json:"version"`
	RPMs    []rpm  `json:"rpms"`
}

type rpm struct {
	Action string `json:"action"`
	NEVRA  string `json:"nevra"`
	// Reason is why a package is installed: "user" keeps it, "dependency" lets dnf
	// autoremove remove it. What dnf has recorded stays when it says "unknown".
	Reason string `json:"reason"`
	// Repo is any repository when it is empty.
	Repo string `json:"repo_id"`
}

// replay returns the transaction that brings a host from what it has now to some
// changes. With again, planned packages that are there are installed once more: a
// dnf that was killed may have cut off their scripts. reason is that of packages
// which are new.
func replay(changes []message.Change, now database, again bool, reason func(key string) string) storedTransaction {
	all := storedTransaction{}
	add := func(action, key, version, reason string) {
		all.RPMs = append(all.RPMs, rpm{Action: action, NEVRA: nevra(key, version), Reason: reason})
	}
	for _, c := range changes {
		has := now[c.Name]
		left := c.From != "" && slices.Contains(has, c.From) // The version before is still there.
		switch {
		case c.To == "" && left, c.To != "" && slices.Contains(has, c.To) && left:
			add("Removed", c.Name, c.From, "unknown")
		case c.To == "", slices.Contains(has, c.To):
		case c.From == "" || len(has) == 0:
			add("Install", c.Name, c.To, reason(c.Name))
		default:
			forward, back := "Upgrade", "Upgraded"
			if rpmversion.Compare(c.To, now.newest(c.Name)) < 0 {
				forward, back = "Downgrade", "Downgraded"
			}
			add(forward, c.Name, c.To, "unknown")
			old := c.From
			if !left { // The host has changed since it was prepared.
				old = now.newest(c.Name)
			}
			add(back, c.Name, old, "unknown")
		}
		if c.To != "" && slices.Contains(has, c.To) && (left || again) {
			add("Reinstall", c.Name, c.To, "unknown")
			add("Reinstalled", c.Name, c.To, "unknown")
		}
	}
	return all
}
