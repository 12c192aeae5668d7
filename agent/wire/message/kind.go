package message

import "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"

// TaskKind says what a task is for.
type TaskKind string

// The kinds of tasks. taskKinds says of each what it is of and what it runs.
const (
	Start      TaskKind = "start"
	BeforeHost TaskKind = "before-host"
	AfterHost  TaskKind = "after-host"
	Fleet      TaskKind = "fleet"
	Drain      TaskKind = "drain"
	Undrain    TaskKind = "undrain"
	Step       TaskKind = "step"
	Undo       TaskKind = "undo"
)

// owner is what a task is of.
type owner int

const (
	// ofHost: of one host. Its worker is asked, or the site if the hook says so.
	ofHost owner = iota
	// ofSite: of the run as a whole. Only the site is asked.
	ofSite
	// ofRun: of the run as a whole. The site is asked, or each host that is named.
	ofRun
	// ofStage: of a stage that has a step. The site is asked, or the one host that the step
	// matches.
	ofStage
)

// taskKind is a place in a run at which something is asked: of whom, and which checks or which
// hook of the rollout. What a task may take follows from these (Task.Limit).
type taskKind struct {
	name TaskKind
	of   owner
	// words name it in texts about its host or its run.
	words string
	// member is the member of the rollout, or of its stage, that says what is run.
	member string
	// One of these returns that member. Of the checks before a run each host has its own.
	checks func(*rollout.Checks) []rollout.Check
	hook   func(*rollout.Hooks) *rollout.Hook
	step   func(*rollout.Step) *rollout.Hook
}

// taskKinds are all kinds: first the lists of checks, then the hooks.
var taskKinds = []taskKind{
	{name: Start, of: ofRun, words: "the start checks", member: "checks.start"},
	{name: BeforeHost, words: "its before-host checks", member: "checks.before-host", checks: func(c *rollout.Checks) []rollout.Check { return c.BeforeHost }},
	{name: AfterHost, words: "its after-host checks", member: "checks.after-host", checks: func(c *rollout.Checks) []rollout.Check { return c.AfterHost }},
	{name: Fleet, of: ofSite, words: "the checks of the fleet", member: "checks.fleet", checks: func(c *rollout.Checks) []rollout.Check { return c.Fleet }},
	{name: Drain, words: "its drain hook", member: "hooks.drain", hook: func(h *rollout.Hooks) *rollout.Hook { return h.Drain }},
	{name: Undrain, words: "its undrain hook", member: "hooks.undrain", hook: func(h *rollout.Hooks) *rollout.Hook { return h.Undrain }},
	{name: Step, of: ofStage, words: "the step", member: "step.do", step: func(s *rollout.Step) *rollout.Hook { return s.Do }},
	{name: Undo, of: ofStage, words: "the undo of the step", member: "step.undo", step: func(s *rollout.Step) *rollout.Hook { return s.Undo }},
}

// entry returns the entry of a kind; nil for one that is unknown.
func (k TaskKind) entry() *taskKind {
	for i := range taskKinds {
		if taskKinds[i].name == k {
			return &taskKinds[i]
		}
	}
	return nil
}

// TaskKinds returns all kinds: first those of lists of checks, then those of hooks.
func TaskKinds() []TaskKind {
	all := make([]TaskKind, len(taskKinds))
	for i := range taskKinds {
		all[i] = taskKinds[i].name
	}
	return all
}

// Known reports whether k is a kind of task.
func (k TaskKind) Known() bool { return k.entry() != nil }

// OfHost reports whether a task is of one host.
func (k TaskKind) OfHost() bool { e := k.entry(); return e != nil && e.of == ofHost }

// OfRun reports whether a task is of the run as a whole or of a stage, and not part of the upgrade
// of a host.
func (k TaskKind) OfRun() bool { e := k.entry(); return e != nil && e.of != ofHost }

// OfStage reports whether a task is of a stage that has a step.
func (k TaskKind) OfStage() bool { e := k.entry(); return e != nil && e.of == ofStage }

// mayBeOf reports whether a task of the kind that runs a hook, or none, may name a host; none is the
// site.
func (k TaskKind) mayBeOf(host string, h *rollout.Hook) bool {
	e, atSite := k.entry(), host == ""
	switch {
	case e.of == ofHost || e.of == ofSite:
		return atSite == (e.of == ofSite)
	case h != nil:
		return atSite == (h.On == rollout.OnSite)
	}
	return true
}

// IsHook reports whether a task runs a hook, not checks.
func (k TaskKind) IsHook() bool { e := k.entry(); return e != nil && (e.hook != nil || e.step != nil) }

// Words name the task in texts about its host or its run.
func (k TaskKind) Words() string {
	if e := k.entry(); e != nil {
		return e.words
	}
	return string(k)
}

// Member is the member of the rollout, or of one of its stages, that says what is run.
func (k TaskKind) Member() string {
	if e := k.entry(); e != nil {
		return e.member
	}
	return ""
}

// Of returns what a rollout with all its parts has run at a task of the kind, without its run, its
// host and its attempt. It runs nothing if the rollout has nothing for it.
func (k TaskKind) Of(r *rollout.Rollout) Task {
	t := Task{Kind: k}
	switch e := k.entry(); {
	case e == nil:
	case e.checks != nil:
		t.Checks = e.checks(r.Checks)
	case e.hook != nil:
		t.Hook = e.hook(r.Hooks)
	}
	return t
}

// HookOf returns the hook of a step that a task of the kind runs; nil if the step has none.
func (k TaskKind) HookOf(s *rollout.Step) *rollout.Hook {
	if e := k.entry(); e != nil && e.step != nil {
		return e.step(s)
	}
	return nil
}

// RunsNothing reports whether the task has neither checks nor a hook.
func (t Task) RunsNothing() bool { return len(t.Checks) == 0 && t.Hook == nil }
