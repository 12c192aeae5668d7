package fakeapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// tenant is the controller of a tenant, which never moves by itself. Its fields are guarded
// by Server.mu.
type tenant struct {
	*Server
	name  string
	state *v1.State
	hosts []v1.Host
	// outputs are what hosts have printed in runs, by run and host.
	outputs map[string][]v1.ActionOutput
	// plans are what runs change on hosts, by run and host.
	plans map[string]v1.HostPlan
	// installed is what runs have installed.
	installed map[uint64]v1.Installed
	// offers are what hosts offer to change.
	offers map[string]v1.HostPlan
	runs   []v1.Run
	// seq counts the changes, as the log of a real controller does.
	seq      uint64
	watchers wait.Watchers
	// environments are those that the tenant has beside default.
	environments []v1.EnvironmentStatus
	// frozenBy is the run that freezes changes; 0 for none.
	frozenBy uint64
}

var _ api.Controller = (*tenant)(nil)

// move changes what is shown and tells watchers.
func (s *Server) move(name string, change func(t *tenant)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(name)
	change(t)
	t.seq++
	t.watchers.Notify()
}

// SetState fixes what GET of the state answers. Until then it is the
// configuration, idle, with the hosts as scheduled workers.
func (s *Server) SetState(name string, state v1.State) {
	s.move(name, func(t *tenant) { t.state = &state })
}

// SetEnvironments sets what is shown of a tenant's environments, by name, default among them.
func (s *Server) SetEnvironments(name string, all ...v1.EnvironmentStatus) {
	s.move(name, func(t *tenant) { t.environments = all })
}

// FreezeChanges has a run freeze changes of a tenant's configuration; 0 is none.
func (s *Server) FreezeChanges(name string, run uint64) {
	s.move(name, func(t *tenant) { t.frozenBy = run })
}

// SetHosts sets a tenant's hosts. A run that starts later takes them all.
func (s *Server) SetHosts(name string, hosts ...v1.Host) {
	s.move(name, func(t *tenant) { t.hosts = hosts })
}

// SetOutput sets what the actions of a host have printed in a run.
func (s *Server) SetOutput(name string, id uint64, host string, outputs ...v1.ActionOutput) {
	s.move(name, func(t *tenant) { t.outputs[inRun(id, host)] = append([]v1.ActionOutput{}, outputs...) })
}

// SetPlan sets what a run changes on a host.
func (s *Server) SetPlan(name string, id uint64, host string, plan v1.HostPlan) {
	s.move(name, func(t *tenant) { t.plans[inRun(id, host)] = plan })
}

// SetInstalled sets what a run has installed.
func (s *Server) SetInstalled(name string, id uint64, found v1.Installed) {
	s.move(name, func(t *tenant) { t.installed[id] = found })
}

// SetOffer sets what a host offers to change.
func (s *Server) SetOffer(name, host string, offer v1.HostPlan) {
	s.move(name, func(t *tenant) { t.offers[host] = offer })
}

func inRun(id uint64, host string) string { return fmt.Sprint(id, "/", host) }

// AddRun keeps run and tells watchers; an ID of 0 becomes the next one. It
// returns the ID.
func (s *Server) AddRun(name string, r v1.Run) (id uint64) {
	s.move(name, func(t *tenant) { id = t.open(r).ID })
	return id
}

// EditRun changes a run and tells watchers. It panics when there is no such
// run.
func (s *Server) EditRun(name string, id uint64, edit func(r *v1.Run)) {
	s.move(name, func(t *tenant) {
		i := t.find(id)
		if i < 0 {
			panic(fmt.Sprintf("fakeapi: tenant %q has no run %d to edit", name, id))
		}
		r := cloneRun(t.runs[i])
		edit(&r)
		t.runs[i] = r
	})
}

// FinishRun ends a run with result and reason. Its hosts that are not failed
// or skipped become upgraded when result is "completed".
func (s *Server) FinishRun(name string, id uint64, result, reason string) {
	s.EditRun(name, id, func(r *v1.Run) {
		finish(r, result, reason)
		for i, h := range r.Hosts {
			if result == "completed" && h.Status != "failed" && h.Status != "skipped" {
				r.Hosts[i].Status = "upgraded"
			}
		}
	})
}

// ForgetRun drops a run, as servers do with old ones.
func (s *Server) ForgetRun(name string, id uint64) {
	s.move(name, func(t *tenant) { t.runs = slices.DeleteFunc(t.runs, func(r v1.Run) bool { return r.ID == id }) })
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
func (s *Server) OnStart(do func(tenant string, r v1.Run)) {
	s.choose(func(b *behaviour) { b.onStart = do })
}

// RefuseStart has each start refused for a reason, as outside of the windows; empty ends
// that.
func (s *Server) RefuseStart(reason string) {
	s.choose(func(b *behaviour) { b.refuseStart = reason })
}

// SetNow sets the time that windows are calculated from, which goes on from there. Until then
// it is that of the clock.
func (s *Server) SetNow(now time.Time) {
	s.choose(func(b *behaviour) { b.ahead = time.Until(now) })
}

// find is the place of a run, or -1.
func (t *tenant) find(id uint64) int {
	return slices.IndexFunc(t.runs, func(r v1.Run) bool { return r.ID == id })
}

// current is the place of the run under way, or -1.
func (t *tenant) current() int {
	return slices.IndexFunc(t.runs, func(r v1.Run) bool { return !r.Finished() })
}

// open keeps a new run.
func (t *tenant) open(r v1.Run) v1.Run {
	if r.ID == 0 {
		r.ID = t.nextRun
	}
	t.nextRun = max(t.nextRun, r.ID+1)
	t.runs = append(t.runs, cloneRun(r))
	return r
}

// finish ends a run now.
func finish(r *v1.Run, result, reason string) {
	ended := time.Now().UTC().Truncate(time.Second)
	r.Phase, r.Result, r.Reason, r.EndedAt, r.WaitingFor, r.Paused = "finished", result, reason, &ended, nil, ""
}

func cloneRun(r v1.Run) v1.Run {
	r.Hosts, r.Stages = slices.Clone(r.Hosts), slices.Clone(r.Stages)
	return r
}

// State implements api.Controller.
func (t *tenant) State(ctx context.Context) (v1.State, error) {
	config, revision, err := t.store.Config(ctx, t.name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v1.State{}, err
	}
	hasConfig := err == nil
	rollout, _, err := t.store.Rollout(ctx, t.name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v1.State{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != nil {
		return *t.state, nil
	}
	state := v1.State{Situation: t.situation(), ScheduledWorkers: []v1.ScheduledWorker{}, OSUpgrade: config.Value}
	if hasConfig {
		state.ConfigETag = revision.ETag()
	}
	state.IntentWarnings = plan.Unmatched(plan.Intent{Config: &config.Value, Rollout: &rollout.Value}, t.known())
	for _, h := range t.hosts {
		state.ScheduledWorkers = append(state.ScheduledWorkers, v1.ScheduledWorker{Host: h.Hostname, Application: h.Application})
	}
	return state, nil
}

// Move implements api.Controller.
func (t *tenant) Move(_ context.Context, host, environment string) (v1.HostEnvironment, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.hosts {
		if h := &t.hosts[i]; h.Hostname == host {
			h.Environment, h.Assigned, h.Unplaced = cmp.Or(environment, v1.DefaultEnvironment), environment != "", false
			return v1.HostEnvironment{Hostname: host, Environment: h.Environment, Assigned: h.Assigned}, nil
		}
	}
	return v1.HostEnvironment{}, fmt.Errorf("host %s: %w", host, run.ErrNoHost)
}

// Vacant implements api.Controller.
func (t *tenant) Vacant(_ context.Context, environment string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		if h.Environment == environment {
			return &run.Refused{Message: fmt.Sprintf("environment %s is in use: it has host %s", environment, h.Hostname)}
		}
	}
	return nil
}

// Frozen implements api.Controller.
func (t *tenant) Frozen(_ context.Context, change run.Change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frozenBy == 0 || change.Holds {
		return nil
	}
	return &run.Refused{Run: t.frozenBy, Frozen: true, Message: fmt.Sprintf("run %d freezes changes of the configuration until it ends", t.frozenBy)}
}

// Unmatched implements api.Controller.
func (t *tenant) Unmatched(_ context.Context, i plan.Intent) ([]v1.IntentWarning, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return plan.Unmatched(i, t.known()), nil
}

func (t *tenant) known() plan.Known {
	var known plan.Known
	for _, h := range t.hosts {
		known.Hosts = append(known.Hosts, plan.Host{Name: h.Hostname, Application: h.Application, Role: h.Role, Labels: h.Labels, Environment: h.InEnvironment()})
	}
	return known
}

func (t *tenant) situation() v1.Situation {
	if t.state != nil {
		return t.state.Situation
	}
	return v1.Situation{Status: "idle", Hosts: len(t.hosts), Environments: len(t.environments)}
}

// EnvironmentStatuses implements api.Controller.
func (t *tenant) EnvironmentStatuses(context.Context) ([]v1.EnvironmentStatus, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.environments) > 0 {
		return slices.Clone(t.environments), nil
	}
	var newest *v1.Run
	if last := len(t.runs) - 1; last >= 0 {
		newest = new(cloneRun(t.runs[last]))
	}
	return []v1.EnvironmentStatus{v1.EnvironmentStatusOf(v1.DefaultEnvironment, t.situation(), newest)}, nil
}

// EnvironmentStatus implements api.Controller.
func (t *tenant) EnvironmentStatus(ctx context.Context, name string) (v1.EnvironmentStatus, error) {
	all, err := t.EnvironmentStatuses(ctx)
	known := make([]string, len(all))
	for i, e := range all {
		if known[i] = e.Name; e.Name == name {
			return e, err
		}
	}
	return v1.EnvironmentStatus{}, cmp.Or(err, error(&run.NoEnvironment{Name: name, Known: known}))
}

// Hosts implements api.Controller.
func (t *tenant) Hosts(ctx context.Context, filter v1.HostFilter) ([]v1.Host, error) {
	hosts, err := t.HostsWithInventories(ctx, filter)
	for i := range hosts {
		hosts[i].Inventory = nil
	}
	return hosts, err
}

// CountHosts implements api.Controller.
func (t *tenant) CountHosts(context.Context) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.hosts), nil
}

// HostsWithInventories implements api.Controller.
func (t *tenant) HostsWithInventories(_ context.Context, filter v1.HostFilter) ([]v1.Host, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	chosen := filter.Matcher()
	hosts := slices.DeleteFunc(append([]v1.Host{}, t.hosts...), func(h v1.Host) bool {
		return h.Hostname <= filter.After || !chosen.Fits(h.Hostname, h.Role, h.InEnvironment(), h.Labels)
	})
	slices.SortFunc(hosts, func(a, b v1.Host) int { return cmp.Compare(a.Hostname, b.Hostname) })
	if filter.Limit > 0 {
		hosts = hosts[:min(filter.Limit, len(hosts))]
	}
	return hosts, nil
}

// host is the place of a host.
func (t *tenant) host(name string) (int, error) {
	i := slices.IndexFunc(t.hosts, func(h v1.Host) bool { return h.Hostname == name })
	if i < 0 {
		return i, run.ErrNoHost
	}
	return i, nil
}

// Host implements api.Controller.
func (t *tenant) Host(_ context.Context, name string) (v1.Host, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, err := t.host(name)
	if err != nil {
		return v1.Host{}, err
	}
	return t.hosts[i], nil
}

// Forget implements api.Controller: it deletes a host that is not online.
func (t *tenant) Forget(_ context.Context, name string, _ run.Deletion) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, err := t.host(name)
	switch {
	case err != nil:
		return err
	case t.hosts[i].Online:
		return &run.Refused{Message: "host " + name + " is online"}
	}
	t.hosts = slices.Concat(t.hosts[:i], t.hosts[i+1:])
	return nil
}

// Output implements api.Controller.
func (t *tenant) Output(_ context.Context, id uint64, host string) ([]v1.ActionOutput, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	outputs, known := t.outputs[inRun(id, host)]
	if !known {
		return nil, run.ErrNoHost
	}
	return outputs, nil
}

// Plan implements api.Controller.
func (t *tenant) Plan(_ context.Context, id uint64, host string) (v1.HostPlan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	plan, known := t.plans[inRun(id, host)]
	if !known {
		return plan, run.ErrNoPlan
	}
	return plan, nil
}

// Installed implements api.Controller.
func (t *tenant) Installed(_ context.Context, id uint64) (v1.Installed, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, known := t.installed[id]
	if !known {
		return found, &run.Refused{Run: id, Message: fmt.Sprintf("run %d has upgraded no host", id)}
	}
	return found, nil
}

// Offer implements api.Controller.
func (t *tenant) Offer(_ context.Context, host string) (v1.HostPlan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	offer, known := t.offers[host]
	if !known {
		return offer, run.ErrNoPlan
	}
	return offer, nil
}

// Refresh implements api.Controller: all hosts that are online look.
func (t *tenant) Refresh(_ context.Context, request v1.Refresh) (refreshed v1.Refreshed, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	chosen := request.Selector().Matcher()
	for _, h := range t.hosts {
		switch {
		case !chosen.Fits(h.Hostname, h.Role, h.InEnvironment(), h.Labels):
		case h.Online:
			refreshed.Asked++
		default:
			refreshed.Silent++
		}
	}
	if refreshed == (v1.Refreshed{}) && len(request.Hosts) > 0 {
		err = fmt.Errorf("host %s: %w", request.Hosts[0], run.ErrNoHost)
	}
	return refreshed, err
}

// ReportsSince implements api.Controller: there are none. A stream asks for them once it has
// sent what is so.
func (t *tenant) ReportsSince(ctx context.Context, _ uint64) ([]v1.VersionsEvent, uint64, error) {
	t.sent(ctx)
	return nil, 0, nil
}

// News implements api.Controller: there are none.
func (t *tenant) News(context.Context, uint64) (all []v1.News, oldest, newest uint64, err error) {
	return nil, 0, 0, nil
}

// Runs implements api.Controller.
func (t *tenant) Runs(_ context.Context, filter v1.RunFilter) ([]v1.Run, error) {
	chosen, of := []v1.Run{}, t.namesOf(filter.OnlyHosts())
	for _, r := range t.Server.Runs(t.name) {
		if filter.Keeps(r) && (of == nil || r.HasAny(of)) && len(chosen) < filter.Most() {
			r.Hosts, r.Events = nil, nil
			chosen = append(chosen, r)
		}
	}
	return chosen, nil
}

// namesOf returns the names of the hosts that a selector chooses; nil for all.
func (t *tenant) namesOf(selector v1.Selector) map[string]bool {
	if selector.IsZero() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	names, chosen := map[string]bool{}, selector.Matcher()
	for _, name := range selector.Hosts { // It may be one that is no longer known.
		names[name] = len(selector.Labels)+len(selector.Roles) == 0
	}
	for _, h := range t.hosts {
		if chosen.Fits(h.Hostname, h.Role, h.InEnvironment(), h.Labels) {
			names[h.Hostname] = true
		}
	}
	return names
}

// Find implements api.Controller.
func (t *tenant) Find(_ context.Context, id uint64) (v1.Run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(id)
	if i < 0 {
		return v1.Run{}, fmt.Errorf("run %d: %w", id, run.ErrNoRun)
	}
	return cloneRun(t.runs[i]), nil
}

// Snapshot implements api.Controller.
func (t *tenant) Snapshot(ctx context.Context) (v1.Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sends(ctx)
	shown := v1.Snapshot{Situation: t.situation(), Seq: t.seq, Log: "fake"}
	if last := len(t.runs) - 1; last >= 0 {
		newest := cloneRun(t.runs[last])
		shown.Run = &newest
	}
	return shown, nil
}

// WindowsOf implements api.Controller: an environment has its own maintenance windows, or else those of
// the tenant, and all calendars.
func (t *tenant) WindowsOf(ctx context.Context, environment string, from, to time.Time, count int) ([]v1.Window, error) {
	e, _, err := t.store.Environment(ctx, t.name, environment)
	if err != nil || e.Value.MaintenanceWindows == nil {
		return t.Windows(ctx, from, to, count)
	}
	return t.windows(ctx, v1.OSUpgrade{MaintenanceWindows: e.Value.MaintenanceWindows}, from, to, count)
}

// AllWindows implements api.Controller.
func (t *tenant) AllWindows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	return t.Windows(ctx, from, to, count)
}

// SnapshotOf implements api.Controller: all runs are of all environments.
func (t *tenant) SnapshotOf(ctx context.Context, _ string) (v1.Snapshot, error) {
	return t.Snapshot(ctx)
}

// Current implements api.Controller.
func (t *tenant) Current(context.Context) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.current(); i >= 0 {
		return t.runs[i].ID, nil
	}
	return 0, nil
}

// Watch implements api.Controller.
func (t *tenant) Watch(context.Context) (<-chan struct{}, func(), error) {
	changed, leave := t.watchers.Add()
	return changed, leave, nil
}

// Lock implements api.Controller. It locks any host, and forgets that.
func (t *tenant) Lock(_ context.Context, _ string, who v1.FleetLock) (string, error) {
	return who.ClientParams.ID, nil
}

// Unlock implements api.Controller.
func (t *tenant) Unlock(ctx context.Context, by string, who v1.FleetLock) (string, error) {
	return t.Lock(ctx, by, who)
}

// Start implements api.Controller.
func (t *tenant) Start(_ context.Context, by string, request v1.Start) (v1.Run, error) {
	opened, then, err := t.start(by, request)
	if then != nil {
		then(t.name, opened)
	}
	return opened, err
}

func (t *tenant) start(by string, request v1.Start) (v1.Run, func(string, v1.Run), error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := len(t.runs) - 1; request.RequestID != "" && last >= 0 && t.runs[last].RequestID == request.RequestID {
		return cloneRun(t.runs[last]), nil, nil
	}
	again, refused := t.refused(request)
	if refused != nil {
		return v1.Run{}, nil, refused
	}
	if request.Rollback {
		for _, r := range t.runs {
			if r.RollbackOf == 0 {
				request.RollbackOf = r.ID
			}
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	r := v1.Run{
		Phase: "preparing", Trigger: "manual", RequestedBy: by, RequestReason: request.Reason,
		RetryOf: request.RetryOf, RollbackOf: request.RollbackOf, Until: request.Until, RequestID: request.RequestID, OpenedAt: now, NotAfter: now.Add(4 * time.Hour), Hosts: []v1.RunHost{},
	}
	if request.Release != "" {
		r.Release = &v1.RunRelease{Name: request.Release}
	}
	chosen := request.Selector().Matcher()
	for _, h := range t.hosts {
		if again != nil && !again[h.Hostname] || !chosen.Fits(h.Hostname, h.Role, h.InEnvironment(), h.Labels) {
			continue
		}
		r.Hosts = append(r.Hosts, v1.RunHost{Hostname: h.Hostname, Status: "preparing"})
	}
	t.seq++
	t.watchers.Notify()
	return t.open(r), t.behave.onStart, nil
}

// refused returns why a start is refused, and else the hosts that a retry is of; nil is all.
func (t *tenant) refused(request v1.Start) (map[string]bool, error) {
	if i := t.current(); i >= 0 {
		return nil, &run.Refused{Run: t.runs[i].ID, Message: fmt.Sprintf("run %d is in progress", t.runs[i].ID)}
	}
	if t.behave.refuseStart != "" {
		return nil, &run.Refused{Message: t.behave.refuseStart}
	}
	if request.Rollback && !slices.ContainsFunc(t.runs, func(r v1.Run) bool { return r.RollbackOf == 0 }) {
		return nil, &run.Refused{Message: "no run has upgraded a host, so there is nothing to roll back"}
	}
	if request.RetryOf == 0 {
		return nil, nil
	}
	i := t.find(request.RetryOf)
	if i < 0 {
		return nil, &run.Refused{Message: fmt.Sprintf("there is no run %d to retry", request.RetryOf)}
	}
	again := map[string]bool{}
	for _, h := range t.runs[i].Hosts {
		again[h.Hostname] = h.Status == "failed" || h.Status == "skipped"
	}
	if len(again) > 0 && !slices.ContainsFunc(t.runs[i].Hosts, func(h v1.RunHost) bool { return again[h.Hostname] }) {
		return nil, &run.Refused{Run: request.RetryOf, Message: fmt.Sprintf("run %d left no host to retry", request.RetryOf)}
	}
	return again, nil
}

// Health implements api.Controller: what is asked at the site passes, and takes a second look.
func (t *tenant) Health(_ context.Context, request v1.AskHealth) (v1.HealthReport, error) {
	return t.health(request.Environment, v1.HealthWaiting), nil
}

// HealthOf implements api.Controller.
func (t *tenant) HealthOf(_ context.Context, id int) (v1.HealthReport, error) {
	if id != 1 {
		return v1.HealthReport{}, run.ErrNoHealth
	}
	return t.health("", v1.HealthPassed), nil
}

func (*tenant) health(environment, result string) v1.HealthReport {
	r := v1.HealthReport{ID: 1, Environment: cmp.Or(environment, v1.DefaultEnvironment), OK: result == v1.HealthPassed, Checks: []v1.HealthCheck{{Check: "alarms", Result: result}}}
	if result == v1.HealthWaiting {
		r.Waiting = 1
	}
	return r
}

// Preflight implements api.Controller.
func (t *tenant) Preflight(_ context.Context, _ string, request v1.Start) (v1.Preflight, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.refused(request); err != nil {
		return v1.Preflight{Refused: err.Error()}, nil
	}
	return v1.Preflight{}, nil
}

// acts change the run under way as an operator has asked, or say why that is not possible.
var acts = map[run.Ask]func(r *v1.Run, by string, body v1.Ask) error{
	run.Pause: func(r *v1.Run, by string, body v1.Ask) error {
		if r.Paused != "" {
			return fmt.Errorf("run %d is paused already, by %s", r.ID, r.Paused)
		}
		r.Paused = by + ": " + body.Reason
		return nil
	},
	run.Resume: func(r *v1.Run, _ string, _ v1.Ask) error {
		if r.Paused == "" {
			return fmt.Errorf("run %d is not paused", r.ID)
		}
		r.Paused = ""
		return nil
	},
	run.Abort: func(r *v1.Run, by string, body v1.Ask) error {
		finish(r, "aborted", "aborted by "+by+": "+body.Reason)
		return nil
	},
	run.Approve: func(r *v1.Run, _ string, body v1.Ask) error {
		i := slices.IndexFunc(r.Stages, func(s v1.RunStage) bool { return s.Name == body.Stage })
		if i < 0 || r.Stages[i].Phase != "waiting-for-approval" {
			return fmt.Errorf("run %d has no stage %q that waits for approval", r.ID, body.Stage)
		}
		r.Stages[i].Phase, r.WaitingFor = "running", nil
		return nil
	},
	run.Release: func(r *v1.Run, _ string, body v1.Ask) error {
		i := slices.IndexFunc(r.Hosts, func(h v1.RunHost) bool { return h.Hostname == body.Host })
		if i < 0 || r.Hosts[i].Slot == nil && run.Status(r.Hosts[i].Status).Final() {
			return fmt.Errorf("host %s holds no slot of run %d", body.Host, r.ID)
		}
		r.Hosts[i].Slot, r.Hosts[i].SlotReason = nil, ""
		return nil
	},
}

// AbortAll implements api.Controller.
func (t *tenant) AbortAll(ctx context.Context, by string, body v1.Ask) ([]v1.Run, error) {
	if id, _ := t.Current(ctx); id == 0 {
		return []v1.Run{}, nil
	}
	r, err := t.Ask(ctx, by, run.Abort, body)
	return []v1.Run{r}, err
}

// Ask implements api.Controller.
func (t *tenant) Ask(_ context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.current()
	if i < 0 {
		return v1.Run{}, &run.Refused{Message: "no run is in progress"}
	}
	r := cloneRun(t.runs[i])
	if err := acts[ask](&r, by, body); err != nil {
		return v1.Run{}, &run.Refused{Run: r.ID, Message: err.Error()}
	}
	t.runs[i] = r
	t.seq++
	t.watchers.Notify()
	return cloneRun(r), nil
}

// Ready implements api.Controller.
func (t *tenant) Ready(context.Context) error { return nil }

// Seen implements api.Controller: what is written is in effect at once.
func (t *tenant) Seen(context.Context, uint64) error { return nil }

// Skippable implements api.Controller: a window that is to open is one.
func (t *tenant) Skippable(ctx context.Context, _ string, start time.Time) (opens, closes time.Time, err error) {
	all, err := t.Windows(ctx, time.Now(), time.Now().AddDate(1, 0, 0), 100)
	for _, w := range all {
		if start.IsZero() || w.Start.Equal(start) {
			return w.Start, w.End, nil
		}
	}
	return time.Time{}, time.Time{}, cmp.Or(err, error(&run.Refused{Message: "no such window opens"}))
}

// Windows implements api.Controller: those of the configuration and the calendars, what is
// wrong in them left out; site-local is UTC.
func (t *tenant) Windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	config, _, err := t.store.Config(ctx, t.name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if len(config.Value.Validate()) > 0 {
		config.Value = v1.OSUpgrade{}
	}
	return t.windows(ctx, config.Value, from, to, count)
}

// windows are those of a configuration and of all calendars.
func (t *tenant) windows(ctx context.Context, config v1.OSUpgrade, from, to time.Time, count int) ([]v1.Window, error) {
	all, err := t.store.Calendars(ctx, t.name)
	if err != nil {
		return nil, err
	}
	calendars := map[string]v1.Calendar{}
	for _, c := range all {
		if len(c.Value.Validate()) == 0 {
			calendars[c.Name] = c.Value
		}
	}
	schedule, err := v1.ScheduleOf(config, calendars, time.UTC)
	if err != nil {
		return nil, err
	}
	if ahead := t.chosen().ahead; time.Since(from).Abs() < time.Minute { // Who names no time asks from now on.
		from, to = from.Add(ahead), to.Add(ahead)
	}
	return v1.WindowsUntil(ctx, schedule, from, to, count)
}
