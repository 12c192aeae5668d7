package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestDeclaredOneByOne declares, changes and deletes environments in random order. What the controller
// then knows of them is what it would know had it read all of them anew.
func TestDeclaredOneByOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := stateOf(newMemory().options(t))
		s.setIntent(store.Seen{}) // All was seen that was there at the start.
		for n := range 8 {
			name, role := fmt.Sprintf("h%d", n), []string{"web", "db"}[n%2]
			s.heard(name, message.Alive{Application: "app", Role: role, Labels: map[string]string{"shop": fmt.Sprintf("s%d", n%3)}}, s.Now())
		}
		where := map[string]plan.Where{}
		for name := range s.hosts.known {
			where[name] = plan.Where{}
		}
		for step := range 40 {
			seen := store.Seen{Object: store.Object{Kind: store.Environment, Name: fmt.Sprintf("e%d", r.IntN(5))}, At: time.Now()}
			if r.IntN(4) > 0 {
				seen.Environment = anyEnvironment(r)
			}
			s.setIntent(seen)
			anew := plan.NewMembership(s.intent.declaredEnvironments())
			for name, was := range where {
				where[name] = anew.Of(s.hosts.known[name].inPlan(), &was)
				got, want := s.hosts.known[name].where(), where[name]
				if want.Matching = nil; !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, step %d: %s is in %+v; want %+v", seed, step, name, got, want)
				}
			}
			following := maps.Clone(s.intent.followers())
			maps.DeleteFunc(following, func(_ string, names []string) bool { return len(names) == 0 })
			if s.intent.following = nil; !reflect.DeepEqual(following, s.intent.followers()) {
				t.Fatalf("seed %d, step %d: the followers are %v; want %v", seed, step, following, s.intent.followers())
			}
			names := slices.Sorted(maps.Keys(s.intent.environments))
			for _, env := range s.inOrder[1:] {
				if len(names) == 0 || env.name != names[0] {
					t.Fatalf("seed %d, step %d: there is environment %s; want %v", seed, step, env.name, names)
				}
				names = names[1:]
			}
		}
	}
}

// anyEnvironment is an environment that matches hosts in one of several ways, and comes after any others.
func anyEnvironment(r *rand.Rand) *v1.Environment {
	e := inShop(fmt.Sprintf("s%d", r.IntN(3)), []string{"", "Europe/Berlin"}[r.IntN(2)])
	switch r.IntN(3) {
	case 0:
		e.Match = v1.Match{Hosts: []string{fmt.Sprintf("h%d", r.IntN(8)), fmt.Sprintf("h%d", r.IntN(8))}}
	case 1:
		e.Match = v1.Match{Roles: []string{[]string{"web", "db"}[r.IntN(2)]}}
	}
	if r.IntN(2) == 0 {
		e.After = &v1.After{Environments: []string{v1.DefaultEnvironment, fmt.Sprintf("e%d", r.IntN(5))}}
	}
	return &e
}
