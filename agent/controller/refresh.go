package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
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
// that are known, or those that the request names. It does not wait for them. The
// error is run.ErrNoHost when a host is not known.
func (c *Controller) Refresh(ctx context.Context, request v1.Refresh) (v1.Refreshed, error) {
	type chosen struct {
		v1.Refreshed
		names []string
	}
	found, err := until(ctx, c, func(s *state) (chosen, error) {
		var found chosen
		names, err := s.knownNames(request.Hosts)
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

// knownNames returns the known hosts of some names, or all without names, by name.
func (s *state) knownNames(names []string) ([]string, error) {
	for _, name := range names {
		if s.hosts.known[name] == nil {
			return nil, fmt.Errorf("host %s: %w", name, run.ErrNoHost)
		}
	}
	if len(names) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(names))), nil
	}
	var all []string
	for _, host := range s.hosts.sorted() {
		all = append(all, host.Name)
	}
	return all, nil
}
