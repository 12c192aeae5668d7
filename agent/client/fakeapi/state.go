package fakeapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// SetState fixes what GET of the state answers. Until then it is the
// configuration, idle, with the hosts as scheduled workers.
func (s *Server) SetState(name string, state v1.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenant(name).state = &state
}

// SetHosts sets a tenant's hosts. A run that starts later takes them all.
func (s *Server) SetHosts(name string, hosts ...v1.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenant(name).hosts = hosts
}

func (s *Server) getState(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("tenant")
	t := s.tenant(name)
	if t.state != nil {
		answer(w, http.StatusOK, t.state)
		return
	}
	state := v1.State{Situation: v1.Situation{Status: "idle", Hosts: len(t.hosts)}, ScheduledWorkers: []v1.ScheduledWorker{}}
	state.OSUpgrade = s.configs.kept[name].value
	for _, h := range t.hosts {
		state.ScheduledWorkers = append(state.ScheduledWorkers, v1.ScheduledWorker{Host: h.Hostname, Application: h.Application})
	}
	answer(w, http.StatusOK, state)
}

func (s *Server) getHosts(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts := s.tenant(r.PathValue("tenant")).hosts
	if s.behave.whole {
		answer(w, http.StatusOK, slices.Concat([]v1.Host{}, hosts))
		return
	}
	query := r.URL.Query()
	after, chosen := query.Get("after"), []v1.Host{}
	limit, err := strconv.Atoi(cmp.Or(query.Get("limit"), "0"))
	if wrong := (v1.HostFilter{After: after, Limit: limit}).Validate(); err != nil || len(wrong) > 0 {
		refuse(w, http.StatusBadRequest, v1.Error{Message: "after or limit is wrong"})
		return
	}
	hosts = slices.SortedFunc(slices.Values(hosts), func(a, b v1.Host) int { return strings.Compare(a.Hostname, b.Hostname) })
	for _, h := range hosts {
		if h.Hostname <= after {
			continue
		}
		if limit > 0 && len(chosen) == limit {
			query.Set("after", chosen[limit-1].Hostname)
			w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+query.Encode()+`>; rel="next"`)
			break
		}
		chosen = append(chosen, h)
	}
	answer(w, http.StatusOK, chosen)
}

func (s *Server) getHost(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, name := s.tenant(r.PathValue("tenant")), r.PathValue("host")
	i := slices.IndexFunc(t.hosts, func(h v1.Host) bool { return h.Hostname == name })
	if i < 0 {
		refuse(w, http.StatusNotFound, v1.Error{Message: fmt.Sprintf("host %q is not known", name)})
		return
	}
	answer(w, http.StatusOK, t.hosts[i])
}

// deleteHost forgets a host that is not online.
func (s *Server) deleteHost(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, name := s.tenant(r.PathValue("tenant")), r.PathValue("host")
	i := slices.IndexFunc(t.hosts, func(h v1.Host) bool { return h.Hostname == name })
	switch {
	case i < 0:
		refuse(w, http.StatusNotFound, v1.Error{Message: fmt.Sprintf("host %q is not known", name)})
	case t.hosts[i].Online:
		refuse(w, http.StatusPreconditionFailed, v1.Error{Message: "host " + name + " is online"})
	default:
		t.hosts = slices.Concat(t.hosts[:i], t.hosts[i+1:])
		w.WriteHeader(http.StatusNoContent)
	}
}

// SetNow fixes the time that windows are calculated from. Until then it is that
// of the clock.
func (s *Server) SetNow(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.now = func() time.Time { return now }
}

// now is the time; s.mu is held.
func (s *Server) now() time.Time {
	if s.behave.now != nil {
		return s.behave.now()
	}
	return time.Now()
}

// windows are those of a tenant's configuration and calendars, what is wrong in
// them left out; site-local is UTC. s.mu is held.
func (s *Server) windows(tenant string, from, to time.Time, count int) []v1.Window {
	calendars := map[string]v1.Calendar{}
	for key, k := range s.calendars.kept {
		if owner, name, _ := strings.Cut(key, "/"); owner == tenant && len(k.value.Validate()) == 0 {
			calendars[name] = k.value
		}
	}
	config := s.configs.kept[tenant].value
	if len(config.Validate()) > 0 {
		config = v1.OSUpgrade{}
	}
	plan, err := v1.ScheduleOf(config, calendars, time.UTC)
	if err != nil {
		panic("fakeapi: what is right makes no plan: " + err.Error())
	}
	return v1.Windows(plan, from, to, count)
}

func (s *Server) getWindows(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	filter, problems := readWindowFilter(r.URL.Query(), s.now())
	if len(problems) > 0 {
		refuse(w, http.StatusBadRequest, v1.Answer(problems).Errors...)
		return
	}
	answer(w, http.StatusOK, s.windows(r.PathValue("tenant"), filter.From, filter.To, filter.Count))
}

func readWindowFilter(query url.Values, now time.Time) (v1.WindowFilter, v1.Problems) {
	var filter v1.WindowFilter
	var errs [3]error
	if query.Has("from") {
		filter.From, errs[0] = time.Parse(time.RFC3339, query.Get("from"))
	}
	if query.Has("to") {
		filter.To, errs[1] = time.Parse(time.RFC3339, query.Get("to"))
	}
	if query.Has("count") {
		filter.Count, errs[2] = strconv.Atoi(query.Get("count"))
	}
	filter, problems := filter.Around(now)
	for i, field := range []string{"from", "to", "count"} {
		if errs[i] != nil {
			problems = append(problems, v1.Problem{Field: field, Value: query.Get(field), Message: errs[i].Error()})
		}
	}
	return filter, problems
}

func (s *Server) getFeed(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, name := s.now(), r.PathValue("tenant")
	windows := s.windows(name, now, now.AddDate(1, 0, 0), 0)
	w.Header().Set("Content-Type", v1.FeedType)
	_, _ = w.Write(v1.Feed("fake", name, now, windows)) // A client that has gone is the client's matter.
}
