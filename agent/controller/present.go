package controller

import (
	"cmp"
	"context"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Present returns the known hosts of an environment by its name on the log, in their order, for
// the checks at the site that are about them.
func (c *Controller) Present(ctx context.Context, environment string) ([]message.Present, error) {
	if err := c.versionsRead(ctx); err != nil {
		return nil, err
	}
	return ask(ctx, c, func(s *state) []message.Present {
		now := s.Now()
		hosts := []message.Present{}
		for name := range s.hosts.in(environment) {
			hosts = append(hosts, message.Present{Name: name, Online: s.hosts.isOnline(name, now), Versions: s.hosts.versions[name].versions})
		}
		slices.SortFunc(hosts, func(a, b message.Present) int { return cmp.Compare(a.Name, b.Name) })
		return hosts
	})
}
