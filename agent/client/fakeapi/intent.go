package fakeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// object is a kind of object below a tenant's configuration, and those that
// are kept, by the key of keyOf. Server.mu guards it.
type object[T any] struct {
	server *Server
	noun   string
	// held makes DELETE fail while a run is under way.
	held bool
	kept map[string]kept[T]

	// What a test may choose; see Server.Accept and its neighbours.
	accept          func(key string, value T) []v1.Error
	render          func(value T) T
	emptyWhenAbsent bool
}

// keyOf is the key of the object that a request is about: its tenant and, of a
// kind of which a tenant has several, a slash and its name.
func keyOf(r *http.Request) string {
	if name := r.PathValue("name"); name != "" {
		return r.PathValue("tenant") + "/" + name
	}
	return r.PathValue("tenant")
}

// kept is one object.
type kept[T any] struct {
	value T
	etag  string
	// body is the object as a server keeps it that has more members than T: see
	// Server.Avassa and Server.Newer. It is nil on a server that has no others.
	body json.RawMessage
}

func newObject[T any](s *Server, noun string) *object[T] {
	return &object[T]{server: s, noun: noun, kept: map[string]kept[T]{}}
}

func (o *object[T]) set(name string, value T) (etag string) {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	return o.store(name, value)
}

func (o *object[T]) edit(name string, edit func(value *T)) {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	value := clone(o.kept[name].value)
	edit(&value)
	o.store(name, value)
}

func (o *object[T]) drop(name string) {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	delete(o.kept, name)
}

func (o *object[T]) look(name string) (value T, etag string, ok bool) {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	k, ok := o.kept[name]
	return clone(k.value), k.etag, ok
}

// choose sets something that a test may choose.
func (o *object[T]) choose(set func(o *object[T])) {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	set(o)
}

// store keeps value under a new ETag; the server's mu is held.
func (o *object[T]) store(name string, value T) string { return o.storeBody(name, value, nil) }

func (o *object[T]) storeBody(name string, value T, body json.RawMessage) string {
	o.server.revision++
	etag := fmt.Sprintf(`"%d"`, o.server.revision)
	o.kept[name] = kept[T]{clone(value), etag, body}
	return etag
}

func (o *object[T]) get(w http.ResponseWriter, r *http.Request) {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	name := keyOf(r)
	k, there := o.kept[name]
	if !there {
		if o.emptyWhenAbsent {
			w.WriteHeader(http.StatusOK)
			return
		}
		refuse(w, http.StatusNotFound, o.absent(name))
		return
	}
	o.server.tag(w, k.etag)
	if none := r.Header.Get("If-None-Match"); none != "" && matches(none, k.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	answer(w, http.StatusOK, o.shown(k))
}

// shown is an object as GET shows it.
func (o *object[T]) shown(k kept[T]) any {
	if k.body != nil {
		return k.body
	}
	value := clone(k.value)
	if o.render != nil {
		value = o.render(value)
	}
	return value
}

func (o *object[T]) put(w http.ResponseWriter, r *http.Request) {
	name := keyOf(r)
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	value, body, problem := o.read(w, r)
	if problem != nil {
		refuse(w, http.StatusBadRequest, *problem)
		return
	}
	if o.accept != nil {
		if problems := o.accept(name, value); len(problems) > 0 {
			refuse(w, http.StatusBadRequest, problems...)
			return
		}
	}
	if o.refusePrecondition(w, r, name) || dryRun(w, r) {
		return
	}
	status := http.StatusNoContent
	if _, there := o.kept[name]; !there {
		status = http.StatusCreated
	}
	o.server.tag(w, o.storeBody(name, value, body))
	w.WriteHeader(status)
}

// read reads the body of a PUT; the server's mu is held. A server that is Avassa's or newer
// takes the members that T does not know and it has itself, and keeps them.
func (o *object[T]) read(w http.ResponseWriter, r *http.Request) (value T, body json.RawMessage, problem *v1.Error) {
	if !o.server.behave.avassa && !o.server.behave.newer {
		return value, nil, readBody(w, r, &value)
	}
	if problem := readBody(w, r, &body); problem != nil {
		return value, nil, problem
	}
	if err := json.Unmarshal(body, &value); err != nil {
		return value, nil, &v1.Error{Message: "cannot read the body: " + err.Error()}
	}
	known := map[string]bool{}
	if o.server.behave.avassa {
		for _, member := range avassaMembers {
			known[member] = true
		}
	} else {
		addMembers(known, "", clone(value))
	}
	addMembers(known, "", o.kept[keyOf(r)].body)
	sent := map[string]bool{}
	addMembers(sent, "", body)
	for _, member := range slices.Sorted(maps.Keys(sent)) {
		if !known[member] {
			return value, nil, &v1.Error{Message: "unknown member " + member, Info: v1.ErrorInfo{Field: member}}
		}
	}
	return value, body, nil
}

// avassaMembers are the members of a configuration that Avassa's documentation has
// (avassa.md 3). Any other one that its server does not have itself is refused.
var avassaMembers = []string{
	"worker-applications", "worker-applications.name", "maintenance-windows", "maintenance-windows.days-of-week",
	"maintenance-windows.start-time", "maintenance-windows.timezone", "maintenance-windows.duration",
}

// addMembers adds the path of each member of an object, without the indexes of lists.
func addMembers(to map[string]bool, at string, object any) {
	var value any
	if text, err := json.Marshal(object); err != nil || json.Unmarshal(text, &value) != nil {
		return // No object is kept.
	}
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			path := strings.TrimPrefix(at+"."+name, ".")
			to[path] = true
			addMembers(to, path, child)
		}
	case []any:
		for _, child := range value {
			addMembers(to, at, child)
		}
	}
}

func (o *object[T]) remove(w http.ResponseWriter, r *http.Request) {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	name := keyOf(r)
	if o.refusePrecondition(w, r, name) {
		return
	}
	if _, there := o.kept[name]; !there {
		refuse(w, http.StatusNotFound, o.absent(name))
		return
	}
	if o.held && refuseUnderWay(w, o.server.tenant(name)) || dryRun(w, r) {
		return
	}
	delete(o.kept, name)
	w.WriteHeader(http.StatusNoContent)
}

// refusePrecondition answers 412 when the request's precondition does not
// hold (RFC 9110 13.1).
func (o *object[T]) refusePrecondition(w http.ResponseWriter, r *http.Request, name string) bool {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	k, there := o.kept[name]
	holds := (match == "" || there && matches(match, k.etag)) && (none == "" || !there || !matches(none, k.etag))
	if holds {
		return false
	}
	refuse(w, http.StatusPreconditionFailed, v1.Error{Message: "the " + o.noun + " is not the one that the precondition names; read it again"})
	return true
}

func (o *object[T]) absent(name string) v1.Error {
	tenant, name, several := strings.Cut(name, "/")
	if several {
		return v1.Error{Message: fmt.Sprintf("tenant %q has no %s %q", tenant, o.noun, name), Info: v1.ErrorInfo{Missing: o.noun}}
	}
	return v1.Error{Message: fmt.Sprintf("tenant %q has no %s", tenant, o.noun), Info: v1.ErrorInfo{Missing: o.noun}}
}

func (s *Server) tag(w http.ResponseWriter, etag string) {
	if !s.behave.noETags {
		w.Header().Set("ETag", etag)
	}
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

func readBody(w http.ResponseWriter, r *http.Request, into any) *v1.Error {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		return &v1.Error{Message: fmt.Sprintf("content type %q is not known here; use application/json", kind)}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, v1.MaxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &v1.Error{Message: "cannot read the body: " + err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return &v1.Error{Message: "the body goes on after its JSON value"}
	}
	return nil
}

// clone makes a copy that shares nothing: what comes back is what went over
// the wire.
func clone[T any](value T) T {
	b, err := json.Marshal(value)
	if err != nil {
		panic("fakeapi: cannot write an object as JSON: " + err.Error())
	}
	var again T
	if err := json.Unmarshal(b, &again); err != nil {
		panic("fakeapi: cannot read an object's own JSON: " + err.Error())
	}
	return again
}

// setBody puts an object in place as JSON text, with members that T may not know.
func (o *object[T]) setBody(key, body string) (etag string) {
	var value T
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		panic("fakeapi: the body of a " + o.noun + " is not one: " + err.Error())
	}
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	return o.storeBody(key, value, json.RawMessage(body))
}

// bodyOf is what is stored as JSON text, with each member that a PUT had; empty if there is
// nothing.
func (o *object[T]) bodyOf(key string) string {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	k, there := o.kept[key]
	switch {
	case !there:
		return ""
	case k.body != nil:
		return string(k.body)
	}
	b, err := json.Marshal(k.value)
	if err != nil {
		panic("fakeapi: cannot write an object as JSON: " + err.Error())
	}
	return string(b)
}

// SetConfigBody puts a configuration in place as JSON text, with members that
// v1.OSUpgrade may not know, and returns its new ETag.
func (s *Server) SetConfigBody(name, body string) (etag string) { return s.configs.setBody(name, body) }

// ConfigBody is what is stored as JSON text, with each member that a PUT had; empty if
// there is nothing.
func (s *Server) ConfigBody(name string) string { return s.configs.bodyOf(name) }

// SetRolloutBody is SetConfigBody for rollouts.
func (s *Server) SetRolloutBody(name, body string) (etag string) {
	return s.rollouts.setBody(name, body)
}

// RolloutBody is ConfigBody for rollouts.
func (s *Server) RolloutBody(name string) string { return s.rollouts.bodyOf(name) }

// SetCalendarBody is SetConfigBody for calendars.
func (s *Server) SetCalendarBody(tenant, name, body string) (etag string) {
	return s.calendars.setBody(tenant+"/"+name, body)
}

// CalendarBody is ConfigBody for calendars.
func (s *Server) CalendarBody(tenant, name string) string {
	return s.calendars.bodyOf(tenant + "/" + name)
}

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

// SetCalendar puts a tenant's calendar in place behind the client's back, and
// returns its new ETag.
func (s *Server) SetCalendar(tenant, name string, c v1.Calendar) (etag string) {
	return s.calendars.set(tenant+"/"+name, c)
}

// EditCalendar changes a calendar behind the client's back; an absent one is
// edited from nothing.
func (s *Server) EditCalendar(tenant, name string, edit func(c *v1.Calendar)) {
	s.calendars.edit(tenant+"/"+name, edit)
}

// RemoveCalendar removes a calendar behind the client's back.
func (s *Server) RemoveCalendar(tenant, name string) { s.calendars.drop(tenant + "/" + name) }

// Calendar is what is stored, its ETag, and whether there is any.
func (s *Server) Calendar(tenant, name string) (c v1.Calendar, etag string, ok bool) {
	return s.calendars.look(tenant + "/" + name)
}

// AcceptCalendar is Accept for calendars.
func (s *Server) AcceptCalendar(check func(tenant, name string, c v1.Calendar) []v1.Error) {
	s.calendars.choose(func(o *object[v1.Calendar]) {
		o.accept = func(key string, c v1.Calendar) []v1.Error {
			tenant, name, _ := strings.Cut(key, "/")
			return check(tenant, name, c)
		}
	})
}

// RenderCalendar is Render for calendars.
func (s *Server) RenderCalendar(show func(c v1.Calendar) v1.Calendar) {
	s.calendars.choose(func(o *object[v1.Calendar]) { o.render = show })
}

// listedCalendar is an entry of the list with the calendar as the server keeps it.
type listedCalendar struct {
	v1.CalendarInfo
	Calendar any `json:"calendar,omitempty"`
}

func (s *Server) getCalendars(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []listedCalendar{}
	for _, key := range slices.Sorted(maps.Keys(s.calendars.kept)) {
		tenant, name, _ := strings.Cut(key, "/")
		if k := s.calendars.kept[key]; tenant == r.PathValue("tenant") {
			one := listedCalendar{CalendarInfo: k.value.Info(name, k.etag)}
			if r.URL.Query().Get("content") == "true" {
				one.Calendar = s.calendars.shown(k)
			}
			list = append(list, one)
		}
	}
	answer(w, http.StatusOK, list)
}
