package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// report takes in what a host reported of its versions.
func (s *state) report(r store.Reported) {
	if r.Key == "" { // The end of those that were there at the start.
		s.reported = true
		s.learnt()
		return
	}
	if err := s.version(r); err != nil {
		s.Logger.Warn("versions ignored", "tenant", s.Tenant, "host", r.Key, "error", err)
	}
	s.reports = max(s.reports, r.Number)
	s.notify()
}

func (s *state) version(r store.Reported) error {
	name, _ := log.Host(r.Key)
	delete(s.versions, name)
	if r.Err != nil || r.Body == nil {
		return r.Err
	}
	versions, err := message.DecodeVersions(r.Body)
	if err == nil {
		s.versions[name] = reported{versions: versions, at: r.At}
	}
	return err
}

// versionsSeen returns once the versions count that hosts have reported so
// far: a host reports before it answers, so whoever has seen its answer finds
// what it came to.
func (c *Controller) versionsSeen(ctx context.Context) error {
	number, err := c.o.Store.VersionsNumber(ctx, c.o.Tenant)
	if err != nil {
		return err
	}
	return c.reached(ctx, number, func(s *state) uint64 { return s.reports })
}
