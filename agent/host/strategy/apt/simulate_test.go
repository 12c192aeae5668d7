package apt

import (
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func TestParseSimulation(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		changes, kept []string
	}{
		"simulate-upgrade":    {[]string{"appliance 1.0 → 2.0", "appliance-broken 1.0 → 2.0", "appliance-held 1.0 → 2.0", "appliance-kernel 1.0 → 2.0"}, nil},
		"simulate-held":       {[]string{"appliance 1.0 → 2.0", "appliance-broken 1.0 → 2.0", "appliance-kernel 1.0 → 2.0"}, []string{"appliance-held"}},
		"sim-removal-upgrade": {[]string{"appliance 1.0 → 2.0", "appliance-broken 1.0 → 2.0", "appliance-held 1.0 → 2.0", "appliance-kernel 1.0 → 2.0"}, []string{"appliance-client", "appliance-needy"}},
		"sim-removal-dist": {[]string{
			"appliance-old 1.0 (removed)", "appliance 1.0 → 2.0", "appliance-broken 1.0 → 2.0", "appliance-lib 2.0 (new)",
			"appliance-client 1.0 → 2.0", "appliance-held 1.0 → 2.0", "appliance-kernel 1.0 → 2.0",
		}, []string{"appliance-needy"}},
		"empty-lists": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, printed := recorded(t, name)
			got, err := parseSimulation(printed)
			if err != nil {
				t.Fatal(err)
			}
			if texts := message.ChangeTexts(got.plain()); !slices.Equal(texts, want.changes) || !slices.Equal(got.kept, want.kept) {
				t.Errorf("got %q, kept %q", texts, got.kept)
			}
		})
	}
}

// TestParseSimulationOfAnOldHost reads the whole upgrade of a Debian 12 with 116
// packages behind.
func TestParseSimulationOfAnOldHost(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, "simulate-bookworm")
	got, err := parseSimulation(printed)
	if err != nil || len(got.changes) != 116 {
		t.Fatalf("got %d changes, %v", len(got.changes), err)
	}
	security := 0
	for _, c := range got.changes {
		if fromSecurity(c.releases) {
			security++
		}
		if c.From == "" || c.To == "" || c.releases == "" {
			t.Errorf("%+v lacks something", c)
		}
	}
	// Each of the others is printed twice, as Inst and as Conf.
	if want := 116 - strings.Count(printed, " Debian:12.15/oldstable [")/2; security != want {
		t.Errorf("%d are of security updates, want %d", security, want)
	}
	// An output that was cut anywhere is no shorter plan.
	for at := strings.Index(printed, "116 upgraded") + 100; at < strings.Index(printed, "\nConf "); at += 97 {
		if cut, err := parseSimulation(printed[:at]); err == nil {
			t.Fatalf("cut at byte %d it has %d changes and no error", at, len(cut.changes))
		}
	}
}

func TestParseSimulationLines(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lines, want string
	}{
		"another architecture":  {"Inst libc6:i386 [2.36-9] (2.36-10 Debian:12/stable [i386]) [libc6:amd64 ]\n1 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n", "libc6:i386 2.36-9 → 2.36-10"},
		"no release":            {"Inst local (1.0 [all])\n0 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.\n", "local 1.0 (new)"},
		"a downgrade":           {"Inst nginx [1.24] (1.22 Debian:12/stable [amd64])\n0 upgraded, 0 newly installed, 1 downgraded, 0 to remove and 0 not upgraded.\n", "nginx 1.24 → 1.22"},
		"a purge":               {"Purg old [1.0]\n0 upgraded, 0 newly installed, 1 to remove and 0 not upgraded.\n", "old 1.0 (removed)"},
		"many releases":         {"Inst a [1] (2 Debian:12.11/stable, Debian-Security:12/stable-security [amd64]) [] []\n1 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n", "a 1 → 2"},
		"a reinstallation":      {"Inst a [1] (1 Debian:12/stable [amd64])\n0 upgraded, 0 newly installed, 1 reinstalled, 0 to remove and 0 not upgraded.\n", ""},
		"what a hook prints":    {"Hello\n0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n  not a name\n", ""},
		"Windows' ends of line": {"Inst a [1] (2 x:1/y [all])\r\n1 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\r\n", "a 1 → 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseSimulation(row.lines)
			if text := strings.Join(message.ChangeTexts(got.plain()), ", "); err != nil || text != row.want {
				t.Errorf("got %q, %v; want %q", text, err, row.want)
			}
		})
	}
}

func TestParseSimulationRefuses(t *testing.T) {
	t.Parallel()
	const summary = "1 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n"
	for name, row := range map[string]struct {
		printed, want string
	}{
		"nothing at all":             {"", "printed no summary"},
		"an Inst without a version":  {"Inst appliance\n" + summary, `"Inst appliance", which is not a change`},
		"an Inst with half a tail":   {"Inst a [1] (2 Debian:12\n" + summary, "which is not a change"},
		"a Remv without a version":   {"Remv appliance\n" + summary, "which is not a change"},
		"a Conf of nothing":          {"Conf\n" + summary, "which is not a configuration"},
		"fewer than the summary has": {summary, "printed 0 packages to install and 0 to remove, and its summary says 1 and 0"},
		"more than the summary has":  {"Inst a (1 [all])\nRemv b [1]\n" + summary, "printed 1 packages to install and 1 to remove, and its summary says 1 and 0"},
		"a package twice":            {"Inst a (1 [all])\nInst a (2 [all])\n" + summary, "apt-get changes a twice"},
		"two summaries":              {summary + summary, "two summaries"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := parseSimulation(row.printed); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, row.want)
			}
		})
	}
}

// FuzzParseSimulation holds that what is read is a plan that the worker accepts: each
// package once, and as many as the summary says.
func FuzzParseSimulation(f *testing.F) {
	for _, name := range []string{"simulate-upgrade", "simulate-held", "sim-removal-dist", "empty-lists"} {
		_, printed := recorded(f, name)
		f.Add(printed)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		got, err := parseSimulation(printed)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, c := range got.changes {
			if c.Name == "" || c.From == c.To || seen[c.Name] || strings.ContainsAny(c.Name+c.From+c.To, " \n") {
				t.Fatalf("%+v of %q", c, printed)
			}
			seen[c.Name] = true
		}
		if len(got.changes) > strings.Count(printed, "Inst ")+strings.Count(printed, "Remv ")+strings.Count(printed, "Purg ") {
			t.Fatalf("%d changes of %q", len(got.changes), printed)
		}
	})
}

func TestParseStatusLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]statusLine{
		"pmstatus:appliance:5.8824:Unpacking appliance (amd64)":         {"pmstatus", "appliance", 5, "Unpacking appliance (amd64)"},
		"pmstatus:libc6:i386:20.0000:Preparing libc6 (i386)":            {"pmstatus", "libc6:i386", 20, "Preparing libc6 (i386)"},
		"dlstatus:2:84.9826:Retrieving file 2 of 4":                     {"dlstatus", "2", 84, "Retrieving file 2 of 4"},
		"pmerror:appliance-broken:64.7059:installed script: status 3":   {"pmerror", "appliance-broken", 64, "installed script: status 3"},
		"pmerror:/var/cache/apt/archives/a_1%3a2_all.deb:1.0:no: space": {"pmerror", "/var/cache/apt/archives/a_1%3a2_all.deb", 1, "no: space"},
		"pmstatus:a:250.0000:x":                                         {"pmstatus", "a", 100, "x"},
		"pmstatus:a:-1.0:x":                                             {"pmstatus", "a", 0, "x"},
	} {
		if got, ok := parseStatusLine(line); !ok || got != want {
			t.Errorf("%q is %+v, %t; want %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "pmstatus", "pmstatus:a:b", "other:a:1.0:b", "pmstatus:a:NaN.0:b", "pmstatus:a:100:b"} {
		if got, ok := parseStatusLine(line); ok {
			t.Errorf("%q is %+v", line, got)
		}
	}
}

// TestStatusLinesOfARealApt reads what a real apt wrote: each line, and percentages
// that never fall within the installation.
func TestStatusLinesOfARealApt(t *testing.T) {
	t.Parallel()
	last, lines := -1, 0
	for line := range strings.Lines(statusOf(t)) {
		status, ok := parseStatusLine(line)
		if !ok {
			t.Errorf("cannot read %q", line)
		}
		if status.kind == "dlstatus" {
			continue
		}
		if lines++; status.percent < last {
			t.Errorf("%q falls below %d", line, last)
		}
		last = status.percent
	}
	if lines < 20 {
		t.Errorf("%d lines", lines)
	}
}

func FuzzParseStatusLine(f *testing.F) {
	for line := range strings.Lines(statusOf(f)) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if status, ok := parseStatusLine(line); ok && (status.percent < 0 || status.percent > 100 || status.of+status.text == line) {
			t.Fatalf("%q is %+v", line, status)
		}
	})
}
