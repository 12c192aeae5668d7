package fakeapi

import (
	"fmt"
	"net/http"
	"slices"

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
	state := v1.State{Status: "idle", ScheduledWorkers: []v1.ScheduledWorker{}}
	state.OSUpgrade = s.configs.kept[name].value
	for _, h := range t.hosts {
		state.ScheduledWorkers = append(state.ScheduledWorkers, v1.ScheduledWorker{Host: h.Hostname, Application: h.Application})
	}
	answer(w, http.StatusOK, state)
}

func (s *Server) getHosts(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, append([]v1.Host{}, s.tenant(r.PathValue("tenant")).hosts...))
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
