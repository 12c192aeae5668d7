package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestNextWindow_isToldAtPlan: a plan warns of what comes next, with one read beside the
// refresh for each resource that changes, and a plan that changes nothing does not.
func TestNextWindow_isToldAtPlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	// Ten months from yesterday on.
	freeze := v1.Event{Start: time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), Duration: "300d", AllDay: true, Summary: "Audit"}
	api.SetCalendar(acctest.Tenant, "audit", v1.Calendar{Kind: "freeze", Events: []v1.Event{freeze}})
	w := acctest.NewWorkspace(t, server.Env()...)
	configuration := func(window, year string) string {
		return acctest.Requirement + `
resource "osupgrade_config" "acme" {
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "` + window + `", duration = "4h" }]
}
resource "osupgrade_calendar" "old" {
  name   = "old"
  kind   = "allow"
  events = [{ start = "` + year + `-01-01T00:00", duration = "1h" }]
}
`
	}
	w.Write(t, "main.tf", configuration("21:00", "2019"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	api.ForgetRequests()
	w.Write(t, "main.tf", configuration("22:00", "2020"))
	told := acctest.Diagnostics(t, planned(w.Run(t, 0, "plan", "-json")))
	for address, want := range map[string]string{
		"osupgrade_config.acme":  "The next window is frozen",
		"osupgrade_calendar.old": "No event of calendar old lies ahead",
	} {
		if len(told[address]) != 1 || !strings.HasPrefix(told[address][0], want) {
			t.Errorf("%s: got %q, want %s", address, told[address], want)
		}
	}
	if n := api.Count(http.MethodGet, ""); n > 4 {
		t.Errorf("the plan made %d reads, want 4 at most", n)
	}
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color"); strings.Contains(out, "frozen") {
		t.Errorf("a plan without changes warns: %s", out)
	}
}

// TestDeletedFreeze_isToldAtPlan: a plan that deletes a freeze, or the event of it that is
// under way, says that a run starts at once; a freeze that closes nothing now is another matter.
func TestDeletedFreeze_isToldAtPlan(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	freeze := func(name, events string) string {
		return "resource \"osupgrade_calendar\" \"" + name + "\" {\n name = \"" + name + "\"\n kind = \"freeze\"\n events = [" + events + "]\n}\n"
	}
	always := acctest.Requirement + `
resource "osupgrade_config" "acme" {
  maintenance_windows = [{ days_of_week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"], start_time = "00:00", duration = "2d" }]
}
`
	today := `{ start = "` + yesterday + `", duration = "3d", all_day = true, timezone = "UTC" }`
	const later = `{ start = "2099-01-01", all_day = true }`
	const atOnce, ends = "A run starts as soon as this is applied", "The freeze ends"
	// The CLI tells the address only of what is still configured.
	for name, row := range map[string]struct{ before, after, address, want string }{
		"the calendar":           {freeze("a", today), "", "", atOnce},
		"its event":              {freeze("a", today), freeze("a", later), "osupgrade_calendar.a", atOnce},
		"one that has not begun": {freeze("a", later), "", "", ends},
		"its name":               {freeze("a", today), strings.Replace(freeze("a", today), `name = "a"`, `name = "z"`, 1), "osupgrade_calendar.a", atOnce},
		"one of two":             {freeze("a", today) + freeze("b", today), freeze("b", today), "", ends},
	} {
		w.Write(t, "main.tf", always+row.before)
		w.Run(t, 0, "apply", "-auto-approve", "-no-color")
		w.Write(t, "main.tf", always+row.after)
		told := acctest.Diagnostics(t, planned(w.Run(t, 0, "plan", "-json")))
		var ours []string
		for _, text := range told[row.address] {
			if !strings.HasPrefix(text, "Provider development overrides") {
				ours = append(ours, text)
			}
		}
		if len(ours) != 1 || !strings.HasPrefix(ours[0], row.want) {
			t.Errorf("%s: got %q, want %s", name, told, row.want)
		}
	}
}

// TestAtOnce_reckonsWithTheSamePlan: what the plan creates, changes and deletes counts, if the
// configuration is as the guide "Order of an apply" has it.
func TestAtOnce_reckonsWithTheSamePlan(t *testing.T) {
	t.Parallel()
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	const days = `days_of_week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]`
	const always = days + "\n start_time = \"00:00\"\n duration = \"2d\"\n"
	calendar := func(name, kind, length, more string) string {
		return "resource \"osupgrade_calendar\" \"" + name + "\" {\n name = \"" + name + "\"\n kind = \"" + kind + "\"\n events = [{ start = \"" + yesterday +
			"\", duration = \"" + length + "\", all_day = true, timezone = \"UTC\" }]\n" + more + "}\n"
	}
	freeze := calendar("freeze", "freeze", "3d", "")
	config := func(windows, more string) string {
		return "resource \"osupgrade_config\" \"acme\" {\n maintenance_windows = [" + windows + "]\n" + more + "}\n"
	}
	const object = "{ " + `days_of_week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"], start_time = "00:00", duration = "2d" }`
	const afterFreeze, afterRollout = "depends_on = [osupgrade_calendar.freeze]\n", "depends_on = [osupgrade_rollout.acme]\n"
	rollout := func(paused string) string {
		return "resource \"osupgrade_rollout\" \"acme\" {\n paused = " + paused + "\n}\n"
	}
	window := func(more string) string {
		return "resource \"osupgrade_maintenance_window\" \"w\" {\n" + always + more + "}\n"
	}
	for name, row := range map[string]struct {
		before, after string
		destroy, want bool
	}{
		"a window":                                  {after: config(object, ""), want: true},
		"a window and its freeze":                   {after: freeze + config(object, afterFreeze)},
		"a window and an allow calendar":            {after: calendar("freeze", "allow", "3d", "") + config(object, afterFreeze), want: true},
		"a window of its own and its freeze":        {after: freeze + window(afterFreeze)},
		"an event and its freeze":                   {after: freeze + calendar("open", "allow", "3d", afterFreeze)},
		"a window, with the rollout paused":         {after: rollout("true") + config(object, afterRollout)},
		"a window, with the rollout paused already": {before: rollout("true"), after: rollout("true") + config(object, afterRollout)},
		"a window, and the rollout goes on":         {before: rollout("true"), after: rollout("false") + config(object, afterRollout), want: true},
		"a window, and the freeze goes":             {before: freeze + config("", afterFreeze), after: config(object, ""), want: true},
		"the window goes, and so does the freeze":   {before: freeze + config(object, afterFreeze), after: config("", "")},
		"all goes":                           {before: freeze + config(object, afterFreeze), destroy: true},
		"all goes, with a window of its own": {before: freeze + window(afterFreeze), destroy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			if row.before != "" {
				w.Write(t, "main.tf", acctest.Requirement+row.before)
				w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-input=false")
			}
			command := []string{"plan", "-no-color", "-input=false"}
			if row.destroy {
				command = append(command, "-destroy")
			} else {
				w.Write(t, "main.tf", acctest.Requirement+row.after)
			}
			out := w.Run(t, 0, command...)
			if warns := strings.Contains(out, "A run starts as soon as this is applied"); warns != row.want {
				t.Errorf("the plan warns: %v, want %v: %s", warns, row.want, out)
			}
		})
	}
}

// planned returns the diagnostics of a plan in the form of validate's.
func planned(output string) string {
	var list []string
	for line := range strings.Lines(output) {
		if _, found, ok := strings.Cut(line, `"diagnostic":`); ok {
			end := strings.LastIndex(found, `,"type":"diagnostic"`)
			list = append(list, found[:end])
		}
	}
	return `{"diagnostics":[` + strings.Join(list, ",") + `]}`
}
