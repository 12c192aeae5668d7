package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const declaredText = `config:
    worker-applications:
        - name: appliance
    maintenance-windows:
        - days-of-week: Friday
          start-time: "01:00"
          timezone: UTC
          duration: "4h"
rollout:
    max-failures: "2"
calendars:
    holidays:
        kind: freeze
        events:
            - start: "2026-12-24"
              timezone: site-local
              all-day: true
`

// TestApply checks the whole way: what is new is shown and written, freezes
// first; what is printed is what apply reads; a change is shown as one.
func TestApply(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	do := func(stdin string, code int, args ...string) string {
		t.Helper()
		got, stdout, stderr := callWith(t, stdin, as(t, s.URL, s.Token, "acme", args...)...)
		if got != code {
			t.Fatalf("%q: exit code %d:\n%s%s", args, got, stdout, stderr)
		}
		return stdout + stderr
	}
	want := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("no %q in\n%s", part, got)
			}
		}
	}
	want(do(declaredText, exitOK, "apply", "-f", "-", "--dry-run"), "calendar holidays: new\n  + kind: freeze\n",
		"Nothing was written, because of --dry-run. It would be written in this order: calendar holidays, rollout, config.")
	if _, _, there := s.Config("acme"); there {
		t.Fatal("--dry-run has written")
	}
	want(do(declaredText, exitOK, "apply", "-f", "-"), "Written, in this order: calendar holidays, rollout, config.\n")
	if got := do("", exitOK, "get"); got != declaredText {
		t.Errorf("get prints\n%snot\n%s", got, declaredText)
	}
	want(do(do("", exitOK, "get"), exitOK, "apply", "-f", "-"), "config: unchanged\n", "Nothing to write: the site has it all.")
	want(do(do("", exitOK, "get", "-o", "json"), exitOK, "apply", "-f", "-"), "Nothing to write")

	changed := strings.Replace(declaredText, "Friday", "Monday", 1)
	want(do(changed, exitOK, "apply", "-f", "-"), "config: changed\n", "\n  -     - days-of-week: Friday\n  +     - days-of-week: Monday\n", "rollout: unchanged\n",
		"Written, in this order: config.")
	want(do("calendars: {holidays: null}\nrollout: null\n", exitOK, "apply", "-f", "-", "-o", "json"), `"action": "delete"`, `"written": true`)
	want(do("", exitFailed, "get", "calendar/holidays"), "tenant acme has no calendar holidays")
	want(do("", exitOK, "get"), "days-of-week: Monday")
	want(do("", exitUsage, "get", "windows"), `"windows" is not an object; use config, rollout, calendars, calendar/NAME, environments, environment/NAME, budgets, budget/NAME, releases, release/NAME, policies, policy/NAME, users, user/NAME, approles, approle/NAME, webhooks or webhook/NAME`)
}

// TestApplyBudgets checks that disruption budgets are written, read, warned of and deleted as
// calendars are.
func TestApplyBudgets(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	do := func(stdin, want string, args ...string) {
		t.Helper()
		if _, stdout, stderr := callWith(t, stdin, as(t, s.URL, s.Token, "acme", args...)...); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q prints\n%s%s, without %q", args, stdout, stderr, want)
		}
	}
	const text = "budgets:\n    racks:\n        per: rack\n        max-unavailable: \"1\"\n"
	do(text, "budget racks: new\n  + per: rack\n  + max-unavailable: \"1\"\nWritten, in this order: budget racks.\n", "apply", "-f", "-")
	do("", text, "get")
	do("", text, "get", "budget/racks")
	do("", "NAME   PER   MAX-UNAVAILABLE\nracks  rack  1\n", "get", "budgets")
	do("budgets: {racks: {per: rack, max-unavailable: 1, prometheus: {url: http://prometheus:9090, query: up, above: 0}}}", "Written", "apply", "-f", "-")
	do("", "racks  rack  1                does not refuse\n", "get", "budgets")
	s.SetState("acme", v1.State{Situation: v1.Situation{BudgetRefusals: []v1.BudgetRefusal{{Budget: "racks", Reason: "the query returned no series"}}}})
	do("", "racks  rack  1                refuses: the query returned no series\n", "get", "budgets")
	do(strings.Replace(text, "1", "10%", 1)+"rollout: {}\n", "Written, in this order: budget racks, rollout.\n", "apply", "-f", "-")
	do("budgets: {racks: {per: rack}}", "standard input:1: budgets.racks.max-unavailable: it is missing; give max-unavailable or min-available", "apply", "-f", "-")
	do("budgets: {Racks: {max-unavailable: 1}}", `"Racks" is not the name of a disruption budget`, "apply", "-f", "-")
	do("budgets: {racks: null}", "budget racks: deleted", "apply", "-f", "-")
	do("", "tenant acme has no budget racks", "get", "budget/racks")
}

// TestApplyEnvironments checks that environments are written before the windows of the tenant, read,
// warned of and deleted as calendars are, and that one with hosts is deleted only by force.
func TestApplyEnvironments(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	do := func(stdin, want string, args ...string) {
		t.Helper()
		if _, stdout, stderr := callWith(t, stdin, as(t, s.URL, s.Token, "acme", args...)...); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q prints\n%s%s, without %q", args, stdout, stderr, want)
		}
	}
	const text = "environments:\n    basel:\n        match:\n            labels:\n                shop: basel\n        calendars:\n            - nights\n"
	const nights = "calendars: {nights: {kind: allow}}\n"
	s.SetHosts("acme", v1.Host{Hostname: "b1", Application: "app", Labels: map[string]string{"shop": "basel"}, Environment: "basel"})
	do(text+nights+"config: {worker-applications: [{name: app}]}\n", "environment basel: new\n  + match:", "apply", "-f", "-", "--dry-run")
	do(text+nights+"config: {worker-applications: [{name: app}]}\n", "Written, in this order: environment basel, config, calendar nights.", "apply", "-f", "-")
	do("", text, "get", "environment/basel")
	do("", "basel  1      own      tenant's", "get", "environments")
	do("", "nights:", "get")
	do("", text, "get")
	do("environments: {bern: {match: {labels: {shop: bern}}}}", "standard input:1: warning: environments.bern.match.labels.shop: no known host has \"bern\" as label shop", "apply", "-f", "-")
	do("environments: {default: {match: {labels: {shop: bern}}}}", `standard input:1: environments.default: "default" cannot be declared`, "apply", "-f", "-")
	do("environments: {bern: {}}", "standard input:1: environments.bern.match: it is missing", "apply", "-f", "-")
	do("environments: {bern: null}", "environment bern: deleted", "apply", "-f", "-")
	do("", "tenant acme has no environment bern", "get", "environment/bern")
	const inUse = "osupgrade-agent: nothing was written; the site refuses it:\nenvironment basel: environment basel is in use"
	do("environments: {basel: null}\nrollout: {}\n", inUse, "apply", "-f", "-")
	do("environments: {basel: null}\nrollout: {}\n", inUse, "apply", "-f", "-", "--dry-run")
	do("", "tenant acme has no rollout", "get", "rollout")
	do("", "environment basel is in use", "delete", "environment", "basel")
	do("", "Deleted environment basel of tenant acme.", "delete", "environment", "basel", "--force")
}

// TestApplyReleases checks that releases are written before what names them, read, withdrawn and deleted,
// and that one that differs is refused before anything is written.
func TestApplyReleases(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	do := func(stdin, want string, args ...string) {
		t.Helper()
		if _, stdout, stderr := callWith(t, stdin, as(t, s.URL, s.Token, "acme", args...)...); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q prints\n%s%s, without %q", args, stdout, stderr, want)
		}
	}
	const text = "releases:\n    nov:\n        version: \"2.1.0\"\n        data:\n            image: box<2>\n            slots:\n                - 1\n                - true\n"
	const names = "environments: {basel: {match: {roles: [edge]}, releases: {os: nov}}}\nconfig: {worker-applications: [{name: app}], releases: {os: nov}}\n"
	do(names, `releases.os: "nov" is no release of tenant acme; declare it first`, "apply", "-f", "-")
	do(text+names, "Written, in this order: release nov, environment basel, config.", "apply", "-f", "-")
	do(text+names, "Nothing to write: the site has it all.", "apply", "-f", "-")
	do("", strings.ReplaceAll(text, "box<2>", `"box<2>"`), "get", "release/nov")
	do("", "nov   2.1.0    the configuration, environment basel", "get", "releases")
	do(strings.Replace(text, "2.1.0", "2.1.1", 1)+"rollout: {}\n", "nothing was written; the site refuses it:\nrelease nov: version: it differs from that of release nov", "apply", "-f", "-")
	do("releases: {dec: {packages: {select: listed}}}", "standard input:1: releases.dec.packages.only: it is missing", "apply", "-f", "-")
	do("", "release nov is named by the configuration, environment basel; name another one there first", "delete", "release", "nov")
	do("", "--reason: it is missing; say why", "withdraw", "nov")
	do("", "--reason: it is given, and so is --undo", "withdraw", "nov", "--reason", "x", "--undo")
	do("", "Release nov is withdrawn by fakeapi: loses routes", "withdraw", "nov", "--reason", "loses routes")
	do("", "loses routes", "get", "releases")
	do(text, "release nov: unchanged", "apply", "-f", "-")
	do("environments: {bern: {match: {roles: [till]}, releases: {os: nov}}}", `releases.os: "nov" is withdrawn (loses routes)`, "apply", "-f", "-")
	do("", "Release nov may be installed again.", "withdraw", "nov", "--undo")
	do("", "nothing was withdrawn: tenant acme has no release dec; it has nov", "withdraw", "dec", "--reason", "x")
	do("environments: {basel: null}\nconfig: {worker-applications: []}\nreleases: {nov: null}", "Written, in this order: config, environment basel, release nov.", "apply", "-f", "-")
	do("", "Tenant acme has no releases.", "get", "releases")
}

// TestMoveHosts checks what move says, and what is wrong with its flags.
func TestMoveHosts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "b1", Application: "app", Environment: "basel"}, v1.Host{Hostname: "b2", Application: "app", Unplaced: true})
	do := func(want string, args ...string) {
		t.Helper()
		if _, stdout, stderr := callWith(t, "", as(t, s.URL, s.Token, "acme", args...)...); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q prints\n%s%s, without %q", args, stdout, stderr, want)
		}
	}
	do("name the --environment to which the host moves, or undo an earlier move with --auto", "move", "b1")
	do("leave out --environment, or --auto", "move", "b1", "--auto", "--environment", "bern")
	do(`host "b9" is not known`, "move", "b9", "--auto")
	do("HOST  ENVIRONMENT  APPLICATION", "hosts")
	do("No run upgrades 1 host that is in no environment, because several match. Change the match of one (osupgrade-agent edit environments), or move the host: osupgrade-agent move HOST --environment NAME", "hosts")
	do("none, because several match it: no run upgrades it; to move it: osupgrade-agent move b2 --environment NAME", "hosts", "b2")
	do("Host b2 is assigned to environment bern.\n", "move", "b2", "--environment", "bern")
	do("bern (assigned)", "hosts")
	do("Host b2 is in environment default, by what matches it.\n", "move", "b2", "--auto")
	do(`"environment": "bern"`, "move", "b2", "--environment", "bern", "-o", "json")
}

// TestMovedSentence checks what is said of a host that was moved.
func TestMovedSentence(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]v1.HostEnvironment{
		"Host b1 is in no environment, because several match it: no run upgrades it.":                                 {Hostname: "b1", Unplaced: true},
		"Host b1 is assigned to environment bern. Run 41 of basel still has it, so it moves when that run has ended.": {Hostname: "b1", Environment: "bern", Assigned: true, Run: 41, RunEnvironment: "basel"},
	} {
		if got := movedSentence(m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestApplyFiles checks folders, several files, and what is wrong with files.
func TestApplyFiles(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	dir := t.TempDir()
	file := writeIn(t, dir)
	if err := os.Mkdir(dir+"/empty", 0o700); err != nil {
		t.Fatal(err)
	}
	file("a.yaml", "config: {worker-applications: [{name: appliance}]}\n")
	file("b.json", `{"rollout": {}}`)
	file("c.txt", "no part of it")
	wrong := file("d.txt", "config:\n  maintenance-windows: all\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-f", dir, "--dry-run"}, exitOK, "rollout: new\n"},
		{[]string{"-f", dir + "/a.yaml", "-f", dir + "/b.json"}, exitOK, "Written, in this order: rollout, config.\n"},
		{[]string{"-f", dir, "-f", dir + "/a.yaml"}, exitUsage, "config: it is declared twice, here and at " + dir + "/a.yaml:1"},
		{[]string{"-f", wrong}, exitUsage, wrong + `:2: config.maintenance-windows: "all" is not a list`},
		{[]string{"-f", dir + "/empty"}, exitUsage, "has no .yaml, .yml or .json file"},
		{[]string{"-f", dir + "/none"}, exitUsage, "no such file"},
		{[]string{"-f", file("e.txt", "{}")}, exitUsage, "declares nothing; give at least one of config, rollout, calendars, environments, budgets, releases, policies, users, approles and webhooks"},
		{nil, exitUsage, "missing flags: --file"},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", append([]string{"apply"}, c.args...)...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%q: exit code %d:\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

// TestApplyIsRefused checks that the site's objections are heard before anything
// is written.
func TestApplyIsRefused(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.AcceptRollout(func(string, v1.Rollout) []v1.Error { return []v1.Error{{Message: "max-failures: not here"}} })
	code, stdout, stderr := callWith(t, declaredText, as(t, s.URL, s.Token, "acme", "apply", "-f", "-")...)
	if code != exitFailed || !strings.Contains(stderr, "nothing was written; the site refuses it:\nrollout: max-failures: not here") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if _, _, there := s.Config("acme"); there {
		t.Error("the configuration was written")
	}
}

// TestApplyDoesNotOverwrite checks that a write of somebody else, between the
// read and the write, survives, and that the operator learns what was written.
func TestApplyDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]*v1.OSUpgrade{
		"it is new": nil, "it has changed": {WorkerApplications: []v1.WorkerApplication{{Name: "before"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			if first != nil {
				s.SetConfig("acme", *first)
			}
			theirs := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "theirs"}}}
			// The rollout is written before the configuration.
			s.Inject("PUT", "/rollout", fakeapi.First(func() {}), fakeapi.First(func() { s.SetConfig("acme", theirs) }))
			code, stdout, stderr := callWith(t, declaredText, as(t, s.URL, s.Token, "acme", "apply", "-f", "-")...)
			for _, part := range []string{
				"cannot " + map[bool]string{true: "create", false: "change"}[first == nil] + " config: it changed meanwhile: ",
				"\nwritten: calendar holidays, rollout\nnot written: config\n",
			} {
				if code != exitFailed || !strings.Contains(stderr, part) {
					t.Errorf("exit code %d, and no %q:\n%s%s", code, part, stdout, stderr)
				}
			}
			if now, _, _ := s.Config("acme"); len(now.WorkerApplications) != 1 || now.WorkerApplications[0].Name != "theirs" {
				t.Errorf("the configuration is %+v", now)
			}
		})
	}
}

// TestValidate checks that files are judged without a site, and with one.
func TestValidate(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Accept(func(string, v1.OSUpgrade) []v1.Error { return []v1.Error{{Message: "worker-applications: unknown"}} })
	for _, c := range []struct {
		text string
		args []string
		code int
		want string
	}{
		{declaredText, []string{"validate", "-f", "-"}, exitOK, "Valid: calendar holidays, rollout, config.\n"},
		{"rollout: {splay: x}\n", []string{"validate", "-f", "-"}, exitUsage, `standard input:1: rollout.splay: "x"`},
		{"rollout: {}\n", as(t, s.URL, s.Token, "acme", "validate", "-f", "-", "--server"), exitOK, "Valid, also for the site: rollout.\n"},
		{declaredText, as(t, s.URL, s.Token, "acme", "validate", "-f", "-", "--server"), exitFailed, "the site refuses it:\nconfig: worker-applications: unknown"},
		{declaredText, []string{"validate", "-f", "-", "--server"}, exitUsage, "--server needs a tenant"},
	} {
		code, stdout, stderr := callWith(t, c.text, c.args...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%q: exit code %d:\n%s%s", c.args, code, stdout, stderr)
		}
	}
	if _, _, there := s.Rollout("acme"); there {
		t.Error("validate has written")
	}
}

// TestEdit checks the ways that an edit ends: a change is written, an invalid
// text is opened again with the reason, what somebody else wrote survives.
func TestEdit(t *testing.T) {
	s := fakeapi.New(t)
	s.SetConfig("acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "one"}}})
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("VISUAL", "")
	for _, c := range []struct {
		name, editor string
		before       func()
		code         int
		want         string
		kept         bool
	}{
		{"unchanged", "true", nil, exitOK, "Nothing was changed.", false},
		{"emptied", "truncate -s 0", nil, exitOK, "Nothing was changed.", false},
		{"changed", "sed -i 's/name: one/name: two/'", nil, exitOK, "Written, in this order: config.", false},
		{"another is added", `sh -c 'echo "rollout: {}" >>"$0"'`, nil, exitOK, "rollout: new\n", false},
		{"invalid, then right", `sh -c 'if grep -q "config.worker-applications.0..label: unknown" "$0"; then sed -i s/label/name/ "$0"; else sed -i "s/name: two/label: three/" "$0"; fi'`, nil, exitOK, "name: three", false},
		{"invalid for good", "sed -i 's/name: three/name: T/'", nil, exitFailed, "; correct it, and osupgrade-agent apply -f", true},
		{"no editor", "/nonexistent/editor", nil, exitFailed, "set EDITOR to another one", false},
		{"editor given up", `sh -c 'sed -i s/three/four/ "$0"; exit 1'`, nil, exitFailed, "; osupgrade-agent apply -f", true},
		{"meanwhile another", `sh -c 'sed -i s/three/four/ "$0"; touch "` + temp + `/edited"'`, func() {
			s.Inject("PUT", "/os-upgrade", fakeapi.First(func() {}), fakeapi.First(func() { s.SetConfig("acme", v1.OSUpgrade{}) }))
		}, exitFailed, "cannot change config: it changed meanwhile", true},
	} {
		if c.before != nil {
			c.before()
		}
		t.Setenv("EDITOR", c.editor)
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "edit")...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d:\n%s%s", c.name, code, stdout, stderr)
		}
		kept := regexp.MustCompile(`The text is kept in (\S+);`).FindStringSubmatch(stderr)
		if (kept != nil) != c.kept {
			t.Errorf("%s: a text is kept: %q", c.name, kept)
		}
		if kept != nil {
			if _, err := os.Stat(kept[1]); err != nil || os.Remove(kept[1]) != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	if left, _ := filepath.Glob(temp + "/osupgrade-edit-*"); len(left) != 0 {
		t.Errorf("these files are left: %q", left)
	}
}

// TestEditSaysWhere checks that the line of a problem is that of the file which
// is kept.
func TestEditSaysWhere(t *testing.T) {
	s := fakeapi.New(t)
	s.SetRollout("acme", v1.Rollout{MaxFailures: "3"})
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "sed -i 's/^    max-failures:/    max-failrues:/'")
	_, _, stderr := call(t, as(t, s.URL, s.Token, "acme", "edit", "rollout")...)
	found := regexp.MustCompile(`edit-\d+\.yaml:(\d+): rollout\.max-failrues`).FindStringSubmatch(stderr)
	kept := regexp.MustCompile(`The text is kept in (\S+);`).FindStringSubmatch(stderr)
	if found == nil || kept == nil {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(kept[1])
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "    max-failrues") != (found[1] == strconv.Itoa(i+1)) {
			t.Errorf("the problem is told of line %s of\n%s", found[1], text)
		}
	}
}

// TestApplyFrozen: while a run freezes changes, apply says which run that is, and not that somebody else
// has changed something; what files declare is validated as ever.
func TestApplyFrozen(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.FreezeChanges("acme", 41)
	const file = "rollout: {splay: 1m}\n"
	if code, stdout, stderr := callWith(t, file, as(t, s.URL, s.Token, "acme", "validate", "--server", "-f", "-")...); code != exitOK {
		t.Errorf("validate: exit code %d:\n%s%s", code, stdout, stderr)
	}
	code, _, stderr := callWith(t, file, as(t, s.URL, s.Token, "acme", "apply", "-f", "-")...)
	if code == exitOK || !strings.Contains(stderr, "cannot create rollout: run 41 freezes changes of the configuration until it ends (PUT ") || !strings.Contains(stderr, "written: nothing\nnot written: rollout\nRun the command again when the run has ended: it writes what is left") {
		t.Errorf("apply: exit code %d:\n%s", code, stderr)
	}
}
