package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/compare"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// mostConflicts bounds the packages that are named which no release can have.
const mostConflicts = 5

// Installed returns a release of the packages that a run has installed on its hosts. The error is
// run.ErrNoRun if there is no such run, and *run.Refused if no release can say what it installed.
func (c *Controller) Installed(ctx context.Context, id uint64) (v1.Installed, error) {
	r, err := c.Find(ctx, id)
	if err != nil {
		return v1.Installed{}, err
	}
	refused := func(format string, args ...any) (v1.Installed, error) {
		return v1.Installed{}, &run.Refused{Run: id, Message: fmt.Sprintf(format, args...)}
	}
	if name := otherRelease(r.Release); name != "" {
		return refused("run %d installed release %s, which is the same for all hosts; name that one", id, name)
	}
	var hosts []compare.Host
	for _, h := range r.Hosts {
		if h.Status == string(run.Upgraded) {
			hosts = append(hosts, compare.Host{Name: h.Hostname})
		}
	}
	if len(hosts) == 0 {
		return refused("run %d has upgraded no host", id)
	}
	plans := compare.New()
	missing, err := addPlans(ctx, c.o, id, plans, hosts)
	if err != nil {
		return v1.Installed{}, err
	}
	if len(missing) > 0 {
		return refused("the plans of %s of run %d are not kept; use a newer run", text.List(slices.Sorted(maps.Keys(missing)), maxCompared), id)
	}
	found := plans.Installed()
	switch {
	case len(found.Differing) > 0:
		told := compare.Told(found.Differing)
		return refused("run %d installed different versions, and a release has one of each package: %s", id, strings.Join(told.Texts(), "; "))
	case found.Of == 0:
		return refused("run %d has changed nothing on any host", id)
	case len(found.Only) == 0:
		return refused("the hosts of run %d have changed no package in common: %s", id, strings.Join(partly(found, mostConflicts), "; "))
	}
	made := v1.Release{Description: fmt.Sprintf("What run %d installed", id), Packages: &release.Packages{Select: release.Listed, Only: found.Only}}
	if wrong := made.Validate(); len(wrong) > 0 {
		return refused("what run %d installed is no release: %v", id, wrong)
	}
	if why := made.TooLarge(); why != "" {
		return refused("what run %d installed is no release: %s", id, why)
	}
	return v1.Installed{Release: made, LeftOut: partly(found, len(found.Partly))}, nil
}

// otherRelease is the name of a release that installs no packages; empty for none.
func otherRelease(pinned *v1.RunRelease) string {
	if pinned == nil {
		return ""
	}
	if r, err := release.Decode(pinned.Text, pinned.Digest); err == nil && r.Packages == nil {
		return pinned.Name
	}
	return ""
}

// partly tells of up to so many packages that only some hosts have changed.
func partly(found compare.Installed, most int) (texts []string) {
	for _, p := range found.Partly[:min(len(found.Partly), most)] {
		texts = append(texts, fmt.Sprintf("%s on %d of %s", p.Name, p.Hosts, text.Count(found.Of, "host", "hosts")))
	}
	if more := len(found.Partly) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return texts
}
