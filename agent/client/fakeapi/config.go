package fakeapi

import v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"

// SetConfig puts a configuration in place behind the client's back, and
// returns its new ETag.
func (s *Server) SetConfig(name string, c v1.OSUpgrade) (etag string) {
	return s.configs.set(name, c)
}

// EditConfig changes a configuration behind the client's back; an absent one
// is edited from nothing.
func (s *Server) EditConfig(name string, edit func(c *v1.OSUpgrade)) { s.configs.edit(name, edit) }

// RemoveConfig removes a configuration behind the client's back.
func (s *Server) RemoveConfig(name string) { s.configs.drop(name) }

// Config is what is stored, its ETag, and whether there is any.
func (s *Server) Config(name string) (c v1.OSUpgrade, etag string, ok bool) {
	return s.configs.look(name)
}

// Accept sets what a PUT body is checked with; its problems are answered with
// 400. Until then every body that can be read is right.
func (s *Server) Accept(check func(tenant string, c v1.OSUpgrade) []v1.Error) {
	s.configs.choose(func(o *object[v1.OSUpgrade]) { o.accept = check })
}

// Render sets how a stored configuration is shown by GET: reordered or
// respelled, as servers do. The ETag stays.
func (s *Server) Render(show func(c v1.OSUpgrade) v1.OSUpgrade) {
	s.configs.choose(func(o *object[v1.OSUpgrade]) { o.render = show })
}

// NoETags makes the server one that sends no ETags.
func (s *Server) NoETags() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.noETags = true
}

// EmptyWhenAbsent makes GET of an absent configuration answer 200 without a
// body instead of 404; which of the two Avassa does is not known.
func (s *Server) EmptyWhenAbsent() {
	s.configs.choose(func(o *object[v1.OSUpgrade]) { o.emptyWhenAbsent = true })
}
