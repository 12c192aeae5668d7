package fakeapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// AddRun keeps run and tells watchers; an ID of 0 becomes the next one. It
// returns the ID.
func (s *Server) AddRun(name string, run v1.Run) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(name, run).ID
}

// EditRun changes a run and tells watchers. It panics when there is no such
// run.
func (s *Server) EditRun(name string, id uint64, edit func(run *v1.Run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	i := t.find(id)
	if i < 0 {
		panic(fmt.Sprintf("fakeapi: tenant %q has no run %d to edit", name, id))
	}
	run := cloneRun(t.runs[i])
	edit(&run)
	t.runs[i] = run
	s.publish(name, run)
}

// FinishRun ends a run with result and reason. Its hosts that are not failed
// or skipped become upgraded when result is "completed".
func (s *Server) FinishRun(name string, id uint64, result, reason string) {
	s.EditRun(name, id, func(run *v1.Run) {
		finish(run, result, reason)
		for i, h := range run.Hosts {
			if result == "completed" && h.Status != "failed" && h.Status != "skipped" {
				run.Hosts[i].Status = "upgraded"
			}
		}
	})
}

// ForgetRun drops a run, as servers do with old ones. Watchers are not told.
func (s *Server) ForgetRun(name string, id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	t.runs = slices.DeleteFunc(t.runs, func(r v1.Run) bool { return r.ID == id })
}

// Runs lists a tenant's runs, newest first.
func (s *Server) Runs(name string) []v1.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := []v1.Run{}
	for _, r := range slices.Backward(s.tenant(name).runs) {
		runs = append(runs, cloneRun(r))
	}
	return runs
}

// OnStart is called after each run that is started by POST, before the answer
// goes out; it may edit or finish the run. The answer shows the run as it was
// opened.
func (s *Server) OnStart(do func(tenant string, run v1.Run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.onStart = do
}

func (s *Server) postStart(w http.ResponseWriter, r *http.Request) {
	var start v1.Start
	if problem := readBody(w, r, &start); problem != nil {
		refuse(w, http.StatusBadRequest, *problem)
		return
	}
	name := r.PathValue("tenant")
	if r.URL.Query().Get("validate") == "true" {
		s.preflight(w, name)
		return
	}
	run, then, ok := s.start(w, name, start)
	if !ok {
		return
	}
	if then != nil {
		then(name, run)
	}
	answer(w, http.StatusCreated, run)
}

// RefuseStart has each start refused for a reason, as outside of the windows; empty ends
// that.
func (s *Server) RefuseStart(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.refuseStart = reason
}

// preflight answers what a start would do: a run, or why it would be refused.
func (s *Server) preflight(w http.ResponseWriter, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := v1.Preflight{Refused: s.behave.refuseStart}
	if i := slices.IndexFunc(s.tenant(name).runs, func(r v1.Run) bool { return !r.Finished() }); i >= 0 {
		p.Refused = fmt.Sprintf("run %d is under way", s.tenant(name).runs[i].ID)
	}
	answer(w, http.StatusOK, p)
}

func (s *Server) start(w http.ResponseWriter, name string, start v1.Start) (run v1.Run, then func(string, v1.Run), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	if last := len(t.runs) - 1; start.RequestID != "" && last >= 0 && t.runs[last].RequestID == start.RequestID {
		return cloneRun(t.runs[last]), nil, true
	}
	if refuseUnderWay(w, t) {
		return v1.Run{}, nil, false
	}
	if s.behave.refuseStart != "" {
		refuse(w, http.StatusPreconditionFailed, v1.Error{Message: s.behave.refuseStart})
		return v1.Run{}, nil, false
	}
	again, ok := refuseRetry(w, t, start.RetryOf)
	if !ok {
		return v1.Run{}, nil, false
	}
	now := time.Now().UTC().Truncate(time.Second)
	run = v1.Run{
		Phase: "preparing", Trigger: "manual", RequestedBy: "fakeapi", RequestReason: start.Reason,
		RetryOf: start.RetryOf, RequestID: start.RequestID, OpenedAt: now, NotAfter: now.Add(4 * time.Hour), Hosts: []v1.RunHost{},
	}
	for _, h := range t.hosts {
		if again != nil && !again[h.Hostname] || len(start.Hosts) > 0 && !slices.Contains(start.Hosts, h.Hostname) {
			continue
		}
		run.Hosts = append(run.Hosts, v1.RunHost{Hostname: h.Hostname, Status: "preparing"})
	}
	return s.open(name, run), s.behave.onStart, true
}

// open keeps a new run; s.mu is held.
func (s *Server) open(name string, run v1.Run) v1.Run {
	if run.ID == 0 {
		run.ID = s.nextRun
	}
	s.nextRun = max(s.nextRun, run.ID+1)
	t := s.tenant(name)
	t.runs = append(t.runs, cloneRun(run))
	s.publish(name, run)
	return run
}

func (s *Server) getRuns(w http.ResponseWriter, r *http.Request) {
	filter, err := readFilter(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, v1.Error{Message: err.Error()})
		return
	}
	chosen := []v1.Run{}
	for _, run := range s.Runs(r.PathValue("tenant")) {
		if filter.Keeps(run) && len(chosen) < filter.Most() {
			run.Hosts = nil
			chosen = append(chosen, run)
		}
	}
	answer(w, http.StatusOK, chosen)
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("tenant")
	t := s.tenant(name)
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if i := t.find(id); err == nil && i >= 0 {
		answer(w, http.StatusOK, t.runs[i])
		return
	}
	refuse(w, http.StatusNotFound, v1.Error{Message: fmt.Sprintf("tenant %q has no run %s", name, r.PathValue("id"))})
}

// SetOutput sets what the steps of a host have printed in a run.
func (s *Server) SetOutput(name string, id uint64, host string, outputs ...v1.StepOutput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	if t.outputs == nil {
		t.outputs = map[string][]v1.StepOutput{}
	}
	t.outputs[fmt.Sprint(id, "/", host)] = outputs
}

func (s *Server) getOutput(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	outputs, known := s.tenant(r.PathValue("tenant")).outputs[r.PathValue("id")+"/"+r.PathValue("host")]
	if !known {
		refuse(w, http.StatusNotFound, v1.Error{Message: fmt.Sprintf("host %q is not in run %s", r.PathValue("host"), r.PathValue("id"))})
		return
	}
	answer(w, http.StatusOK, append([]v1.StepOutput{}, outputs...))
}

// SetPlan sets what a run changes on a host.
func (s *Server) SetPlan(name string, id uint64, host string, plan v1.HostPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	if t.plans == nil {
		t.plans = map[string]v1.HostPlan{}
	}
	t.plans[fmt.Sprint(id, "/", host)] = plan
}

func (s *Server) getPlan(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plan, known := s.tenant(r.PathValue("tenant")).plans[r.PathValue("id")+"/"+r.PathValue("host")]
	if !known {
		refuse(w, http.StatusNotFound, v1.Error{Message: fmt.Sprintf("host %q has told no plan in run %s that is kept", r.PathValue("host"), r.PathValue("id"))})
		return
	}
	answer(w, http.StatusOK, plan)
}

// SetOffer sets what a host offers to change.
func (s *Server) SetOffer(name, host string, offer v1.HostPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	if t.offers == nil {
		t.offers = map[string]v1.HostPlan{}
	}
	t.offers[host] = offer
}

func (s *Server) getOffer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offer, told := s.tenant(r.PathValue("tenant")).offers[r.PathValue("host")]
	if !told {
		refuse(w, http.StatusNotFound, v1.Error{Message: fmt.Sprintf("host %q has not told what an upgrade would change", r.PathValue("host"))})
		return
	}
	answer(w, http.StatusOK, offer)
}

// readFilter reads what client.Runs writes.
func readFilter(query url.Values) (v1.RunFilter, error) {
	f := v1.RunFilter{Result: query.Get("result"), Host: query.Get("host")}
	var errs []error
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if query.Has(name) {
			errs = append(errs, into.UnmarshalText([]byte(query.Get(name))))
		}
	}
	if query.Has("limit") {
		limit, err := strconv.Atoi(query.Get("limit"))
		f.Limit, errs = limit, append(errs, err)
	}
	return f, errors.Join(errs...)
}

// refuseRetry answers 412 when there is no ended run to retry, and else
// returns the hosts that a retry is of; nil is all.
func refuseRetry(w http.ResponseWriter, t *tenant, id uint64) (hosts map[string]bool, ok bool) {
	if id == 0 {
		return nil, true
	}
	i := t.find(id)
	if i < 0 {
		refuse(w, http.StatusPreconditionFailed, v1.Error{Message: fmt.Sprintf("there is no run %d to retry", id)})
		return nil, false
	}
	hosts = map[string]bool{}
	for _, h := range t.runs[i].Hosts {
		if h.Status == "failed" || h.Status == "skipped" {
			hosts[h.Hostname] = true
		}
	}
	return hosts, true
}

// refuseUnderWay answers 412 while a run is under way (AV-5).
func refuseUnderWay(w http.ResponseWriter, t *tenant) bool {
	i := slices.IndexFunc(t.runs, func(r v1.Run) bool { return !r.Finished() })
	if i < 0 {
		return false
	}
	refuse(w, http.StatusPreconditionFailed, v1.Error{
		Message: fmt.Sprintf("run %d is under way", t.runs[i].ID), Info: v1.ErrorInfo{Run: t.runs[i].ID},
	})
	return true
}

// find is the place of a run, or -1.
func (t *tenant) find(id uint64) int {
	return slices.IndexFunc(t.runs, func(r v1.Run) bool { return r.ID == id })
}

func cloneRun(r v1.Run) v1.Run {
	r.Hosts, r.Stages = cloneList(r.Hosts), cloneList(r.Stages)
	return r
}

// cloneList keeps the difference between nil and empty.
func cloneList[T any](list []T) []T {
	if list == nil {
		return nil
	}
	return append([]T{}, list...)
}
