package fakeapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

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

func (s *Server) getCalendars(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []v1.CalendarInfo{}
	for _, key := range slices.Sorted(maps.Keys(s.calendars.kept)) {
		tenant, name, _ := strings.Cut(key, "/")
		if k := s.calendars.kept[key]; tenant == r.PathValue("tenant") {
			info := k.value.Info(name, k.etag)
			if r.URL.Query().Get("content") == "true" {
				value := clone(k.value)
				info.Calendar = &value
			}
			list = append(list, info)
		}
	}
	answer(w, http.StatusOK, list)
}
