package fakeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// What a server does that is not this version of ours: one of Avassa's, one of a newer
// version, and one that spells differently or accepts less. It is put around the real
// handler.

// Avassa makes the server one of Avassa's: it has the configuration and the state of a tenant
// and nothing of what only osupgrade-agent has. It has and keeps members of the configuration
// that v1.OSUpgrade does not know, and refuses any that it neither documents nor has.
func (s *Server) Avassa() { s.choose(func(b *behaviour) { b.avassa = true }) }

// Whole makes the server one that knows no parts of lists.
func (s *Server) Whole() { s.choose(func(b *behaviour) { b.whole = true }) }

// Newer makes the server an osupgrade-agent of a later version: it has and keeps members of
// all objects that this version does not know.
func (s *Server) Newer() { s.choose(func(b *behaviour) { b.newer = true }) }

// NoETags makes the server one that sends no ETags.
func (s *Server) NoETags() { s.choose(func(b *behaviour) { b.noETags = true }) }

// EmptyWhenAbsent makes GET of an absent object answer 200 without a body instead of 404;
// which of the two Avassa does is not known.
func (s *Server) EmptyWhenAbsent() { s.choose(func(b *behaviour) { b.emptyWhenAbsent = true }) }

// other is what another server does with objects of a kind. Server.mu guards it.
type other[T any] struct {
	accept func(tenant, name string, value T) []v1.Error
	render func(value T) T
}

// Accept adds a check to those of a PUT; its problems are answered with 400.
func (s *Server) Accept(check func(tenant string, c v1.OSUpgrade) []v1.Error) {
	s.choose(func(*behaviour) {
		s.configs.accept = func(tenant, _ string, c v1.OSUpgrade) []v1.Error { return check(tenant, c) }
	})
}

// Render sets how a stored configuration is shown by GET: reordered or
// respelled, as servers do. The ETag stays.
func (s *Server) Render(show func(c v1.OSUpgrade) v1.OSUpgrade) {
	s.choose(func(*behaviour) { s.configs.render = show })
}

// AcceptRollout is Accept for rollouts.
func (s *Server) AcceptRollout(check func(tenant string, r v1.Rollout) []v1.Error) {
	s.choose(func(*behaviour) {
		s.rollouts.accept = func(tenant, _ string, r v1.Rollout) []v1.Error { return check(tenant, r) }
	})
}

// RenderRollout is Render for rollouts.
func (s *Server) RenderRollout(show func(r v1.Rollout) v1.Rollout) {
	s.choose(func(*behaviour) { s.rollouts.render = show })
}

// AcceptCalendar is Accept for calendars.
func (s *Server) AcceptCalendar(check func(tenant, name string, c v1.Calendar) []v1.Error) {
	s.choose(func(*behaviour) { s.calendars.accept = check })
}

// RenderCalendar is Render for calendars.
func (s *Server) RenderCalendar(show func(c v1.Calendar) v1.Calendar) {
	s.choose(func(*behaviour) { s.calendars.render = show })
}

// problems are those of a body that another server would refuse.
func (o other[T]) problems(tenant, name string, body []byte) []v1.Error {
	var value T
	if o.accept == nil || json.Unmarshal(body, &value) != nil {
		return nil // Our server says what is wrong with what cannot be read.
	}
	return o.accept(tenant, name, value)
}

// shown is a body as another server shows it.
func (o other[T]) shown(body []byte) []byte {
	var value T
	if o.render == nil || json.Unmarshal(body, &value) != nil {
		return body
	}
	return must(json.Marshal(o.render(value)))
}

// sentKey is the key of an object as it was sent in the context of its request.
type sentKey struct{}

// verbatim has a PUT be stored as it was sent, with members and values that this version does
// not know: our server gets one that is good in its place. What is no object is left to it.
func (o other[T]) verbatim(r *http.Request, body []byte) *http.Request {
	var sent v1.Kept[T]
	if json.Unmarshal(body, &sent) != nil {
		return r
	}
	r = r.WithContext(context.WithValue(r.Context(), sentKey{}, sent))
	good := "{}"
	if _, isCalendar := any(sent).(v1.Kept[v1.Calendar]); isCalendar {
		good = `{"kind":"freeze"}`
	}
	r.Body = io.NopCloser(strings.NewReader(good))
	return r
}

// asSent is a store that stores objects as they were sent, where the server is another one.
type asSent struct{ *memory.Store }

func sent[T any](ctx context.Context, value v1.Kept[T]) v1.Kept[T] {
	if sent, another := ctx.Value(sentKey{}).(v1.Kept[T]); another {
		return sent
	}
	return value
}

func (s asSent) PutConfig(ctx context.Context, tenant string, c v1.Kept[v1.OSUpgrade], base store.Revision) (store.Revision, error) {
	return s.Store.PutConfig(ctx, tenant, sent(ctx, c), base)
}

func (s asSent) PutRollout(ctx context.Context, tenant string, r v1.Kept[v1.Rollout], base store.Revision) (store.Revision, error) {
	return s.Store.PutRollout(ctx, tenant, sent(ctx, r), base)
}

func (s asSent) PutCalendar(ctx context.Context, tenant, name string, c v1.Kept[v1.Calendar], base store.Revision) (store.Revision, error) {
	return s.Store.PutCalendar(ctx, tenant, name, sent(ctx, c), base)
}

// known are the members that T has.
func (o other[T]) known(body []byte) any {
	var value T
	_ = json.Unmarshal(body, &value) // Our server says what is wrong with what cannot be read.
	return value
}

// kind is other[T] for any T.
type kind interface {
	problems(tenant, name string, body []byte) []v1.Error
	shown(body []byte) []byte
	known(body []byte) any
	verbatim(r *http.Request, body []byte) *http.Request
}

// addressed is the object that a path is of; no kind if it is of none.
type addressed struct {
	kind         kind
	tenant, name string
	// stored is the object as JSON text; empty if there is none.
	stored string
}

func (s *Server) addressed(path string) addressed {
	rest, found := strings.CutPrefix(path, "/v1/config/tenants/")
	tenant, rest, _ := strings.Cut(rest, "/os-upgrade")
	if !found {
		return addressed{}
	}
	s.mu.Lock()
	configs, rollouts, calendars := s.configs, s.rollouts, s.calendars
	s.mu.Unlock()
	switch name, isCalendar := strings.CutPrefix(rest, "/calendars/"); {
	case isCalendar:
		return addressed{calendars, tenant, name, s.CalendarBody(tenant, name)}
	case rest == "/rollout":
		return addressed{rollouts, tenant, "", s.RolloutBody(tenant)}
	case rest == "":
		return addressed{configs, tenant, "", s.ConfigBody(tenant)}
	}
	return addressed{}
}

// differ has the server be another one than the real handler.
func (s *Server) differ(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		be := s.chosen()
		query := r.URL.Query()
		if be.whole {
			for _, ours := range []string{"after", "limit", "label", "role", "host"} {
				query.Del(ours)
			}
		}
		if be.avassa && isOurs(r.URL.Path) {
			refuse(w, http.StatusNotFound, v1.Error{Message: "not found: " + r.URL.Path})
			return
		}
		at := s.addressed(r.URL.Path)
		r.URL.RawQuery = query.Encode()
		if at.kind == nil {
			s.list(be, serve).ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(body), failing{err}), r.Body}
			if problems := append(be.foreign(at, body), at.kind.problems(at.tenant, at.name, body)...); len(problems) > 0 {
				refuse(w, http.StatusBadRequest, problems...)
				return
			}
			if be.avassa || be.newer {
				r = at.kind.verbatim(r, body)
			}
		}
		r.Header.Del("Accept-Encoding")
		done := httptest.NewRecorder()
		serve.ServeHTTP(done, r)
		be.respell(r.Method, at, done)
		replay(w, done)
	})
}

// list has a newer server list its calendars with all their members.
func (s *Server) list(be behaviour, serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant, isList := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/config/tenants/"), "/os-upgrade/calendars")
		if !be.newer || !isList || r.Method != http.MethodGet {
			serve.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		done := httptest.NewRecorder()
		serve.ServeHTTP(done, r)
		var all []map[string]json.RawMessage
		if err := json.Unmarshal(done.Body.Bytes(), &all); err == nil {
			for _, info := range all {
				var name string
				if _, whole := info["calendar"]; whole && json.Unmarshal(info["name"], &name) == nil {
					info["calendar"] = json.RawMessage(s.CalendarBody(tenant, name))
				}
			}
			done.Body = bytes.NewBuffer(must(json.Marshal(all)))
		}
		replay(w, done)
	})
}

// failing is the end of a body: an error, or none.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) {
	if f.error != nil {
		return 0, f.error
	}
	return 0, io.EOF
}

// isOurs reports whether a path is of what only osupgrade-agent has.
func isOurs(path string) bool {
	_, rest, found := strings.Cut(path, "/os-upgrade")
	return found && rest != ""
}

// respell changes an answer of our server into that of another one.
func (b behaviour) respell(method string, at addressed, done *httptest.ResponseRecorder) {
	if b.noETags {
		done.Header().Del("ETag")
	}
	switch {
	case method != http.MethodGet:
	case done.Code == http.StatusNotFound && b.emptyWhenAbsent && at.stored == "":
		done.Code = http.StatusOK
		done.Body.Reset()
	case done.Code == http.StatusOK:
		shown := at.kind.shown(done.Body.Bytes())
		done.Body = bytes.NewBuffer(shown)
	}
}

// replay sends a recorded answer.
func replay(w http.ResponseWriter, done *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), done.Header())
	w.WriteHeader(done.Code)
	_, _ = w.Write(done.Body.Bytes()) // A client that has gone is the client's matter.
}

// avassaMembers are the members of a configuration that Avassa's page "Subtenant OS upgrade
// management" has. Any other one that its server does not have itself is refused.
var avassaMembers = []string{
	"worker-applications", "worker-applications.name", "maintenance-windows", "maintenance-windows.days-of-week",
	"maintenance-windows.start-time", "maintenance-windows.timezone", "maintenance-windows.duration",
}

// foreign are the members of a body that a server of Avassa's, or a newer one, does not know:
// neither its documentation nor, of a newer one, this version has them, nor has it any itself.
func (b behaviour) foreign(at addressed, body []byte) []v1.Error {
	known := map[string]bool{}
	switch {
	case b.avassa:
		for _, member := range avassaMembers {
			known[member] = true
		}
	case b.newer:
		addMembers(known, "", must(json.Marshal(at.kind.known(body))))
	default:
		return nil
	}
	addMembers(known, "", []byte(at.stored))
	sent := map[string]bool{}
	addMembers(sent, "", body)
	for _, member := range slices.Sorted(maps.Keys(sent)) {
		if !known[member] {
			return []v1.Error{{Message: "unknown member " + member, Info: v1.ErrorInfo{Field: member}}}
		}
	}
	return nil
}

// addMembers adds the path of each member of a JSON text, without the indexes of lists.
func addMembers(to map[string]bool, at string, text json.RawMessage) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(text, &object) == nil:
		for name, child := range object {
			path := strings.TrimPrefix(at+"."+name, ".")
			to[path] = true
			addMembers(to, path, child)
		}
	case json.Unmarshal(text, &list) == nil:
		for _, child := range list {
			addMembers(to, at, child)
		}
	}
}
