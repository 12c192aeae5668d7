package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// lookAgain is the shortest time between two requests of a host to look for what an upgrade
	// would change.
	lookAgain = time.Minute
	// looksPerSecond is how many hosts may begin to look in a second: each may fetch lists of
	// packages of some megabytes from the same mirror.
	looksPerSecond = 20
)

// Refresh has hosts look for what an upgrade would change by what there is to install now: all
// that are known, or those that the request chooses. It does not wait for them. The
// error is run.ErrNoHost when a host is not known, and *run.Refused when none is chosen.
func (c *Controller) Refresh(ctx context.Context, request v1.Refresh) (v1.Refreshed, error) {
	type chosen struct {
		v1.Refreshed
		names []string
	}
	found, err := until(ctx, c, func(s *state) (chosen, error) {
		var found chosen
		names, err := s.chosen(request.Selector())
		if err != nil {
			return found, err
		}
		now := s.Now()
		for _, name := range names {
			known := s.hosts.known[name]
			switch {
			case !s.hosts.isOnline(name, now):
				found.Silent++
			case now.Sub(known.lookAskedAt).Abs() < lookAgain:
				found.Recent++
			default:
				known.lookAskedAt = now
				found.names = append(found.names, name)
			}
		}
		return found, nil
	})
	if err != nil {
		return v1.Refreshed{}, err
	}
	within := time.Duration(len(found.names)/looksPerSecond) * time.Second
	for _, name := range found.names {
		if err := c.o.HostEvents.Ask(name, log.Ask{Kind: report.Offer, Within: within}); err != nil {
			return v1.Refreshed{}, err
		}
	}
	found.Asked, found.WithinSeconds = len(found.names), int(within/time.Second)
	return found.Refreshed, nil
}

// chosen returns the names of the known hosts that a selector chooses, by name. Each host that it
// names must be known.
func (s *state) chosen(selector v1.Selector) ([]string, error) {
	for _, name := range selector.Hosts {
		if s.hosts.known[name] == nil {
			return nil, fmt.Errorf("host %s: %w", name, run.ErrNoHost)
		}
	}
	var names []string
	for _, host := range fitting(s.hosts.sorted(), selector.Matcher(), 0) {
		names = append(names, host.Name)
	}
	if len(names) == 0 && !selector.IsZero() {
		return nil, &run.Refused{Message: s.matchesNone(selector)}
	}
	return names, nil
}

// matchesNone says that a selector chooses no known host, and why.
func (s *state) matchesNone(selector v1.Selector) string {
	return selector.MatchesNone(plan.Unmatched(plan.Intent{Selector: &selector}, s.knownHosts()))
}
