package rollout

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTags checks that the tags of each member say what they must: a tag with a
// slip of the pen would bound nothing.
func TestTags(t *testing.T) {
	t.Parallel()
	for _, of := range []any{Rollout{}, Stage{}, Step{}, Checks{}, Check{}, StartCheck{}, Hooks{}, Hook{}, Timeouts{}} {
		for name, m := range membersOf(of) {
			field := reflect.TypeOf(of).Name() + "." + name
			switch m.value.Interface().(type) {
			case Span:
				least, most, found := strings.Cut(m.tag.Get("within"), " ")
				if !found || Span(least).unreadable() != nil || Span(most).unreadable() != nil || Span(least).Duration() >= Span(most).Duration() {
					t.Errorf("%s: within is %q", field, m.tag.Get("within"))
				}
			case int, *int:
				least, most := bounds(m.tag, func(text string) int {
					n, err := strconv.Atoi(text)
					if err != nil {
						t.Errorf("%s: within is %q", field, m.tag.Get("within"))
					}
					return n
				})
				if least >= most {
					t.Errorf("%s: within is %q", field, m.tag.Get("within"))
				}
			case Count:
				if least := Count(m.tag.Get("least")); least == "" || least.unreadable() != nil {
					t.Errorf("%s: least is %q", field, least)
				}
			case []Check, []StartCheck:
				if most, err := strconv.Atoi(m.tag.Get("most")); err != nil || most < 1 {
					t.Errorf("%s: most is %q", field, m.tag.Get("most"))
				}
			case string:
				if of, text := strings.Fields(m.tag.Get("oneof")), m.tag.Get("default"); text != "" && !slices.Contains(of, text) {
					t.Errorf("%s: the default %q is none of %v", field, text, of)
				}
			}
		}
	}
}

func TestDefaultsAreRight(t *testing.T) {
	t.Parallel()
	hook := &Hook{Type: Exec, Script: "a"}
	r := Rollout{
		Checks: &Checks{Fleet: []Check{{Type: TCP, Address: "a:1"}}}, Hooks: &Hooks{Drain: hook, Undrain: hook},
		Stages: []Stage{{Name: "first", Step: &Step{Do: hook, Undo: hook, Match: &Match{Roles: []string{"x"}}}}, {Name: "all"}},
	}
	if found := r.WithDefaults().Validate(); len(found) > 0 {
		t.Error(found)
	}
}

// TestKinds checks that the members of each type of check and hook are there,
// and that each member of only some types belongs to one.
func TestKinds(t *testing.T) {
	t.Parallel()
	checkKinds(t, Check{}, CheckKinds, "name", "type", "passes", "interval", "timeout")
	checkKinds(t, Hook{}, HookKinds, "type", "on", "timeout", "retries", "retry-interval")
}

func checkKinds[T any](t *testing.T, of T, kinds []Kind[T], common ...string) {
	t.Helper()
	want := slices.Clone(common)
	for name := range membersOf(of) {
		if !slices.Contains(common, name) {
			want = append(want, name)
		}
	}
	has := slices.Clone(common)
	for _, kind := range kinds {
		if kind.Does == "" || len(kind.Members) == 0 || kind.inspect == nil {
			t.Errorf("type %s lacks something", kind.Type)
		}
		for _, m := range kind.Members {
			if has = append(has, m.Name); m.Is == "" {
				t.Errorf("of type %s nothing is said of %s", kind.Type, m.Name)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(has)
	if !slices.Equal(want, slices.Compact(has)) {
		t.Errorf("%T has the members %v, its types have %v", of, want, has)
	}
}

// TestResolvedStepsAreChecked: a run cannot rely on a step from the log that it cannot do.
func TestResolvedStepsAreChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*ResolvedStage){
		"": func(*ResolvedStage) {},
		`stages[0]: "swact" has a step and 1 host; a stage has only one of them`:           func(s *ResolvedStage) { s.Size = 1 },
		`stages[0]: "swact" has a step and 0 hosts; a stage has only one of them`:          func(s *ResolvedStage) { s.Match = &Match{} },
		`stages[0].step: "swact" has no hook with a timeout`:                               func(s *ResolvedStage) { s.Step.Do.Timeout = "0s" },
		`stages[0].step: "swact" is done on a host, and match is missing`:                  func(s *ResolvedStage) { s.Step.Do.On = OnHost },
		`stages[0]: "" has 0 hosts of which 0 may be unavailable; each must be at least 1`: func(s *ResolvedStage) { s.Step, s.Name = nil, "" },
	} {
		r := Default(3)
		swact := Stage{Name: "swact", Step: &Step{Do: &Hook{Type: Exec, Script: "swact", On: OnSite, Timeout: "1m"}}}.Resolve(0, 0)
		change(&swact)
		r.Stages = append([]ResolvedStage{swact}, r.Stages...)
		got := ""
		if err := r.Check(3); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestResolvedCheck(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Resolved){
		"": func(*Resolved) {},
		`stages[0]: "" has 3 hosts of which 1 may be unavailable; each must be at least 1`:    func(r *Resolved) { r.Stages[0].Name = "" },
		`stages[0]: "all" has 0 hosts of which 1 may be unavailable; each must be at least 1`: func(r *Resolved) { r.Stages[0].Size = 0 },
		`stages[0]: "all" has 3 hosts of which 0 may be unavailable; each must be at least 1`: func(r *Resolved) { r.Stages[0].MaxUnavailable = 0 },
		`stages[0]: "all" has 4 hosts, the run has 3`:                                         func(r *Resolved) { r.Stages[0].Size = 4 },
		`stages: they have 1 host, the run has 3`:                                             func(r *Resolved) { r.Stages[0].Size = 1 },
		`max-failures: 0 is invalid; use at least 1`:                                          func(r *Resolved) { r.MaxFailures = 0 },
		`on-failure: "hope" is none of stop, pause, continue`:                                 func(r *Resolved) { r.OnFailure = "hope" },
		`overrun: "hope" is none of finish-host, stop`:                                        func(r *Resolved) { r.Overrun = "hope" },
		`timeouts: each must be above 0s`:                                                     func(r *Resolved) { r.Timeouts.Reboot = "0s" },
		`splay: "x" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`: func(r *Resolved) {
			r.Splay = "x"
		},
		`stages[0].soak: "x" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`: func(r *Resolved) {
			r.Stages[0].Soak = "x"
		},
	} {
		r := Default(3)
		change(&r)
		got := ""
		if err := r.Check(3); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRetried checks how often a hook is tried again, without and with a number.
func TestRetried(t *testing.T) {
	t.Parallel()
	if n := (Hook{}).Retried(); n != 0 {
		t.Errorf("a hook that says nothing is retried %d times", n)
	}
	full := Rollout{Hooks: &Hooks{Drain: &Hook{Type: HTTP, URL: "http://a/"}}}.WithDefaults()
	if n, pause := full.Hooks.Drain.Retried(), full.Hooks.Drain.RetryInterval.Duration(); n != 2 || pause != 10*time.Second {
		t.Errorf("by default it is retried %d times, %s apart", n, pause)
	}
}

// TestAddMissing checks that a policy which an older version wrote has the default of
// a member that it lacks, and one that has it keeps it.
func TestAddMissing(t *testing.T) {
	t.Parallel()
	for have, want := range map[Span]Span{"": "15m", "0s": "0s", "3h": "3h"} {
		r := Resolved{Rollout: Rollout{OverrunLimit: have}}
		if r.AddMissing(); r.OverrunLimit != want || r.Checks == nil || r.Hooks == nil || r.Timeouts == nil {
			t.Errorf("%q becomes %+v", have, r.Rollout)
		}
	}
}

// TestTrimmed: what Filled adds is taken out again, whatever is there besides, and neither
// changes the meaning.
func TestTrimmed(t *testing.T) {
	t.Parallel()
	two, none := 2, 0
	for name, r := range map[string]Rollout{
		"nothing": {},
		"all that has a default": {
			MaxFailures: "2", Splay: "0m", Paused: true, Stages: []Stage{{Name: "a", Soak: "5m"}, {Name: "b", MaxUnavailable: "2"}},
			Checks: &Checks{Fleet: []Check{{Type: "tcp", Address: "a:1", Passes: 2}}},
			Hooks:  &Hooks{Drain: &Hook{Type: "http", URL: "http://a/", Retries: &none}}, Timeouts: &Timeouts{Reboot: "20m"},
		},
	} {
		filled := r.Filled()
		if filled.MaxFailures == "" || filled.Checks == nil || filled.Timeouts.Prepare != "1h" {
			t.Errorf("%s: Filled left %+v", name, filled)
		}
		if got := filled.Trimmed(); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: got %+v, want %+v", name, got, r)
		}
		if !reflect.DeepEqual(filled.WithDefaults(), r.WithDefaults()) {
			t.Errorf("%s: Filled changes the meaning", name)
		}
	}
	if got := (Rollout{Stages: []Stage{}, Hooks: &Hooks{Drain: &Hook{Retries: &two}}}).Trimmed(); got.Stages != nil || got.Hooks.Drain.Retries != nil {
		t.Errorf("got %+v", got)
	}
}
