package window_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// each is a window for each pair of a key and a length.
func each(pairs ...string) string {
	var entries []string
	for _, pair := range pairs {
		key, length, _ := strings.Cut(pair, "=")
		entries = append(entries, fmt.Sprintf("%s = %q", key, length))
	}
	return acctest.Requirement + fmt.Sprintf(`
resource "osupgrade_maintenance_window" "w" {
  for_each     = { %s }
  days_of_week = [%q]
  start_time   = "01:00"
  duration     = each.value
}
`, strings.Join(entries, ", "), oneDay)
}

// TestAccWindow_exchanged: resources exchange their windows, as a change of for_each does, are
// renamed, replaced and tainted. Each apply ends with what is declared, and the server never
// misses a window that is declared before and after.
func TestAccWindow_exchanged(t *testing.T) {
	t.Parallel()
	api, server, theirs := shared(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	before := []string{}
	for _, row := range []struct {
		name   string
		config []string
		args   []string
	}{
		{"created", []string{"a=1h", "b=2h"}, nil},
		{"swapped", []string{"a=2h", "b=1h"}, nil},
		{"a key is renamed", []string{"a=2h", "c=1h"}, nil},
		{"both are renamed, and one is added", []string{"d=2h", "e=1h", "f=3h"}, nil},
		{"each has the one of another", []string{"d=1h", "e=3h", "f=2h"}, nil},
		{"one is left out, and the others move up", []string{"d=3h", "e=2h"}, nil},
		{"one is replaced", []string{"d=3h", "e=2h"}, []string{`-replace=osupgrade_maintenance_window.w["d"]`}},
		{"one is replaced and changed", []string{"d=4h", "e=2h"}, []string{`-replace=osupgrade_maintenance_window.w["d"]`}},
	} {
		kept := map[string]bool{}
		for _, pair := range row.config {
			_, length, _ := strings.Cut(pair, "=")
			for _, had := range before {
				kept[had] = kept[had] || strings.HasSuffix(had, "="+length)
			}
		}
		missed := watch(api, before, kept)
		w.Write(t, "main.tf", each(row.config...))
		out := w.Run(t, 0, append([]string{"apply", "-auto-approve", "-input=false", "-no-color"}, row.args...)...)
		if strings.Contains(out, "What exists is managed from now on") {
			t.Errorf("%s: the plan warns of its own windows: %s", row.name, out)
		}
		want := []v1.MaintenanceWindow{theirs}
		for _, pair := range row.config {
			_, length, _ := strings.Cut(pair, "=")
			want = append(want, on(oneDay, length))
		}
		if err := has(api, want...)(nil); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if gone := missed(); len(gone) > 0 {
			t.Errorf("%s: in between the server has missed %q", row.name, gone)
		}
		w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
		before = row.config
	}
}

// watch returns a function that tells which windows a write has left out that are to be kept.
func watch(api *fakeapi.Server, before []string, kept map[string]bool) (missed func() []string) {
	var gone []string
	api.Accept(func(_ string, c v1.OSUpgrade) []v1.Error {
		for _, pair := range before {
			_, length, _ := strings.Cut(pair, "=")
			if kept[pair] && !strings.Contains(strings.Join(window.Keys(c.MaintenanceWindows), "\n"), window.Key(on(oneDay, length))) {
				gone = append(gone, pair)
			}
		}
		return nil
	})
	return func() []string { return gone }
}

// TestAccWindow_tainted: a window that is tainted is replaced, and never missing.
func TestAccWindow_tainted(t *testing.T) {
	t.Parallel()
	api, server, theirs := shared(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", each("a=1h"))
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	w.Run(t, 0, "taint", `osupgrade_maintenance_window.w["a"]`)
	missed := watch(api, []string{"a=1h"}, map[string]bool{"a=1h": true})
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color", "-parallelism=1")
	if err := has(api, theirs, on(oneDay, "1h"))(nil); err != nil {
		t.Error(err)
	}
	if gone := missed(); len(gone) > 0 {
		t.Errorf("in between the server has missed %q", gone)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
}

// TestAccWindow_answeredWithNothing: an answer without any member, as something on the way may
// give, does not make Terraform forget a window.
func TestAccWindow_answeredWithNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakeapi.Fault{
		"{}":  fakeapi.Raw(http.StatusOK, "application/json", "{}"),
		"204": fakeapi.Raw(http.StatusNoContent, "", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server, _ := shared(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", each("a=1h"))
			w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
			api.Inject(http.MethodGet, "", fault)
			if out := w.Run(t, 1, "plan", "-input=false", "-no-color"); !strings.Contains(strings.Join(strings.Fields(out), " "), "terraform state rm") {
				t.Errorf("the plan does not say what to do: %s", out)
			}
			w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
		})
	}
}

// TestAccWindow_movesToAListAndBack: windows move from resources of their own into the list of
// a configuration, and back. None is missing in between.
func TestAccWindow_movesToAListAndBack(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	single := each("a=1h", "b=2h")
	list := acctest.Requirement + fmt.Sprintf(`
resource "osupgrade_config" "all" {
  maintenance_windows = [for d in ["1h", "2h"] : { days_of_week = [%q], start_time = "01:00", duration = d }]
}
`, oneDay)
	pairs := []string{"a=1h", "b=2h"}
	w.Write(t, "main.tf", single)
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	missed := watch(api, pairs, map[string]bool{"a=1h": true, "b=2h": true})
	for _, config := range []string{list, single, list} {
		w.Write(t, "main.tf", config)
		w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
		w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
	}
	if gone := missed(); len(gone) > 0 {
		t.Errorf("in between the server has missed %q", gone)
	}
}

// TestAccWindow_ofTwoOwners: an apply that was killed in mid-rename leaves a state in which
// two resources have one window. The next apply keeps the window, whichever of them is left.
func TestAccWindow_ofTwoOwners(t *testing.T) {
	t.Parallel()
	api, server, theirs := shared(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", each("a=1h"))
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color", "-state-out=before.tfstate")
	w.Write(t, "main.tf", each("b=1h"))
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	const a = `osupgrade_maintenance_window.w["a"]`
	w.Run(t, 0, "state", "mv", "-state=before.tfstate", "-state-out=terraform.tfstate", a, a)
	missed := watch(api, []string{"b=1h"}, map[string]bool{"b=1h": true})
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	if err := has(api, theirs, on(oneDay, "1h"))(nil); err != nil {
		t.Error(err)
	}
	if gone := missed(); len(gone) > 0 {
		t.Errorf("in between the server has missed %q", gone)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
}
