package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func drawFleet(rt *rapid.T) []Host {
	var hosts []Host
	for _, number := range rapid.SliceOfNDistinct(rapid.IntRange(0, 99), 1, 30, rapid.ID).Draw(rt, "hosts") {
		hosts = append(hosts, Host{
			Name:        "h" + strconv.Itoa(number),
			Application: rapid.SampledFrom([]string{"app", "other"}).Draw(rt, "application"),
			Role:        rapid.SampledFrom([]string{"", "db", "web"}).Draw(rt, "role"),
			Labels:      drawLabels(rt),
			Silent:      rapid.Bool().Draw(rt, "silent"),
		})
	}
	return hosts
}

func drawLabels(rt *rapid.T) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"ring", "env"}), rapid.SampledFrom([]string{"", "0", "1"}), 0, 2).Draw(rt, "labels")
}

func drawMatch(rt *rapid.T) *v1.Match {
	if rapid.IntRange(0, 3).Draw(rt, "no match") == 0 {
		return nil
	}
	name := rapid.Custom(func(rt *rapid.T) string { return "h" + strconv.Itoa(rapid.IntRange(0, 99).Draw(rt, "name")) })
	return &v1.Match{
		Hosts:        rapid.SliceOfN(name, 0, 3).Draw(rt, "hosts"),
		Roles:        rapid.SliceOfN(rapid.SampledFrom([]string{"db", "web"}), 0, 2).Draw(rt, "roles"),
		Applications: rapid.SliceOfN(rapid.SampledFrom([]string{"app", "other"}), 0, 1).Draw(rt, "applications"),
		Labels:       drawLabels(rt),
	}
}

func drawRollout(rt *rapid.T) *v1.Rollout {
	count := rapid.SampledFrom([]rollout.Count{"", "1", "7", "1%", "33%", "100%"})
	r := &v1.Rollout{
		MaxFailures: count.Draw(rt, "max-failures"), MinPrepared: count.Draw(rt, "min-prepared"),
		Exempt: drawMatch(rt), ExemptReboot: drawMatch(rt),
	}
	for i := range rapid.IntRange(0, 4).Draw(rt, "stages") {
		stage := v1.Stage{Name: fmt.Sprintf("s%d", i), Match: drawMatch(rt), MaxUnavailable: count.Draw(rt, "max-unavailable")}
		if rapid.IntRange(0, 2).Draw(rt, "step") == 0 {
			stage = v1.Stage{Name: stage.Name, Step: step()}
		}
		r.Stages = append(r.Stages, stage)
	}
	return r
}

func TestPlanHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		hosts, r := drawFleet(rt), drawRollout(rt)
		planned, err := New(r, hosts, reached.Course{})
		if err != nil {
			rt.Fatal(err)
		}
		checkEachOnce(rt, planned, hosts)
		checkOrder(rt, planned)
		checkRunCanBeOpened(rt, planned)
		shuffled := slices.Clone(hosts)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 1))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again, err := New(r, shuffled, reached.Course{}); err != nil || !reflect.DeepEqual(planned, again) {
			rt.Fatalf("in another order, %+v became %+v, %v", planned, again, err)
		}
	})
}

// checkEachOnce holds that every host is a member or left out, with a reason.
func checkEachOnce(rt *rapid.T, planned Plan, hosts []Host) {
	all := slices.Clone(planned.Hosts)
	for _, exempt := range planned.Exempt {
		if exempt.Reason == "" {
			rt.Fatalf("%s is left out without a reason", exempt.Host)
		}
		all = append(all, exempt.Host)
	}
	var want, silent []string
	for _, host := range hosts {
		want = append(want, host.Name)
		if host.Silent && slices.Contains(planned.Hosts, host.Name) {
			silent = append(silent, host.Name)
		}
	}
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		rt.Fatalf("members and exempt are %v of %v", all, want)
	}
	slices.Sort(silent)
	if got := slices.Sorted(slices.Values(planned.Silent)); !slices.Equal(got, silent) {
		rt.Fatalf("silent are %v, want %v", got, silent)
	}
}

// checkOrder holds that the stages follow one another, each by name.
func checkOrder(rt *rapid.T, planned Plan) {
	rest := planned.Hosts
	for _, stage := range planned.Rollout.Stages {
		if !slices.IsSorted(rest[:stage.Size]) {
			rt.Fatalf("stage %s goes in the order %v", stage.Name, rest[:stage.Size])
		}
		rest = rest[stage.Size:]
	}
	if len(rest) > 0 {
		rt.Fatalf("%v are of no stage", rest)
	}
}

func checkRunCanBeOpened(rt *rapid.T, planned Plan) {
	if len(planned.Hosts) == 0 {
		return
	}
	opened := message.Opened{
		Trigger: message.TriggerWindow, NotAfter: time.Unix(1_900_000_000, 0).UTC(),
		Members: planned.Hosts, Roster: planned.Others, Exempt: planned.Exempt, Rollout: planned.Rollout,
	}
	got, err := message.DecodeEvent(message.EncodeEvent(opened))
	if err != nil {
		rt.Fatal(err)
	}
	if !reflect.DeepEqual(got, opened) {
		rt.Fatalf("%+v was read as %+v", opened, got)
	}
}

// BenchmarkPlan is the cost of the largest fleet by a rollout that puts hosts
// into their stages by name.
func BenchmarkPlan(b *testing.B) {
	const size, stages = 10_000, 20
	hosts := make([]Host, size)
	r := &v1.Rollout{Exempt: &v1.Match{Labels: map[string]string{"env": "test"}}, Stages: make([]v1.Stage, stages)}
	for i := range r.Stages {
		r.Stages[i] = v1.Stage{Name: "s" + strconv.Itoa(i), Match: &v1.Match{}, MaxUnavailable: "10%"}
	}
	for i := range hosts {
		hosts[i] = Host{Name: fmt.Sprintf("h%05d", (i*7919)%size), Application: "app", Labels: map[string]string{"env": "prod"}}
		match := r.Stages[i%stages].Match
		match.Hosts = append(match.Hosts, hosts[i].Name)
	}
	b.ReportAllocs()
	for b.Loop() {
		if planned, err := New(r, hosts, reached.Course{}); err != nil || len(planned.Hosts) != size {
			b.Fatal(len(planned.Hosts), err)
		}
	}
}
