package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// platform are the stages of an upgrade of two controllers and two workers over several runs.
func platform() *v1.Rollout {
	step := func(name string) v1.Stage {
		return v1.Stage{Name: name, Step: &v1.Step{Do: &v1.Hook{Type: "exec", Script: name, On: "site"}}}
	}
	match := func(name, key, value string) v1.Stage {
		return v1.Stage{Name: name, Match: &v1.Match{Labels: map[string]string{key: value}}, MaxUnavailable: "50%"}
	}
	return &v1.Rollout{Stages: []v1.Stage{step("backup"), match("standby", "active", "false"), step("swact"), match("former", "active", "true"), match("workers", "kind", "worker"), step("complete")}}
}

func controllersAndWorkers(active string) []plan.Host {
	var all []plan.Host
	for _, name := range []string{"c1", "c2"} {
		labels := map[string]string{"active": "false"}
		if name == active {
			labels["active"] = "true"
		}
		all = append(all, plan.Host{Name: name, Labels: labels})
	}
	for _, name := range []string{"w1", "w2"} {
		all = append(all, plan.Host{Name: name, Labels: map[string]string{"kind": "worker"}})
	}
	return all
}

// outline is a plan in short: its stages with their hosts.
func outline(p plan.Plan) string {
	var all []string
	first := 0
	for _, s := range p.Rollout.Stages {
		text := s.Name
		if s.Step == nil {
			text += "=" + strings.Join(p.Hosts[first:first+s.Size], "+")
		}
		all = append(all, text)
		first += s.Size
	}
	return strings.Join(all, " ")
}

// TestCourse checks which stages and hosts a run has that goes on after others, or ends after a stage.
func TestCourse(t *testing.T) {
	t.Parallel()
	afterSwact := &message.Reached{Since: 41, Stages: []message.ReachedStage{
		{Name: "backup", Step: true, Run: 41},
		{Name: "standby", Run: 41, Done: []string{"c2"}},
		{Name: "swact", Step: true, Run: 41},
		{Name: "former", Left: []string{"c1"}},
		{Name: "workers"},
		{Name: "complete", Step: true},
	}}
	allHosts := &message.Reached{Since: 41, Stages: slices.Clone(afterSwact.Stages)}
	allHosts.Stages[3].Run, allHosts.Stages[3].Done, allHosts.Stages[3].Left = 57, []string{"c1"}, nil
	allHosts.Stages[4].Run, allHosts.Stages[4].Done = 57, []string{"w1", "w2"}
	silent := func(hosts []plan.Host, names ...string) []plan.Host {
		for i := range hosts {
			hosts[i].Silent = slices.Contains(names, hosts[i].Name)
		}
		return hosts
	}
	only := func(hosts []plan.Host, names ...string) []plan.Host {
		for i := range hosts {
			hosts[i].NonMember = !slices.Contains(names, hosts[i].Name)
		}
		return hosts
	}
	for name, c := range map[string]struct {
		hosts   []plan.Host
		course  reached.Course
		want    string
		ofSteps bool
	}{
		"all of it":                          {controllersAndWorkers("c1"), reached.Course{}, "backup standby=c2 swact former=c1 workers=w1+w2 complete", false},
		"until a step":                       {controllersAndWorkers("c1"), reached.Course{Until: "swact"}, "backup standby=c2 swact", false},
		"until the first step":               {controllersAndWorkers("c1"), reached.Course{Until: "backup"}, "backup", true},
		"until the last stage":               {controllersAndWorkers("c1"), reached.Course{Until: "complete"}, "backup standby=c2 swact former=c1 workers=w1+w2 complete", false},
		"goes on, roles swapped":             {controllersAndWorkers("c2"), reached.Course{Before: afterSwact}, "former=c1 workers=w1+w2 complete", false},
		"goes on until a stage":              {controllersAndWorkers("c2"), reached.Course{Before: afterSwact, Until: "former"}, "former=c1", false},
		"goes on until a stage that is done": {controllersAndWorkers("c2"), reached.Course{Before: afterSwact, Until: "swact"}, "", false},
		"only a step is left":                {controllersAndWorkers("c2"), reached.Course{Before: allHosts}, "complete", true},
		"only a step and a silent host":      {silent(controllersAndWorkers("c2"), "c1", "w1", "w2"), reached.Course{Before: afterSwact}, "former=c1 workers=w1+w2 complete", true},
		"chosen hosts take no step":          {only(controllersAndWorkers("c2"), "c1", "c2"), reached.Course{Before: afterSwact, Chosen: true}, "standby=c2 former=c1", false},
		"chosen hosts of the first run":      {only(controllersAndWorkers("c1"), "w1"), reached.Course{Chosen: true}, "backup swact workers=w1 complete", false},
	} {
		p, err := plan.New(platform(), c.hosts, c.course)
		if err != nil || outline(p) != c.want || p.OfSteps() != c.ofSteps {
			t.Errorf("%s: got %q, of steps: %t, %v; want %q, of steps: %t", name, outline(p), p.OfSteps(), err, c.want, c.ofSteps)
		}
	}
	if _, err := plan.New(platform(), controllersAndWorkers("c1"), reached.Course{Until: "swap"}); err == nil || !strings.Contains(err.Error(), "swap, which is none") {
		t.Errorf("until an unknown stage: %v", err)
	}
}

// TestCourseBeginsAnew checks that a run begins anew when no step is left, and of the hosts only silent
// ones: else nobody would ever be upgraded again.
func TestCourseBeginsAnew(t *testing.T) {
	t.Parallel()
	r := &v1.Rollout{Stages: []v1.Stage{{Name: "first", Match: &v1.Match{Hosts: []string{"h01"}}}, {Name: "rest"}}}
	before := &message.Reached{Since: 41, Stages: []message.ReachedStage{{Name: "first", Run: 41, Done: []string{"h01"}}, {Name: "rest", Left: []string{"h02"}}}}
	for name, c := range map[string]struct {
		silent bool
		want   string
		goesOn bool
	}{
		"a host is left":        {false, "rest=h02", true},
		"a silent host is left": {true, "first=h01 rest=h02", false},
	} {
		p, err := plan.New(r, []plan.Host{{Name: "h01"}, {Name: "h02", Silent: c.silent}}, reached.Course{Before: before})
		if err != nil || outline(p) != c.want || reached.GoesOn(p.Reached) != c.goesOn {
			t.Errorf("%s: got %q after %+v, %v; want %q", name, outline(p), p.Reached, err, c.want)
		}
	}
	if p, _ := plan.New(r, []plan.Host{{Name: "h01"}, {Name: "h02"}}, reached.Course{Before: before}); len(p.Others) != 0 {
		t.Errorf("a stage that is not in the run counts %+v", p.Others)
	}
}
