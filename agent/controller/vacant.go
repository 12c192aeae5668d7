package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// mostOccupants is how many hosts a refusal names.
const mostOccupants = 5

// Vacant returns nil if a declared environment has no hosts and no run under way, and otherwise
// *run.Refused.
func (c *Controller) Vacant(ctx context.Context, environment string) error {
	return c.attempt(ctx, func(s *state) error { return s.vacant(environment) })
}

func (s *state) vacant(environment string) error {
	var reasons, ways []string
	var id uint64
	meanwhile := ""
	if env := s.environments[environment]; env != nil && env.ledger.Current() != nil {
		id = env.ledger.Current().Key()
		reasons = append(reasons, fmt.Sprintf("run %d is in progress", id))
		meanwhile = ", which does not end the run"
		ways = append(ways, fmt.Sprintf("wait until the run ends, or end it with %s", run.TypedIn(environment, "abort")))
	}
	if hosts := slices.Sorted(maps.Keys(s.hosts.in(environment))); len(hosts) > 0 {
		reasons = append(reasons, fmt.Sprintf("it has %s (%s)", text.Count(len(hosts), "host", "hosts"), text.List(hosts, mostOccupants)))
		ways = append(ways, fmt.Sprintf("move its hosts with %s", run.Command("move HOST --environment NAME")))
	}
	if len(reasons) == 0 {
		return nil
	}
	return &run.Refused{Run: id, Message: fmt.Sprintf(
		"environment %s is in use: %s; %s; or add force=true (--force)%s: then its hosts are in the environment that matches them, or else in default",
		environment, strings.Join(reasons, " and "), strings.Join(ways, "; "), meanwhile)}
}
