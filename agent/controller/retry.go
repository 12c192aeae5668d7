package controller

import (
	"context"
	"fmt"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// leftOf returns the hosts that an ended run did not upgrade, for a run that
// retries them; nil for one that retries none.
func (c *Controller) leftOf(ctx context.Context, id uint64) (map[string]bool, error) {
	if id == 0 {
		return nil, nil
	}
	r, err := c.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !r.Finished() {
		return nil, &run.Refused{Run: id, Message: fmt.Sprintf("run %d is under way; it can be retried once it has ended", id)}
	}
	left := map[string]bool{}
	for _, h := range r.Hosts {
		if h.Status != string(run.Upgraded) && !exempt(h) {
			left[h.Hostname] = true
		}
	}
	if len(left) == 0 {
		return nil, &run.Refused{Run: id, Message: fmt.Sprintf("run %d left no host to retry", id)}
	}
	return left, nil
}

// exempt reports whether a host was left out by the rollout: it was no member.
func exempt(h v1.RunHost) bool { return h.Stage == "" }

// fleet returns the hosts whose application the configuration lists (AV-14);
// those that only does not name are aside. Nil names all.
func (s *state) fleet(only map[string]bool) []plan.Host {
	if s.config == nil {
		return nil
	}
	listed := map[string]bool{}
	for _, a := range s.config.WorkerApplications {
		listed[a.Name] = true
	}
	var hosts []plan.Host
	for name, h := range s.hosts {
		if listed[h.Application] {
			hosts = append(hosts, plan.Host{
				Name: name, Application: h.Application, Role: h.Role, Labels: h.Labels, Silent: !s.present.online(name),
				Aside: only != nil && !only[name],
			})
		}
	}
	return hosts
}
