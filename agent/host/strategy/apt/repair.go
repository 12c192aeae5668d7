package apt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// condition is what Resume sees of a host.
type condition struct {
	// interrupted is set while dpkg has updates of its database that it has not
	// merged: apt refuses everything then.
	interrupted bool
	// reinstall are packages that only a new unpacking repairs, unfinished those that
	// are unpacked and not configured.
	reinstall, unfinished []string
	// gone are those of reinstall that no repository has any more, in any version.
	gone []string
	// missing is whether a change of the plan is missing.
	missing bool
}

// whole tells that dpkg has finished with all packages.
func (c condition) whole() bool { return !c.interrupted && len(c.reinstall)+len(c.unfinished) == 0 }

// remedy returns what a person does about such a host.
func (c condition) remedy() remedy.Remedy {
	switch {
	case len(c.gone) > 0:
		return remedy.AptGone.With(strings.Join(c.gone, " "))
	case len(c.reinstall) > 0:
		return remedy.AptReinstall.With(strings.Join(c.reinstall, " "))
	default:
		return remedy.AptConfigure
	}
}

// what names the packages that dpkg has not finished with.
func (c condition) what() string {
	return cmp.Or(few(slices.Concat(c.reinstall, c.unfinished)), "its database")
}

// leftByOthers is the failure of a host that others have left broken: they have to repair it.
func (c condition) leftByOthers(when string) error {
	return strategy.Fail(message.Install, fmt.Errorf("dpkg has not finished with %s, %s; %s", c.what(), when, c.remedy()))
}

// repair is a command that repairs a host.
type repair string

// The repairs. The order matters: see nextRepair.
const (
	repairConfigure repair = "configure"
	repairReinstall repair = "reinstall"
	repairUpdate    repair = "update"
	repairFix       repair = "fix"
	repairInstall   repair = "install"
)

// attempt is a repair that was tried.
type attempt struct {
	repair repair
	ok     bool
}

// nextRepair returns the next command for a host whose upgrade was interrupted, and
// false when there is none: the host is repaired, or nothing else helps.
//
// dpkg --configure -a comes first, since apt refuses everything before it ("dpkg was
// interrupted"). It may fail: a package that was cut off while it was unpacked
// ("reinstreq", "very bad inconsistent state") is repaired by no configuration, and
// by no apt-get -f install, but by a new unpacking. When its archive was lost,
// because the power was, that takes an update of the lists first. Then the others
// are configured, and the plan is carried out; apt-get -f install comes only when the
// plan alone does not help, since it may also remove what it cannot complete.
func nextRepair(now condition, tried []attempt) (repair, bool) {
	last := attempt{ok: true}
	if len(tried) > 0 {
		last = tried[len(tried)-1]
	}
	count := func(r repair) int {
		return len(slices.DeleteFunc(slices.Clone(tried), func(a attempt) bool { return a.repair != r }))
	}
	switch {
	case len(tried) >= maxRepairs:
		return "", false
	case now.interrupted && count(repairConfigure) == 0:
		return repairConfigure, true
	case len(now.reinstall) > 0 && count(repairReinstall) == 0:
		return repairReinstall, true
	case len(now.reinstall) > 0 && count(repairReinstall) < 3 && count(repairUpdate) == 0:
		return repairUpdate, true
	case len(now.reinstall) > 0 && count(repairReinstall) < 3 && last.repair == repairUpdate:
		return repairReinstall, true
	case len(now.reinstall) > 0:
		return "", false
	case (now.interrupted || len(now.unfinished) > 0) && last.repair != repairConfigure && count(repairConfigure) < 3:
		return repairConfigure, true
	case now.missing && count(repairInstall) == 0:
		return repairInstall, true
	case now.missing && count(repairUpdate) == 0:
		return repairUpdate, true
	case now.missing && count(repairInstall) < 3 && last.repair == repairUpdate:
		return repairInstall, true
	case (now.missing || len(now.unfinished) > 0) && count(repairFix) == 0:
		return repairFix, true
	case now.missing && last == (attempt{repairFix, true}):
		return repairInstall, true
	}
	return "", false
}

// maxRepairs bounds the repairs of one call.
const maxRepairs = 12
