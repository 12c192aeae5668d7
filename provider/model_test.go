package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// The test of this file is Terraform in small: two configurations of one tenant, each with a
// state, are planned and applied by the provider, at the protocol, with changes in random
// order and ten at once. The server is slow, loses answers and restarts, and providers are
// killed. What must hold:
//
//   - after at most one further apply without faults, state, server and configuration agree,
//     and the next plan is empty;
//   - no write leaves out a window or calendar that a configuration has before and after;
//   - what nobody declares stays as it is.

// TestModel draws plans and faults. A failure names its seed.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, seed)
			for range 5 {
				m.round(t)
			}
		})
	}
}

// model is the server and the two configurations.
type model struct {
	api    *fakeapi.Server
	server acctest.Server
	// mu guards the random numbers and what the proxies share.
	mu     sync.Mutex
	random *rand.Rand
	down   bool
	// before and declared are what each configuration had and has: windows by their length,
	// calendars as name=length.
	sides [2]*side
	said  []string
}

// side is one configuration with its state.
type side struct {
	before, declared map[string]string
	state            map[string]*instance
}

// instance is a resource in a state.
type instance struct {
	value    *tfprotov6.DynamicValue
	private  []byte
	identity *tfprotov6.ResourceIdentityData
	tainted  bool
}

// theirs are the foreign window and application.
var theirs = v1.OSUpgrade{
	WorkerApplications: []v1.WorkerApplication{{Name: "theirs"}},
	MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Monday", StartTime: "05:00", Timezone: "UTC", Duration: "1h"}},
}

func newModel(t *testing.T, seed uint64) *model {
	api, server := acctest.Fake(t)
	api.SetConfig(acctest.Tenant, theirs)
	api.Latency(2 * time.Millisecond)
	m := &model{api: api, server: server, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range m.sides {
		m.sides[i] = &side{before: map[string]string{}, declared: map[string]string{}, state: map[string]*instance{}}
	}
	return m
}

// roll is a random number below n.
func (m *model) roll(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n)
}

// round draws new configurations, and applies both at once, with faults and then without.
func (m *model) round(t *testing.T) {
	for i, s := range m.sides {
		s.before, s.declared = s.declared, m.draw(i, s.declared)
		for _, kept := range s.state {
			kept.tainted = m.roll(6) == 0
		}
	}
	faulty := m.roll(3) > 0
	for _, faults := range []bool{faulty, false} {
		var both sync.WaitGroup
		for _, s := range m.sides {
			both.Go(func() { m.apply(t, s, faults) })
		}
		both.Wait()
		m.mu.Lock()
		for _, wrong := range m.said {
			t.Error(wrong)
		}
		m.said = nil
		m.mu.Unlock()
	}
	m.agree(t)
	if t.Failed() {
		t.Fatalf("the configurations are %v after %v, and %v after %v", m.sides[0].declared, m.sides[0].before, m.sides[1].declared, m.sides[1].before)
	}
}

// draw returns another configuration: entries exchange what they have, are renamed, added and
// removed. Windows of side i last so many hours, of which the sides share none.
func (m *model) draw(i int, was map[string]string) map[string]string {
	is := maps.Clone(was)
	keys := slices.Sorted(maps.Keys(was))
	lengths := func() []string {
		var free []string
		for h := 1; h <= 8; h++ {
			free = append(free, fmt.Sprintf("%dm", 60*h+i))
		}
		return slices.DeleteFunc(free, func(l string) bool {
			return slices.Contains(slices.Collect(maps.Values(is)), l)
		})
	}
	add := func() {
		if free := lengths(); len(free) > 0 && len(is) < 7 {
			kind := []string{"window", "window", "window", "calendar"}[m.roll(4)]
			is[fmt.Sprintf("%s.k%d-%d", kind, i, m.roll(8))] = free[m.roll(len(free))]
		}
	}
	switch windows := slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, "window.") }); m.roll(7) {
	case 0, 1: // All exchange.
		shuffled := m.random.Perm(len(windows))
		for to, from := range shuffled {
			is[windows[to]] = was[windows[from]]
		}
	case 2: // The first is left out, and the others move up, as with count.
		for n, key := range windows[:max(len(windows)-1, 0)] {
			is[key] = was[windows[n+1]]
		}
		if len(windows) > 0 {
			delete(is, windows[len(windows)-1])
		}
	case 3: // Another one comes first.
		if free := lengths(); len(windows) > 0 && len(free) > 0 {
			for n, key := range windows[1:] {
				is[key] = was[windows[n]]
			}
			is[windows[0]] = free[0]
		}
	case 4: // All keys are new.
		for n, key := range windows {
			delete(is, key)
			is[fmt.Sprintf("window.r%d-%d-%d", i, n, m.roll(1000))] = was[key]
		}
	case 5:
		clear(is)
		add()
	}
	for range m.roll(3) {
		add()
	}
	return is
}

// process is a provider that was started for a plan or an apply.
type process struct {
	protocol
	killed *atomic.Bool
}

// start starts a provider, behind a proxy with the faults of the server.
func (m *model) start(t *testing.T, faults bool) process {
	to, err := url.Parse(m.server.Endpoint)
	if err != nil {
		t.Error(err)
	}
	p := process{killed: &atomic.Bool{}}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		down := m.down
		m.mu.Unlock()
		write := r.Method != http.MethodGet && r.URL.Query().Get("validate") == ""
		if down || p.killed.Load() {
			panic(http.ErrAbortHandler)
		}
		fault := 0
		if faults && write {
			fault = m.roll(12)
		}
		switch fault {
		case 1: // The request does not arrive.
			panic(http.ErrAbortHandler)
		case 2: // The server restarts.
			m.fall()
			panic(http.ErrAbortHandler)
		case 3:
			p.killed.Store(m.roll(2) == 0)
		case 4:
			time.Sleep(time.Duration(m.roll(300)) * time.Millisecond)
		}
		var sent []byte
		if write {
			sent, _ = io.ReadAll(r.Body) // What is cut off is refused by the server.
			r.Body = io.NopCloser(strings.NewReader(string(sent)))
		}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if write && answer.Code < http.StatusMultipleChoices {
			m.written(r, sent)
		}
		if fault == 5 || p.killed.Load() { // The answer is lost.
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // Who has gone does not care.
	}))
	front.Config.ErrorLog = nil
	t.Cleanup(front.Close)
	p.protocol = configured(t, acctest.Server{Endpoint: front.URL, Token: m.server.Token, Tenant: acctest.Tenant})
	return p
}

// fall has the server not answer for a while.
func (m *model) fall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = true
	time.AfterFunc(1200*time.Millisecond, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.down = false
	})
}

// written checks that a write has left out nothing that a configuration has before and after.
func (m *model) written(r *http.Request, body []byte) {
	name, isCalendar := "", strings.Contains(r.URL.Path, "/calendars/")
	if isCalendar {
		name = "calendar." + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var config v1.OSUpgrade
	if !isCalendar && r.Method == http.MethodPut && json.Unmarshal(body, &config) != nil {
		m.said = append(m.said, "the server took "+string(body))
	}
	there := window.Keys(config.MaintenanceWindows)
	for _, w := range theirs.MaintenanceWindows {
		if !isCalendar && !slices.Contains(there, window.Key(w)) {
			m.said = append(m.said, "a write has removed the foreign window")
		}
	}
	for _, s := range m.sides {
		for _, length := range s.kept() {
			if !isCalendar && !slices.Contains(there, window.Key(lasting(length))) {
				m.said = append(m.said, fmt.Sprintf("the window of %s was missing: %s", length, there))
			}
		}
		if _, had := s.before[name]; had && s.declared[name] != "" && r.Method == http.MethodDelete {
			m.said = append(m.said, name+" was missing")
		}
	}
}

// kept are the windows before and after.
func (s *side) kept() (lengths []string) {
	windows := func(of map[string]string) (lengths []string) {
		for key, length := range of {
			if strings.HasPrefix(key, "window.") {
				lengths = append(lengths, length)
			}
		}
		return lengths
	}
	after := windows(s.declared)
	return slices.DeleteFunc(windows(s.before), func(length string) bool { return !slices.Contains(after, length) })
}

func lasting(length string) v1.MaintenanceWindow {
	return v1.MaintenanceWindow{DaysOfWeek: oneDay, StartTime: "01:00", Timezone: "UTC", Duration: length}
}

// agree checks that server, states and configurations are equal, and that nothing foreign has
// changed.
func (m *model) agree(t *testing.T) {
	t.Helper()
	want, names := slices.Clone(theirs.MaintenanceWindows), map[string]string{}
	for _, s := range m.sides {
		for key, length := range s.declared {
			if s.state[key] == nil {
				t.Errorf("the state has no %s", key)
			}
			if name, isCalendar := strings.CutPrefix(key, "calendar."); isCalendar {
				names[name] = length
				continue
			}
			want = append(want, lasting(length))
		}
		if len(s.state) != len(s.declared) {
			t.Errorf("the state has %v, want %v", slices.Sorted(maps.Keys(s.state)), s.declared)
		}
		if changes := m.plan(t, s, m.start(t, false)); len(changes) > 0 {
			t.Errorf("the next plan changes %v", changes)
		}
	}
	got, _, _ := m.api.Config(acctest.Tenant)
	if !window.Same(got.MaintenanceWindows, want) || len(got.WorkerApplications) != 1 {
		t.Errorf("the server has %q and %v, want %q", window.Keys(got.MaintenanceWindows), got.WorkerApplications, window.Keys(want))
	}
	for name, length := range names {
		if c, _, _ := m.api.Calendar(acctest.Tenant, name); len(c.Events) != 1 || window.Key(lasting(c.Events[0].Duration)) != window.Key(lasting(length)) {
			t.Errorf("calendar %s is %+v, want one of %s", name, c, length)
		}
	}
}

// change is a planned change of one resource.
type change struct {
	key                      string
	create, update, deletion bool
	private                  []byte
}

func typeOf(key string) string {
	if strings.HasPrefix(key, "window.") {
		return "osupgrade_maintenance_window"
	}
	return "osupgrade_calendar"
}

// configuration is the block of a resource.
func (p process) configuration(t *testing.T, key, length string) *tfprotov6.DynamicValue {
	of, _ := p.schemas.ResourceSchemas[typeOf(key)].ValueType().(tftypes.Object)
	limits, _ := of.AttributeTypes["timeouts"].(tftypes.Object)
	timeouts := map[string]tftypes.Value{}
	for operation := range limits.AttributeTypes {
		timeouts[operation] = text("20s")
	}
	values := map[string]tftypes.Value{"tenant": text(acctest.Tenant), "timeouts": tftypes.NewValue(limits, timeouts)}
	if typeOf(key) == "osupgrade_calendar" {
		list, _ := of.AttributeTypes["events"].(tftypes.List)
		event, _ := list.ElementType.(tftypes.Object)
		members := map[string]tftypes.Value{}
		for name, kind := range event.AttributeTypes {
			members[name] = tftypes.NewValue(kind, nil)
		}
		members["start"], members["duration"] = text("2099-01-01T00:00"), text(length)
		values["name"], values["kind"] = text(strings.TrimPrefix(key, "calendar.")), text("allow")
		values["events"] = tftypes.NewValue(list, []tftypes.Value{tftypes.NewValue(event, members)})
	} else {
		values["days_of_week"] = tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text(oneDay)})
		values["start_time"], values["timezone"], values["duration"] = text("01:00"), text("UTC"), text(length)
	}
	return object(t, of, values)
}

func (p process) null(t *testing.T, key string) *tfprotov6.DynamicValue {
	of := p.schemas.ResourceSchemas[typeOf(key)].ValueType()
	value, err := tfprotov6.NewDynamicValue(of, tftypes.NewValue(of, nil))
	if err != nil {
		t.Error(err)
	}
	return &value
}

func (p process) isNull(value *tfprotov6.DynamicValue, key string) bool {
	if value == nil {
		return true
	}
	v, err := value.Unmarshal(p.schemas.ResourceSchemas[typeOf(key)].ValueType())
	return err == nil && v.IsNull()
}

// inParallel does something with each key, ten at once and in random order.
func (m *model) inParallel(keys []string, do func(key string)) {
	m.mu.Lock()
	m.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	m.mu.Unlock()
	slots := make(chan struct{}, 10)
	var all sync.WaitGroup
	for _, key := range keys {
		slots <- struct{}{}
		all.Go(func() {
			do(key)
			<-slots
		})
	}
	all.Wait()
}

// plan refreshes the state and returns the changes.
func (m *model) plan(t *testing.T, s *side, p process) (changes []change) {
	t.Helper()
	var mu sync.Mutex
	all := maps.Clone(s.declared)
	for key := range s.state {
		all[key] = s.declared[key]
	}
	m.inParallel(slices.Sorted(maps.Keys(all)), func(key string) {
		mu.Lock()
		is := s.state[key]
		mu.Unlock()
		if is != nil {
			read, err := p.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: typeOf(key), CurrentState: is.value, Private: is.private, CurrentIdentity: is.identity})
			m.healthy(t, key, read.Diagnostics, err)
			is = &instance{read.NewState, read.Private, read.NewIdentity, is.tainted}
			if p.isNull(is.value, key) {
				is = nil
			}
			mu.Lock()
			if s.state[key] = is; is == nil {
				delete(s.state, key)
			}
			mu.Unlock()
		}
		c := change{key: key, create: is == nil || is.tainted, deletion: is != nil && is.tainted}
		req := &tfprotov6.PlanResourceChangeRequest{TypeName: typeOf(key), PriorState: p.null(t, key)}
		if is != nil && !is.tainted {
			req.PriorState, req.PriorPrivate, req.PriorIdentity = is.value, is.private, is.identity
		}
		if length, declared := s.declared[key]; declared {
			req.Config = p.configuration(t, key, length)
			req.ProposedNewState = req.Config
		} else {
			if is == nil {
				return
			}
			c.create, c.deletion = false, true
			req.PriorState, req.PriorPrivate, req.PriorIdentity = is.value, is.private, is.identity
			req.Config, req.ProposedNewState = p.null(t, key), p.null(t, key)
		}
		planned, err := p.PlanResourceChange(t.Context(), req)
		m.healthy(t, key, planned.Diagnostics, err)
		of := p.schemas.ResourceSchemas[typeOf(key)].ValueType()
		after, err1 := planned.PlannedState.Unmarshal(of)
		prior, err2 := req.PriorState.Unmarshal(of)
		if err1 != nil || err2 != nil {
			t.Error(err1, err2)
		}
		c.update, c.private = !c.create && !c.deletion, planned.PlannedPrivate
		if c.update && after.Equal(prior) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, c)
	})
	return changes
}

// healthy reports the errors of a plan.
func (m *model) healthy(t *testing.T, key string, found []*tfprotov6.Diagnostic, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	for _, d := range found {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Errorf("%s: %s: %s", key, d.Summary, d.Detail)
		}
	}
}

// apply plans in one process and applies in another, as Terraform does. No change may fail,
// unless the provider is killed.
func (m *model) apply(t *testing.T, s *side, faults bool) {
	changes := map[string]change{}
	for _, c := range m.plan(t, s, m.start(t, false)) {
		changes[c.key] = c
	}
	p := m.start(t, faults)
	if faults && m.roll(3) == 0 {
		time.AfterFunc(time.Duration(m.roll(1000))*time.Millisecond, func() { p.killed.Store(true) })
	}
	var mu sync.Mutex
	m.inParallel(slices.Sorted(maps.Keys(changes)), func(key string) {
		c := changes[key]
		mu.Lock()
		is := s.state[key]
		mu.Unlock()
		set := func(to *instance) {
			mu.Lock()
			defer mu.Unlock()
			if s.state[key] = to; to == nil {
				delete(s.state, key)
			}
		}
		if c.deletion {
			done, ok := m.ask(t, p, &tfprotov6.ApplyResourceChangeRequest{
				TypeName: typeOf(key), PriorState: is.value, PlannedState: p.null(t, key), Config: p.null(t, key), PlannedPrivate: c.private, PlannedIdentity: is.identity,
			})
			if !ok || !p.isNull(done.NewState, key) {
				return
			}
			set(nil)
			is = nil
		}
		if !c.create && !c.update {
			return
		}
		config := p.configuration(t, key, s.declared[key])
		req := &tfprotov6.PlanResourceChangeRequest{TypeName: typeOf(key), PriorState: p.null(t, key), ProposedNewState: config, Config: config}
		if is != nil {
			req.PriorState, req.PriorPrivate, req.PriorIdentity = is.value, is.private, is.identity
		}
		planned, err := p.PlanResourceChange(t.Context(), req)
		if err != nil {
			t.Error(err)
			return
		}
		done, ok := m.ask(t, p, &tfprotov6.ApplyResourceChangeRequest{
			TypeName: typeOf(key), PriorState: req.PriorState, PlannedState: planned.PlannedState, Config: config, PlannedPrivate: planned.PlannedPrivate, PlannedIdentity: planned.PlannedIdentity,
		})
		if !ok || p.isNull(done.NewState, key) {
			return
		}
		set(&instance{value: done.NewState, private: done.Private, identity: done.NewIdentity})
	})
}

// ask applies a change. It reports false if the provider was killed meanwhile: then there is
// no answer.
func (m *model) ask(t *testing.T, p process, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, bool) {
	type result struct {
		resp *tfprotov6.ApplyResourceChangeResponse
		err  error
	}
	answered := make(chan result, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() {
		resp, err := p.ApplyResourceChange(ctx, req)
		answered <- result{resp, err}
	}()
	for {
		select {
		case got := <-answered:
			if p.killed.Load() {
				return nil, false
			}
			if got.err != nil {
				t.Error(got.err)
				return nil, false
			}
			m.healthy(t, req.TypeName, got.resp.Diagnostics, nil)
			return got.resp, true
		case <-time.After(50 * time.Millisecond):
			if p.killed.Load() {
				return nil, false
			}
		}
	}
}
