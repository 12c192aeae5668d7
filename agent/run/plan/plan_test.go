package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// fleet is h01 to h10 of application app, the first of which is a canary.
func fleet() []Host {
	var hosts []Host
	for i := range 10 {
		hosts = append(hosts, Host{Name: fmt.Sprintf("h%02d", i+1), Application: "app", Role: "worker", Labels: map[string]string{"ring": "1", "env": "prod"}})
	}
	hosts[0].Role, hosts[0].Labels = "canary", map[string]string{"ring": "0"}
	return hosts
}

func resolve(t *testing.T, r *v1.Rollout, hosts []Host) Plan {
	t.Helper()
	planned, err := New(r, hosts, reached.Course{})
	if err != nil {
		t.Fatal(err)
	}
	return planned
}

func TestNoRolloutIsTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*v1.Rollout{"none": nil, "an empty one": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := resolve(t, r, fleet())
			if want := rollout.Default(10); !reflect.DeepEqual(got.Rollout, want) {
				t.Errorf("the policy is %+v, want %+v", got.Rollout, want)
			}
			if len(got.Hosts) != 10 || got.Exempt != nil || got.Silent != nil || got.Reserve() != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWhoMatches(t *testing.T) {
	t.Parallel()
	host := Host{Name: "h1", Application: "app", Role: "db", Labels: map[string]string{"ring": "0", "env": "prod", "empty": ""}}
	for name, row := range map[string]struct {
		match *v1.Match
		want  string // the words, or nothing for no match
	}{
		"no match":                    {nil, ""},
		"an empty one":                {&v1.Match{}, "every host"},
		"its name":                    {&v1.Match{Hosts: []string{"h0", "h1"}}, "its name"},
		"another name":                {&v1.Match{Hosts: []string{"h0", "h11"}}, ""},
		"its role":                    {&v1.Match{Roles: []string{"web", "db"}}, "role db"},
		"another role":                {&v1.Match{Roles: []string{"web"}}, ""},
		"its application":             {&v1.Match{Applications: []string{"app"}}, "application app"},
		"another application":         {&v1.Match{Applications: []string{"other"}}, ""},
		"its label":                   {&v1.Match{Labels: map[string]string{"ring": "0"}}, "label ring=0"},
		"all of its labels":           {&v1.Match{Labels: map[string]string{"ring": "0", "env": "prod"}}, "label env=prod and label ring=0"},
		"one label of two":            {&v1.Match{Labels: map[string]string{"ring": "0", "env": "test"}}, ""},
		"a label that is empty":       {&v1.Match{Labels: map[string]string{"empty": ""}}, "label empty="},
		"an empty label it lacks":     {&v1.Match{Labels: map[string]string{"none": ""}}, ""},
		"all members":                 {&v1.Match{Hosts: []string{"h1"}, Labels: map[string]string{"ring": "0"}, Roles: []string{"db"}, Applications: []string{"app"}}, "its name and label ring=0 and role db and application app"},
		"all members but its role":    {&v1.Match{Hosts: []string{"h1"}, Roles: []string{"web"}}, ""},
		"lists that are there, empty": {&v1.Match{Hosts: []string{}, Roles: []string{}}, "every host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := compile(row.match)
			if got := m.matches(host); got != (row.want != "") {
				t.Fatalf("it matches: %v", got)
			}
			if row.want == "" {
				return
			}
			if got := m.words(host); got != row.want {
				t.Errorf("the words are %q, want %q", got, row.want)
			}
		})
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stages []v1.Stage
		sizes  string
		first  string
	}{
		"one of all":                {[]v1.Stage{{Name: "a"}}, "a:10/1", "h01 h02"},
		"a canary, then the rest":   {[]v1.Stage{{Name: "canary", Match: &v1.Match{Roles: []string{"canary"}}}, {Name: "rest"}}, "canary:1/1 rest:9/1", "h01 h02"},
		"the last first":            {[]v1.Stage{{Name: "last", Match: &v1.Match{Hosts: []string{"h10", "h09"}}}, {Name: "rest"}}, "last:2/1 rest:8/1", "h09 h10 h01"},
		"a host is in the first":    {[]v1.Stage{{Name: "a", Match: &v1.Match{Hosts: []string{"h03"}}}, {Name: "b", Match: &v1.Match{Hosts: []string{"h03", "h02"}}}, {Name: "c"}}, "a:1/1 b:1/1 c:8/1", "h03 h02 h01"},
		"a stage without a host":    {[]v1.Stage{{Name: "a", Match: &v1.Match{Hosts: []string{"h99"}}}, {Name: "b"}}, "b:10/1", "h01 h02"},
		"nothing left for the last": {[]v1.Stage{{Name: "a"}, {Name: "b"}}, "a:10/1", "h01"},
		"a number":                  {[]v1.Stage{{Name: "a", MaxUnavailable: "3"}}, "a:10/3", "h01"},
		"a percentage":              {[]v1.Stage{{Name: "a", MaxUnavailable: "50%"}}, "a:10/5", "h01"},
		"a percentage rounded down": {[]v1.Stage{{Name: "a", MaxUnavailable: "39%"}}, "a:10/3", "h01"},
		"a percentage below 1":      {[]v1.Stage{{Name: "a", MaxUnavailable: "1%"}}, "a:10/1", "h01"},
		"a step first":              {[]v1.Stage{{Name: "a", Step: step()}, {Name: "b", Match: &v1.Match{Hosts: []string{"h02"}}}, {Name: "c", Step: step()}, {Name: "d"}}, "a:0/0 b:1/1 c:0/0 d:9/1", "h02 h01"},
		"a step last":               {[]v1.Stage{{Name: "a"}, {Name: "b", Step: step()}}, "a:10/1 b:0/0", "h01"},
		"a percentage of the stage": {[]v1.Stage{{Name: "a", Match: &v1.Match{Labels: map[string]string{"ring": "1"}}, MaxUnavailable: "40%"}, {Name: "b"}}, "a:9/3 b:1/1", "h02 h03"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := resolve(t, &v1.Rollout{Stages: row.stages}, fleet())
			var sizes []string
			for _, s := range got.Rollout.Stages {
				sizes = append(sizes, fmt.Sprintf("%s:%d/%d", s.Name, s.Size, s.MaxUnavailable))
			}
			if text := strings.Join(sizes, " "); text != row.sizes {
				t.Errorf("the stages are %s, want %s", text, row.sizes)
			}
			if !strings.HasPrefix(strings.Join(got.Hosts, " "), row.first) {
				t.Errorf("the order is %v, want %s first", got.Hosts, row.first)
			}
		})
	}
}

// step is a step on a controller.
func step() *v1.Step {
	return &v1.Step{Do: &v1.Hook{Type: "exec", Script: "swact"}, Match: &v1.Match{Roles: []string{"controller"}}}
}

// TestHostOf checks that the host of a step is the first by name that is heard of and matches,
// member of the run or not.
func TestHostOf(t *testing.T) {
	t.Parallel()
	hosts := []Host{
		{Name: "c3", Role: "controller"},
		{Name: "c2", Role: "controller", NonMember: true},
		{Name: "c1", Role: "controller", Silent: true},
		{Name: "c0", Role: "worker"},
	}
	if name, some := HostOf(step(), hosts); name != "c2" || !some {
		t.Errorf("it is %q, %t", name, some)
	}
	if name, some := HostOf(step(), hosts[2:]); some {
		t.Errorf("without one that is heard of it is %s", name)
	}
}

// TestOthersBehindAStep checks that hosts which are no members count in their own stage, whatever
// steps come before it.
func TestOthersBehindAStep(t *testing.T) {
	t.Parallel()
	hosts := fleet()
	hosts[1].NonMember = true
	planned := resolve(t, &v1.Rollout{Stages: []v1.Stage{{Name: "a", Step: step()}, {Name: "b"}}}, hosts)
	if len(planned.Others) != 1 || planned.Others[0].Stage != "b" {
		t.Errorf("others are %+v", planned.Others)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		failures, prepared         rollout.Count
		wantFailures, wantPrepared int
	}{
		"defaults":               {"", "", 1, 5},
		"numbers":                {"4", "3", 4, 3},
		"more than there are":    {"400", "300", 400, 10},
		"half":                   {"50%", "50%", 5, 5},
		"rounded":                {"29%", "29%", 2, 3},
		"next to nothing":        {"1%", "1%", 1, 1},
		"nobody needs to be":     {"1", "0", 1, 0},
		"no failure is too many": {"0", "100%", 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := resolve(t, &v1.Rollout{MaxFailures: row.failures, MinPrepared: row.prepared}, fleet()).Rollout
			if got.MaxFailures != row.wantFailures || got.MinPrepared != row.wantPrepared {
				t.Errorf("max-failures is %d, min-prepared %d; want %d, %d", got.MaxFailures, got.MinPrepared, row.wantFailures, row.wantPrepared)
			}
		})
	}
}

func TestCountsAreOfTheMembers(t *testing.T) {
	t.Parallel()
	got := resolve(t, &v1.Rollout{Exempt: &v1.Match{Hosts: []string{"h01", "h02"}}, MaxFailures: "50%"}, fleet()).Rollout
	if got.MaxFailures != 4 || got.MinPrepared != 4 {
		t.Errorf("max-failures is %d, min-prepared %d; want 4, 4", got.MaxFailures, got.MinPrepared)
	}
}

// TestHostsThatAreAbsent checks what counts when 3 of 10 members and 2 of 3 other hosts
// are silent, of which one each is out of service since an earlier run.
func TestHostsThatAreAbsent(t *testing.T) {
	t.Parallel()
	for absent, want := range map[string]string{
		"":      "max-unavailable 4 of 10, max-failures 3, min-prepared 4, others h02 h06",
		"count": "max-unavailable 5 of 10, max-failures 5, min-prepared 5, others h02 h05 h06",
	} {
		t.Run("absent "+absent, func(t *testing.T) {
			t.Parallel()
			hosts := append(fleet(), Host{Name: "h00"}) // A member more, as three are none.
			hosts = append(hosts, Host{Name: "h11"}, Host{Name: "h12"})
			for _, n := range []int{1, 4, 5} {
				hosts[n].NonMember = true
			}
			for _, n := range []int{4, 5, 6, 7, 8} {
				hosts[n].Silent = true
			}
			hosts[5].OutOfService, hosts[8].OutOfService = true, true
			planned := resolve(t, &v1.Rollout{Absent: absent, Stages: []v1.Stage{{Name: "all", MaxUnavailable: "40%"}}, MaxFailures: "50%"}, hosts)
			var others []string
			for _, e := range planned.Others {
				others = append(others, e.Host)
			}
			p := planned.Rollout
			got := fmt.Sprintf("max-unavailable %d of %d, max-failures %d, min-prepared %d, others %s",
				p.Stages[0].MaxUnavailable, p.Stages[0].Size, p.MaxFailures, p.MinPrepared, strings.Join(others, " "))
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if want := []string{"h07", "h08", "h09"}; !slices.Equal(planned.Silent, want) {
				t.Errorf("silent are %v, want %v", planned.Silent, want)
			}
		})
	}
}

func TestWhoIsLeftOut(t *testing.T) {
	t.Parallel()
	hosts := fleet()[:4]
	hosts[3].Silent = true
	got := resolve(t, &v1.Rollout{
		Stages:       []v1.Stage{{Name: "a", Match: &v1.Match{Hosts: []string{"h01", "h02", "h04"}}}},
		Exempt:       &v1.Match{Roles: []string{"canary"}},
		ExemptReboot: &v1.Match{Hosts: []string{"h01", "h02", "h03"}},
	}, hosts)
	if want := []string{"h02", "h04"}; !slices.Equal(got.Hosts, want) {
		t.Errorf("the members are %v, want %v", got.Hosts, want)
	}
	if want := []string{"h04"}; !slices.Equal(got.Silent, want) {
		t.Errorf("silent are %v, want %v", got.Silent, want)
	}
	if want := []rollout.Exempt{{Host: "h01", Reason: "the rollout's exempt matches role canary"}, {Host: "h03", Reason: NoStage}}; !slices.Equal(got.Exempt, want) {
		t.Errorf("exempt are %v, want %v", got.Exempt, want)
	}
	if want := []rollout.Exempt{{Host: "h02", Reason: "the rollout's exempt-reboot matches its name"}}; !slices.Equal(got.Rollout.NoReboot, want) {
		t.Errorf("not rebooted are %v, want %v", got.Rollout.NoReboot, want)
	}
}

// full has a value of its own in each member.
func full() *v1.Rollout {
	retries := 0
	return &v1.Rollout{
		Stages: []v1.Stage{
			{Name: "a", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "30m", Approval: true, ApprovalTimeout: "2h"},
			{Name: "b", Approval: true},
			{Name: "c", ApprovalTimeout: "3h"},
			{
				Name: "d", PointOfNoReturn: true, Soak: "5m",
				Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: "do"}, Undo: &v1.Hook{Type: "exec", Script: "undo", On: "site"}, Match: &v1.Match{Roles: []string{"x"}}, Gives: []string{"A"}},
			},
		},
		MaxFailures: "2", OnFailure: "pause", Absent: "count", MinPrepared: "90%", PreparePatience: "3m", Overrun: "stop", OverrunLimit: "20m", Reserve: "10m", RetryAfter: "20m", Splay: "5m", Paused: true,
		Checks: &v1.RolloutChecks{
			BeforeHost: []v1.Check{{Type: "exec", Script: "ready", Args: []string{"-v"}}, {Type: "disk", Path: "/var", MinFree: "2KiB"}},
			AfterHost:  []v1.Check{{Name: "web", Type: "http", URL: "http://127.0.0.1/", Status: 204, Passes: 3, Interval: "1s", Timeout: "2m"}, {Type: "disk", Path: "/", MinFree: "10%"}},
			Fleet:      []v1.Check{{Type: "tcp", Address: "lb:443"}, {Type: "systemd", Unit: "lb.service"}},
		},
		Hooks: &v1.RolloutHooks{
			Drain:   &v1.Hook{Type: "exec", Script: "drain", Args: []string{"now"}},
			Undrain: &v1.Hook{Type: "http", URL: "http://lb/{host}", Method: "PUT", On: "site", Timeout: "3m", Retries: &retries, RetryInterval: "1s"},
		},
		Timeouts: &v1.CommandTimeouts{Prepare: "2h", Upgrade: "3h", Reboot: "1m"},
	}
}

func TestEachMemberOfThePolicy(t *testing.T) {
	t.Parallel()
	got := resolve(t, full(), fleet())
	want := rollout.Resolved{
		Stages: []rollout.ResolvedStage{
			{Stage: rollout.Stage{Name: "a", Soak: "30m", Approval: true, ApprovalTimeout: "2h"}, Size: 1, MaxUnavailable: 1},
			{Stage: rollout.Stage{Name: "b", Soak: "0s", Approval: true, ApprovalTimeout: "1d"}, Size: 9, MaxUnavailable: 1},
			{Stage: rollout.Stage{Name: "d", PointOfNoReturn: true, Soak: "5m", Step: &rollout.Step{
				Do:    &rollout.Hook{Type: "exec", Script: "do", On: "host", Timeout: "1m", Retries: new(2), RetryInterval: "10s"},
				Undo:  &rollout.Hook{Type: "exec", Script: "undo", On: "site", Timeout: "1m", Retries: new(2), RetryInterval: "10s"},
				Match: &rollout.Match{Roles: []string{"x"}}, Gives: []string{"A"},
			}}},
		},
		MaxFailures: 2, MinPrepared: 9,
		Rollout: rollout.Rollout{
			OnFailure: rollout.Pause, Absent: rollout.CountAbsent, PreparePatience: "3m", Overrun: rollout.StopHost, OverrunLimit: "20m", Reserve: "10m", RetryAfter: "20m", Splay: "5m", Paused: true,
			Checks: &rollout.Checks{
				BeforeHost: []rollout.Check{
					{Name: "exec ready", Type: "exec", Script: "ready", Args: []string{"-v"}, Passes: 1, Interval: "5s", Timeout: "1m"},
					{Name: "disk /var", Type: "disk", Path: "/var", MinFree: "2KiB", Passes: 1, Interval: "5s", Timeout: "1m"},
				},
				AfterHost: []rollout.Check{
					{Name: "web", Type: "http", URL: "http://127.0.0.1/", Status: 204, Passes: 3, Interval: "1s", Timeout: "2m"},
					{Name: "disk /", Type: "disk", Path: "/", MinFree: "10%", Passes: 1, Interval: "5s", Timeout: "1m"},
				},
				Fleet: []rollout.Check{
					{Name: "tcp lb:443", Type: "tcp", Address: "lb:443", Passes: 1, Interval: "5s", Timeout: "1m"},
					{Name: "systemd lb.service", Type: "systemd", Unit: "lb.service", Passes: 1, Interval: "5s", Timeout: "1m"},
				},
			},
			Hooks: &rollout.Hooks{
				Drain:   &rollout.Hook{Type: "exec", Script: "drain", Args: []string{"now"}, On: rollout.OnHost, Timeout: "1m", Retries: new(2), RetryInterval: "10s"},
				Undrain: &rollout.Hook{Type: "http", URL: "http://lb/{host}", Method: "PUT", On: rollout.OnSite, Timeout: "3m", Retries: new(0), RetryInterval: "1s"},
			},
			Timeouts: &rollout.Timeouts{Prepare: "2h", Upgrade: "3h", Reboot: "1m"},
		},
	}
	if !reflect.DeepEqual(got.Rollout, want) {
		t.Errorf("got  %+v\nwant %+v", got.Rollout, want)
	}
	if got.Reserve() != 10*time.Minute {
		t.Errorf("the reserve is %s", got.Reserve())
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*v1.Rollout){
		"stages[0].max-unavailable":       func(r *v1.Rollout) { r.Stages[0].MaxUnavailable = "x" },
		"stages[1].soak":                  func(r *v1.Rollout) { r.Stages[1].Soak = "x" },
		"stages[1].approval-timeout":      func(r *v1.Rollout) { r.Stages[1].ApprovalTimeout = "x" },
		"max-failures":                    func(r *v1.Rollout) { r.MaxFailures = "x" },
		"min-prepared":                    func(r *v1.Rollout) { r.MinPrepared = "x" },
		"prepare-patience":                func(r *v1.Rollout) { r.PreparePatience = "x" },
		"splay":                           func(r *v1.Rollout) { r.Splay = "x" },
		"reserve":                         func(r *v1.Rollout) { r.Reserve = "x" },
		"timeouts.prepare":                func(r *v1.Rollout) { r.Timeouts.Prepare = "x" },
		"timeouts.upgrade":                func(r *v1.Rollout) { r.Timeouts.Upgrade = "x" },
		"timeouts.reboot":                 func(r *v1.Rollout) { r.Timeouts.Reboot = "x" },
		"checks.before-host[1].min-free":  func(r *v1.Rollout) { r.Checks.BeforeHost[1].MinFree = "x" },
		"checks.after-host[0].interval":   func(r *v1.Rollout) { r.Checks.AfterHost[0].Interval = "x" },
		"checks.fleet[1].timeout":         func(r *v1.Rollout) { r.Checks.Fleet[1].Timeout = "x" },
		"hooks.drain.timeout":             func(r *v1.Rollout) { r.Hooks.Drain.Timeout = "x" },
		"hooks.undrain.retry-interval":    func(r *v1.Rollout) { r.Hooks.Undrain.RetryInterval = "x" },
		"max-failures, before what is on": func(r *v1.Rollout) { r.MaxFailures, r.Splay = "x", "x" },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			r := full()
			change(r)
			name, _, _ := strings.Cut(field, ",")
			_, err := New(r, fleet(), reached.Course{})
			if want := "cannot plan a run by the rollout: " + name + `: "x" is not a`; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got error %v, want %s", err, want)
			}
		})
	}
}

func TestAFleetOfNobody(t *testing.T) {
	t.Parallel()
	got := resolve(t, full(), nil)
	withHosts := func(s rollout.ResolvedStage) bool { return s.Step == nil }
	if got.Hosts != nil || slices.ContainsFunc(got.Rollout.Stages, withHosts) || got.Rollout.MinPrepared != 0 {
		t.Errorf("got %+v", got)
	}
}
