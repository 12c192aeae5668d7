package message

import (
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestTaskKinds checks what each kind of task runs of a rollout that has everything, and where. The
// member says where that stands in the rollout.
func TestTaskKinds(t *testing.T) {
	t.Parallel()
	list := func(name string) []rollout.Check { return []rollout.Check{{Name: name}} }
	hook := func(name, on string) *rollout.Hook { return &rollout.Hook{Script: name, On: on} }
	r := rollout.Rollout{
		Checks: &rollout.Checks{BeforeHost: list("b"), AfterHost: list("a"), Fleet: list("f")},
		Hooks:  &rollout.Hooks{Drain: hook("d", rollout.OnSite), Undrain: hook("u", rollout.OnHost)},
	}
	step := rollout.Step{Do: hook("do", rollout.OnSite), Undo: hook("undo", rollout.OnHost)}
	want := map[TaskKind]string{
		Start:      "checks.start: [], hook false, at the site true",
		BeforeHost: "checks.before-host: [b], hook false, at the site false",
		AfterHost:  "checks.after-host: [a], hook false, at the site false",
		Fleet:      "checks.fleet: [f], hook false, at the site true",
		Drain:      "hooks.drain: [d], hook true, at the site true",
		Undrain:    "hooks.undrain: [u], hook true, at the site false",
		Step:       "step.do: [do], hook true, at the site true",
		Undo:       "step.undo: [undo], hook true, at the site false",
	}
	for _, kind := range TaskKinds() {
		task := kind.Of(&r)
		if h := kind.HookOf(&step); h != nil {
			task.Hook, task.Stage, task.Host = h, "s", map[string]string{rollout.OnHost: "h01"}[h.On]
		}
		runs := []string{}
		for _, c := range task.Checks {
			runs = append(runs, c.Name)
		}
		if task.Hook != nil {
			runs = append(runs, task.Hook.Script)
		}
		got := fmt.Sprintf("%s: %v, hook %t, at the site %t", kind.Member(), runs, kind.IsHook(), task.OnSite())
		if got != want[kind] || kind.Words() == "" || task.RunsNothing() != (kind == Start) {
			t.Errorf("%s: got %s, words %q, want %s", kind, got, kind.Words(), want[kind])
		}
		delete(want, kind)
	}
	if len(want) > 0 {
		t.Errorf("these are no kinds: %v", want)
	}
	if unknown := TaskKind("dance"); unknown.Known() || unknown.OfHost() || unknown.OfRun() || unknown.OfStage() || unknown.IsHook() || !unknown.Of(&r).RunsNothing() {
		t.Error("a kind that does not exist runs something")
	}
}
