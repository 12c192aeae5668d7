package intent

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const whole = `config:
  worker-applications: [{name: appliance}]
  maintenance-windows:
    - {days-of-week: Friday, start-time: 01:00, timezone: UTC, duration: 4h}
---
# The second document.
rollout: {max-failures: 2}
calendars:
  holidays:
    kind: freeze
    events: [{start: 2026-12-24, all-day: true}]
  old: null
`

func TestDecode(t *testing.T) {
	t.Parallel()
	got, err := Decode(Source{Name: "-", Text: []byte(whole)})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, key := range got.Keys() {
		keys = append(keys, key.String())
	}
	if want := []string{"calendar holidays", "calendar old", "config", "rollout"}; !slices.Equal(keys, want) {
		t.Errorf("it declares %q, not %q", keys, want)
	}
	if !got.Deletions[Key{Kind: Calendar, Name: "old"}] || len(got.Deletions) != 1 {
		t.Errorf("it deletes %v", got.Deletions)
	}
	if got.Config.MaintenanceWindows[0].StartTime != "01:00" || got.Rollout.MaxFailures != "2" || got.Calendars["holidays"].Kind != "freeze" {
		t.Errorf("it is %+v", got)
	}
}

func TestDecodeTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ file, text, want string }{
		"a value":           {"a.yaml", "---\n---\nconfig:\n  maintenance-windows:\n    - days-of-week: Frday\n      start-time: 01:00\n      duration: 4h\n", `a.yaml:5: config.maintenance-windows[0].days-of-week: "Frday"`},
		"an unknown key":    {"a.yaml", "\nworker-applications: []\n", "a.yaml:2: worker-applications: unknown key; use approles, budgets, calendars, config, environments, policies, releases, rollout, users, webhooks"},
		"a nested key":      {"a.yaml", "rollout:\n  splay: 1s\n  stagse: []\n", "a.yaml:3: rollout.stagse: unknown key; did you mean stages?"},
		"the type":          {"a.yaml", "config: all\n", `a.yaml:1: config: "all" is not an object`},
		"a calendar":        {"a.yaml", "calendars:\n  x: {kind: frieze}\n", `a.yaml:2: calendars.x.kind: "frieze" is not a kind of calendar; use allow or freeze`},
		"a calendar's name": {"a.yaml", "calendars:\n  Xmas: {kind: freeze}\n", `a.yaml:2: calendars.Xmas: "Xmas" is not the name of a calendar`},
		"no document":       {"a.yaml", "# nothing\n", "a.yaml: the document is empty; write an object"},
		"JSON":              {"a.json", "{\"config\":\n{\"a\": 1}}", "a.json:2: config.a: unknown key"},
		"JSON by its look":  {"-", `{"config": {,}}`, "-: cannot read JSON: line 1, column 13"},
		"twice":             {"a.yaml", "config: {}\n---\nconfig: {worker-applications: []}\n", "a.yaml:3: config: it is declared twice, here and at a.yaml:1; declare it once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Decode(Source{Name: row.file, Text: []byte(row.text)}); err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("got %v; want %s", err, row.want)
			}
		})
	}
}

// TestRoundTrip checks that what is written is read back as the same.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	first, err := Decode(Source{Name: "-", Text: []byte(whole)})
	if err != nil {
		t.Fatal(err)
	}
	for _, contentType := range []string{document.JSON, document.YAML} {
		text, err := first.Encode(contentType)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(Source{Name: "-", Text: text})
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		for _, s := range Compare(first, again) {
			if s.Action != Keep {
				t.Errorf("%s differs:\n%s", s.Key, s.Diff)
			}
		}
	}
}

// TestOrder checks that what keeps runs from being opened is written before what
// may open one.
func TestOrder(t *testing.T) {
	t.Parallel()
	allow, freeze := v1.Calendar{Kind: "allow"}, v1.Calendar{Kind: "freeze"}
	del := func(name string) map[Key]bool { return map[Key]bool{{Kind: Calendar, Name: name}: true} }
	has := Intent{Calendars: map[string]v1.Calendar{
		"b-turns": allow, "c-turns": freeze, "d-goes": allow, "same": allow,
	}}
	want := Intent{
		Config: &v1.OSUpgrade{}, Rollout: &v1.Rollout{},
		Calendars: map[string]v1.Calendar{"a-new": allow, "b-turns": freeze, "c-turns": allow, "e-new": freeze, "same": allow},
		Deletions: del("d-goes"),
	}
	var got []string
	for _, s := range Compare(has, want) {
		got = append(got, string(s.Action)+" "+s.Key.String())
	}
	if want := []string{
		"change calendar b-turns", "delete calendar d-goes", "create calendar e-new", "create rollout", "create config",
		"create calendar a-new", "change calendar c-turns", "keep calendar same",
	}; !slices.Equal(got, want) {
		t.Errorf("the order is %q,\nnot %q", got, want)
	}
	if changes := Compare(Intent{Calendars: map[string]v1.Calendar{"x": freeze}}, Intent{Config: &v1.OSUpgrade{}, Deletions: del("x")}); changes[1].Key.Name != "x" {
		t.Errorf("a freeze is deleted before the configuration is written: %+v", changes)
	}
	if s := Compare(Intent{}, Intent{Deletions: del("none")}); s[0].Action != Keep {
		t.Errorf("what is not there is deleted: %+v", s)
	}
}

// TestOrder_releases checks that a release is there before what names it, and goes after it.
func TestOrder_releases(t *testing.T) {
	t.Parallel()
	names := func(name string) v1.Environment {
		return v1.Environment{Match: v1.Match{Roles: []string{"edge"}}, Target: release.Target{Releases: map[string]string{release.OS: name}}}
	}
	oct, nov := v1.Release{Data: []byte("1")}, v1.Release{Data: []byte("2")}
	withdrawn := oct
	withdrawn.Withdrawn = &release.Withdrawn{Reason: "bad"}
	has := Intent{Environments: map[string]v1.Environment{"basel": names("oct")}, Releases: map[string]v1.Release{"oct": oct, "sep": withdrawn}}
	want := Intent{
		Environments: map[string]v1.Environment{"basel": names("nov")}, Releases: map[string]v1.Release{"nov": nov, "sep": oct},
		Config: &v1.OSUpgrade{}, Deletions: map[Key]bool{{Kind: Release, Name: "oct"}: true},
	}
	var got []string
	for _, s := range Compare(has, want) {
		got = append(got, string(s.Action)+" "+s.Key.String())
	}
	// A text without the withdrawal leaves it as it is.
	if want := []string{"create release nov", "keep release sep", "change environment basel", "create config", "delete release oct"}; !slices.Equal(got, want) {
		t.Errorf("the order is %q,\nnot %q", got, want)
	}
}

// TestDiffHasBothTexts checks that a diff shows each changed line, with its mark,
// and no other mark.
func TestDiffHasBothTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12)
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		var from, to []string
		for _, line := range edits(before, after) {
			if line[0] != '+' {
				from = append(from, line[2:])
			}
			if line[0] != '-' {
				to = append(to, line[2:])
			}
		}
		if !slices.Equal(from, before) || !slices.Equal(to, after) {
			t.Fatalf("%q to %q is shown as %q", before, after, edits(before, after))
		}
	})
}

func TestDiff(t *testing.T) {
	t.Parallel()
	before, after := splitLines("1\n2\n3\n4\n5\n6\n7\n8\n9\n10"), splitLines("1\n2\n3\n4\n5\nsix\n7\n8\n9\n10")
	if got, want := diff(before, after), "  ...\n  3\n  4\n  5\n- 6\n+ six\n  7\n  8\n  9\n  ...\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := diff(nil, nil); got != "" {
		t.Errorf("no change is shown as %q", got)
	}
}
