package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// named returns a release as a run is pinned to it, unless it is withdrawn or is not there.
func (i *intent) named(name string) (*release.Pin, error) {
	declared, known := i.releases[name]
	switch err := i.unusable[store.Object{Kind: store.Release, Name: name}]; {
	case err != nil:
		return nil, fmt.Errorf("release %s cannot be read: %w; write it anew", name, err)
	case !known:
		return nil, fmt.Errorf("there is no release %s; to see those that there are: %s", name, run.Command("get releases"))
	case declared.Withdrawn != nil:
		return nil, fmt.Errorf("release %s is withdrawn, %s; name another one", name, whyWithdrawn(*declared.Withdrawn))
	}
	return new(declared.Pin(name)), nil
}

// waitsForRelease tells that an environment names a release that is withdrawn, also between its windows:
// none of them opens a run. It is nil otherwise.
func (i *intent) waitsForRelease(environment string) *v1.WaitingFor {
	name := i.target(environment).Named()
	w := i.releases[name].Withdrawn
	if w == nil {
		return nil
	}
	_, err := i.named(name)
	return &v1.WaitingFor{What: "window", Detail: fmt.Sprintf("a release: %v", err), Since: view.Time(w.At)}
}

// whyWithdrawn tells who has withdrawn a release, and why.
func whyWithdrawn(w release.Withdrawn) string {
	return fmt.Sprintf("by %s: %s", cmp.Or(w.By, message.ByAgent), w.Reason)
}

// withdrawn returns the event that ends a run whose release was withdrawn; nil if it was not.
func (i *intent) withdrawn(pinned *release.Pin) *message.Aborted {
	if pinned == nil {
		return nil
	}
	declared := i.releases[pinned.Name]
	if declared.Withdrawn == nil || declared.Digest() != pinned.Digest {
		return nil
	}
	return &message.Aborted{
		By: cmp.Or(declared.Withdrawn.By, message.ByAgent), Why: message.CleanText(fmt.Sprintf("release %s is withdrawn: %s", pinned.Name, declared.Withdrawn.Reason)),
	}
}

// releaseAt returns the release to which a run of an environment goes that is opened at a time; nil for
// none. goesOn is the release of the runs that it goes on from: an environment that follows keeps it until
// all their stages are done, so all its hosts get the same. until is when the environment goes to another
// one by itself; zero for never.
func (i *intent) releaseAt(environment string, goesOn *release.Pin, now time.Time) (pinned *release.Pin, until time.Time, err error) {
	target := i.target(environment)
	switch {
	case target.Follow != nil && goesOn != nil:
		return goesOn, time.Time{}, nil
	case target.Follow != nil:
		name, made, until := release.Followed(*target.Follow, now)
		return new(made.Pin(name)), until, nil
	case target.Named() != "":
		pinned, err = i.named(target.Named())
	}
	return pinned, time.Time{}, err
}

// releaseOf returns the release to which the next run of an environment goes.
func (s *state) releaseOf(env *environment, now time.Time) (*release.Pin, error) {
	pinned, _, err := s.intent.releaseAt(env.name, env.goesOn(), now)
	return pinned, err
}

// goesOn is the release of the runs that the next run of the environment goes on from; nil if it has none,
// or begins with the first stage.
func (e *environment) goesOn() *release.Pin {
	reached, last := e.ledger.Reached(), e.ledger.Newest()
	if reached == nil || last == nil || last.Release == nil || last.Release.Digest != reached.Release {
		return nil
	}
	return last.Release
}

// releaseToStart returns the release to which a run goes that is started by hand: the one that the
// request names, that of the run that it retries, or that of the environment. A release that was rolled
// back has to be named.
func (s *state) releaseToStart(env *environment, now time.Time, request v1.Start, retried *release.Pin) (pinned *release.Pin, err error) {
	switch {
	case request.Release != "":
		pinned, err = s.intent.named(request.Release)
	case request.RetryOf == 0:
		pinned, err = s.releaseOf(env, now)
	default:
		if w := s.intent.withdrawn(retried); w != nil {
			err = fmt.Errorf("%s, by %s; to go to another release: %s", w.Why, w.By, run.Typed(startWords(request)+" --release NAME"))
		}
		pinned = retried
	}
	if why := env.rolledBack(pinned); err == nil && why != "" && request.Release == "" {
		request.Release = pinned.Name
		err = fmt.Errorf("%s; name another release, or to have it again: %s", why, startAgain(request, ""))
	}
	if err != nil {
		return nil, &run.Refused{Run: request.RetryOf, Message: err.Error()}
	}
	return pinned, nil
}

// fit notes of each host why it must not go to a release. The host has the last word: it compares the
// versions that it has by then.
func (s *state) fit(fleet []plan.Host, pinned *release.Pin) error {
	if pinned == nil {
		return nil
	}
	r, err := pinned.Release()
	if err != nil {
		return err
	}
	for i := range fleet {
		fleet[i].Unfit = s.hosts.unfit(fleet[i].Name, r)
	}
	return nil
}

// unfit is why a host must not go to a release, by what it has said last; empty if it may.
func (h *hosts) unfit(name string, r release.Release) string {
	known := h.known[name]
	switch {
	case known == nil || len(known.Releases) == 0:
		return "its agent cannot carry out releases; upgrade the agent"
	case !slices.Contains(known.Releases, r.Kind()):
		return fmt.Sprintf("it carries out %s, and the release is of %s", release.Kinds(known.Releases), r.Kind())
	}
	return r.Misfit(h.versions[name].versions)
}

// leavesAll says why no host is left for a run: each is left out, by the rollout or because the release
// is not for it.
func leavesAll(p plan.Plan, pinned *release.Pin) string {
	by := "the rollout leaves"
	if pinned != nil {
		by = fmt.Sprintf("the rollout and release %s leave", pinned.Name)
	}
	said := fmt.Sprintf("%s out every one of %s; the first is %s: %s", by, text.Count(len(p.Exempt), "host", "hosts"), p.Exempt[0].Host, p.Exempt[0].Reason)
	if pinned == nil {
		said += "; to change that: " + run.Command("edit rollout")
	}
	return said
}

// target returns what says to which release an environment goes: the environment, or else the configuration
// of the tenant.
func (i *intent) target(environment string) release.Target {
	if d := i.environments[environment]; d != nil && d.Decides() {
		return d.Target
	}
	if i.config == nil {
		return release.Target{}
	}
	return i.config.Target
}
