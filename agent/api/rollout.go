package api

import v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"

// rollouts are the policies of the tenants' runs. One may be changed or deleted
// during a run, which keeps the policy that it was opened with.
func (s *server) rollouts() *object[v1.Rollout] {
	return &object[v1.Rollout]{
		server: s, noun: "rollout",
		read: s.Store.Rollout, put: s.Store.PutRollout, remove: s.Store.DeleteRollout,
		decode: v1.DecodeRollout, patch: v1.MergeRollout, canonical: v1.Rollout.Canonical,
	}
}
