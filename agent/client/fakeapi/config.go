package fakeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// SetConfig puts a configuration in place behind the client's back, and
// returns its new ETag.
func (s *Server) SetConfig(name string, c v1.OSUpgrade) (etag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store(name, c)
}

// EditConfig changes a configuration behind the client's back; an absent one
// is edited from nothing.
func (s *Server) EditConfig(name string, edit func(c *v1.OSUpgrade)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c v1.OSUpgrade
	if was := s.tenant(name).config; was != nil {
		c = clone(*was)
	}
	edit(&c)
	s.store(name, c)
}

// RemoveConfig removes a configuration behind the client's back.
func (s *Server) RemoveConfig(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenant(name).config = nil
}

// Config is what is stored, its ETag, and whether there is any.
func (s *Server) Config(name string) (c v1.OSUpgrade, etag string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	if t.config == nil {
		return v1.OSUpgrade{}, "", false
	}
	return clone(*t.config), t.etag, true
}

// Accept sets what a PUT body is checked with; its problems are answered with
// 400. Until then every body that can be read is right.
func (s *Server) Accept(check func(tenant string, c v1.OSUpgrade) []v1.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.accept = check
}

// Render sets how a stored configuration is shown by GET: reordered or
// respelled, as servers do. The ETag stays.
func (s *Server) Render(show func(c v1.OSUpgrade) v1.OSUpgrade) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.render = show
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.emptyWhenAbsent = true
}

func (s *Server) getConfig(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("tenant")
	t := s.tenant(name)
	if t.config == nil {
		if s.behave.emptyWhenAbsent {
			w.WriteHeader(http.StatusOK)
			return
		}
		refuse(w, http.StatusNotFound, unconfigured(name))
		return
	}
	s.tag(w, t)
	if none := r.Header.Get("If-None-Match"); none != "" && matches(none, t.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	c := clone(*t.config)
	if s.behave.render != nil {
		c = s.behave.render(c)
	}
	answer(w, http.StatusOK, c)
}

func (s *Server) putConfig(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("tenant")
	c, problem := readConfig(w, r)
	if problem != nil {
		refuse(w, http.StatusBadRequest, *problem)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.behave.accept != nil {
		if problems := s.behave.accept(name, c); len(problems) > 0 {
			refuse(w, http.StatusBadRequest, problems...)
			return
		}
	}
	t := s.tenant(name)
	if refusePrecondition(w, r, t) || dryRun(w, r) {
		return
	}
	status := http.StatusNoContent
	if t.config == nil {
		status = http.StatusCreated
	}
	s.store(name, c)
	s.tag(w, t)
	w.WriteHeader(status)
}

func (s *Server) deleteConfig(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("tenant")
	t := s.tenant(name)
	if refusePrecondition(w, r, t) {
		return
	}
	if t.config == nil {
		refuse(w, http.StatusNotFound, unconfigured(name))
		return
	}
	if refuseUnderWay(w, t) || dryRun(w, r) {
		return
	}
	t.config = nil
	w.WriteHeader(http.StatusNoContent)
}

// store keeps c under a new ETag; s.mu is held.
func (s *Server) store(name string, c v1.OSUpgrade) string {
	s.revision++
	t := s.tenant(name)
	kept := clone(c)
	t.config, t.etag = &kept, fmt.Sprintf(`"%d"`, s.revision)
	return t.etag
}

func (s *Server) tag(w http.ResponseWriter, t *tenant) {
	if !s.behave.noETags {
		w.Header().Set("ETag", t.etag)
	}
}

// refusePrecondition answers 412 when the request's precondition does not
// hold (RFC 9110 13.1).
func refusePrecondition(w http.ResponseWriter, r *http.Request, t *tenant) bool {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	there := t.config != nil
	holds := (match == "" || there && matches(match, t.etag)) && (none == "" || !there || !matches(none, t.etag))
	if holds {
		return false
	}
	refuse(w, http.StatusPreconditionFailed, v1.Error{Message: "the configuration is not the one that the precondition names; read it again"})
	return true
}

func dryRun(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Query().Get("validate") != "true" {
		return false
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// matches compares strongly (RFC 9110 8.8.3.2).
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == etag {
			return true
		}
	}
	return false
}

func readConfig(w http.ResponseWriter, r *http.Request) (v1.OSUpgrade, *v1.Error) {
	var c v1.OSUpgrade
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		return c, &v1.Error{Message: fmt.Sprintf("content type %q is not known here; use application/json", kind)}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, v1.MaxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, &v1.Error{Message: "cannot read the body: " + err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return c, &v1.Error{Message: "the body goes on after its JSON value"}
	}
	return c, nil
}

func unconfigured(name string) v1.Error {
	return v1.Error{Message: fmt.Sprintf("tenant %q has no os-upgrade configuration", name)}
}

// clone makes a copy that shares no list; nil stays nil.
func clone(c v1.OSUpgrade) v1.OSUpgrade {
	return v1.OSUpgrade{
		WorkerApplications: cloneList(c.WorkerApplications),
		MaintenanceWindows: cloneList(c.MaintenanceWindows),
	}
}

// cloneList keeps the difference between nil and empty.
func cloneList[T any](list []T) []T {
	if list == nil {
		return nil
	}
	return append([]T{}, list...)
}
