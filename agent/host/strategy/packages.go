package strategy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Packages returns what a run installs on a host that takes packages: what its release says
// or, if it has none, all that there is.
func (j Job) Packages() (release.Packages, error) {
	if j.Release == nil {
		return release.Packages{Select: release.All}, nil
	}
	if err := j.checkKind([]release.Kind{release.OfPackages}); err != nil {
		return release.Packages{}, err
	}
	return *j.Release.Packages, nil
}

// LeftOut returns why a release leaves a package as it is; empty if it does not.
func LeftOut(p release.Packages, name string) string {
	switch {
	case Matches(p.Except, name):
		return "excepted by the release"
	case p.Select != release.Listed && len(p.Only) > 0 && !Matches(p.Only, name):
		return "not named by the release"
	}
	return ""
}

// WithInstalls adds to the missing changes of a plan what the release of a job installs and the
// versions of its host do not have. Before the reboot, and on the way back, nothing of that is
// expected yet.
func (j Job) WithInstalls(missing []message.Change, versions map[string]string) []message.Change {
	if j.Release == nil || j.Staged || j.Reversed {
		return missing
	}
	for _, name := range slices.Sorted(maps.Keys(j.Release.Installs)) {
		told := slices.ContainsFunc(missing, func(c message.Change) bool { return c.Name == name })
		if version := j.Release.Installs[name]; versions[name] != version && !told {
			missing = append(missing, message.Change{Name: name, From: versions[name], To: version})
		}
	}
	return missing
}

// Reaches returns an error if a plan does not lead to what the release of a job installs. has are the
// packages that the host would have by the plan, and system what else it reports, which is known
// only afterwards.
func (j Job) Reaches(has, system map[string]string) error {
	if j.Release == nil {
		return nil
	}
	var short []string
	for _, name := range slices.Sorted(maps.Keys(j.Release.Installs)) {
		if _, later := system[name]; !later && has[name] != j.Release.Installs[name] {
			short = append(short, fmt.Sprintf("%s %s and not %s", name, cmp.Or(has[name], "(none)"), j.Release.Installs[name]))
		}
	}
	if len(short) == 0 {
		return nil
	}
	return Fail(message.Repository, fmt.Errorf("by its plan this host gets %s, which the release installs; offer that in a repository of this host, and see what the plan holds back", text.List(short, 5)))
}
