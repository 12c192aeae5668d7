package fakeapi

import v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"

// SetRollout puts a rollout in place behind the client's back, and returns its
// new ETag.
func (s *Server) SetRollout(name string, r v1.Rollout) (etag string) {
	return s.rollouts.set(name, r)
}

// EditRollout changes a rollout behind the client's back; an absent one is
// edited from nothing.
func (s *Server) EditRollout(name string, edit func(r *v1.Rollout)) { s.rollouts.edit(name, edit) }

// RemoveRollout removes a rollout behind the client's back.
func (s *Server) RemoveRollout(name string) { s.rollouts.drop(name) }

// Rollout is what is stored, its ETag, and whether there is any.
func (s *Server) Rollout(name string) (r v1.Rollout, etag string, ok bool) {
	return s.rollouts.look(name)
}

// AcceptRollout is Accept for rollouts.
func (s *Server) AcceptRollout(check func(tenant string, r v1.Rollout) []v1.Error) {
	s.rollouts.choose(func(o *object[v1.Rollout]) { o.accept = check })
}

// RenderRollout is Render for rollouts.
func (s *Server) RenderRollout(show func(r v1.Rollout) v1.Rollout) {
	s.rollouts.choose(func(o *object[v1.Rollout]) { o.render = show })
}
