package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestLeft checks that a run has nothing to do exactly if some host has what it installs, each other one
// is left out, and no step of earlier runs is left; and that it counts the hosts that lack it.
func TestLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		has, silent, out := map[string]bool{}, map[string]bool{}, map[string]bool{}
		var hosts []Host
		for n := range rapid.IntRange(0, 5).Draw(t, "hosts") {
			h := Host{Name: fmt.Sprintf("h%d", n)}
			has[h.Name] = rapid.Bool().Draw(t, "has it")
			silent[h.Name] = !has[h.Name] && rapid.Bool().Draw(t, "silent")
			out[h.Name] = rapid.Bool().Draw(t, "left out")
			if h.Silent = silent[h.Name]; out[h.Name] {
				h.Unfit = "it is too old"
			}
			hosts = append(hosts, h)
		}
		r := &v1.Rollout{Stages: []v1.Stage{{Name: "all"}}}
		course := reached.Course{}
		steps := rapid.Bool().Draw(t, "steps")
		goesOn := rapid.Bool().Draw(t, "goes on")
		if steps {
			r.Stages = append(r.Stages, v1.Stage{Name: "activate", Step: &rollout.Step{}})
		}
		if goesOn {
			course.Before = &message.Reached{Since: 7, Stages: []message.ReachedStage{{Name: "all", Run: 7, Done: []string{"before"}}}}
			if steps {
				course.Before.Stages = append(course.Before.Stages, message.ReachedStage{Name: "activate", Step: true})
			}
		}
		p, err := New(r, hosts, course)
		if err != nil {
			t.Fatal(err)
		}
		var want Left
		for _, h := range hosts {
			name, counts := h.Name, !out[h.Name]
			switch {
			case has[name] && (!steps || !reached.GoesOn(p.Reached)):
				want.Have++
			case counts:
				want.Hosts++
				if silent[name] {
					want.Silent++
				}
			}
		}
		got := p.Left(func(host string) bool { return has[host] })
		if got != want {
			t.Fatalf("%+v is left, want %+v", got, want)
		}
		if got.Nothing() != (want.Have > 0 && want.Hosts == 0) {
			t.Fatalf("nothing is left: %t of %+v", got.Nothing(), got)
		}
		if unknown := p.Left(nil); unknown.Nothing() || unknown.Hosts != len(p.Hosts) || unknown.Silent != len(p.Silent) {
			t.Fatalf("%+v is left of hosts of which nothing is known", unknown)
		}
	})
}
