package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// pty opens a terminal of 60 columns.
func pty(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = side.Close() })
	if err := unix.IoctlSetWinsize(int(side.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60}); err != nil {
		t.Fatal(err)
	}
	return side
}

// TestTerminal checks when there is colour and a bar: on a terminal, unless NO_COLOR or
// TERM say otherwise, and never in a pipe or a file.
func TestTerminal(t *testing.T) { //nolint:paralleltest // the environment is one for all
	side := pty(t)
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, c := range []struct {
		name, noColor, term string
		out                 *os.File
		colour, live        bool
	}{
		{"a terminal", "", "xterm", side, true, true},
		{"NO_COLOR", "1", "xterm", side, false, true},
		{"TERM=dumb", "", "dumb", side, false, false},
		{"a file", "", "xterm", file, false, false},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if to := newTerminal(c.out); to.colour != c.colour || to.live != c.live || c.live && to.width != 60 {
			t.Errorf("%s: %+v", c.name, to)
		}
	}
	if to := newTerminal(&bytes.Buffer{}); to.colour || to.live {
		t.Errorf("a buffer: %+v", to)
	}
}

// TestBar checks that lines appear above the bar, which is in the last line, never
// wraps, and is gone at the end.
func TestBar(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	to := &terminal{out: &out, live: true, width: 20}
	to.line("begun")
	to.setBar("run 7 [####....] 1 of 2 hosts upgraded")
	to.line("h01  upgraded")
	to.setBar("run 7 [########] 2 of 2 hosts upgraded")
	to.setBar("")
	to.line("ended")
	want := "begun\n" + clearLine + "run 7 [####....] 1 " + clearLine + "h01  upgraded\nrun 7 [####....] 1 " +
		clearLine + "run 7 [########] 2 " + clearLine + "ended\n"
	if got := out.String(); got != want {
		t.Errorf("printed is\n%q, not\n%q", got, want)
	}
	for _, c := range []struct {
		upgraded, failed, all int
		want                  string
	}{
		{0, 0, 0, ""},
		{0, 0, 3, "[........................]"},
		{1, 0, 3, "[########................]"},
		{9999, 0, 10000, "[#######################.]"},
		{9999, 1, 10000, "[#######################x]"},
		{10000, 0, 10000, "[########################]"},
		{0, 3, 3, "[xxxxxxxxxxxxxxxxxxxxxxxx]"},
	} {
		if got := progressBar(c.upgraded, c.failed, c.all); got != c.want {
			t.Errorf("%d and %d of %d: %s, not %s", c.upgraded, c.failed, c.all, got, c.want)
		}
	}
}

// TestColour checks that a cell in colour takes as much room as one without.
func TestColour(t *testing.T) {
	t.Parallel()
	var tb table
	tb.add("HOST", "STATUS", "EMPTY", "NOTE")
	tb.addIn(map[int]string{1: red}, "h01", "failed", "", "no space")
	tb.add("h02", "upgraded", "", "")
	for colour, want := range map[bool]string{
		false: "HOST  STATUS    NOTE\nh01   failed    no space\nh02   upgraded\n",
		true:  "HOST  STATUS    NOTE\nh01   \x1b[31mfailed\x1b[0m    no space\nh02   upgraded\n",
	} {
		var out bytes.Buffer
		if tb.print(&terminal{out: &out, colour: colour, width: 80}); out.String() != want {
			t.Errorf("with colour %t printed is\n%q, not\n%q", colour, out.String(), want)
		}
	}
}

// TestManyHosts checks that of many hosts those are shown that are unhealthy, and of
// these the first, unless more are asked for.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	fleet := func(sick int) v1.Run {
		r := v1.Run{ID: 7, Phase: "upgrading"}
		for n := range 300 {
			h := v1.RunHost{Hostname: fmt.Sprintf("h%03d", n), Stage: "all", Status: "upgraded"}
			if n%2 == 1 && n/2 < sick {
				h.Status, h.Error = "failed", "no space"
			}
			r.Hosts = append(r.Hosts, h)
		}
		return r
	}
	for _, c := range []struct {
		flags hostFlags
		sick  int
		lines int
		last  string
	}{
		{hostFlags{}, 0, 2, "300 healthy hosts not shown; --all shows them."},
		{hostFlags{}, 2, 5, "298 healthy hosts not shown; --all shows them."},
		{hostFlags{}, 30, 23, "10 more unhealthy hosts; --unhealthy shows them, --all shows all 300 hosts."},
		{hostFlags{Unhealthy: true}, 30, 32, "h059  all    failed  no space"},
		{hostFlags{Unhealthy: true}, 0, 2, "No host is unhealthy."},
		{hostFlags{All: true}, 30, 302, "h299  all    upgraded"},
	} {
		var out bytes.Buffer
		c.flags.showHosts(&terminal{out: &out, width: 80}, timeFormat{zone: time.UTC}, fleet(c.sick))
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		if len(lines) != c.lines || lines[len(lines)-1] != c.last {
			t.Errorf("%+v of %d: %d lines, the last one %q", c.flags, c.sick, len(lines), lines[len(lines)-1])
		}
	}
}

// TestClock checks that times in texts of the site are shown with date and zone, and that
// what is no time, or the words of others, is left alone.
func TestClock(t *testing.T) {
	t.Parallel()
	at := timeFlags{}.format()
	for text, want := range map[string]string{
		"until 2026-11-21T00:00:00Z, or 2026-07-01T12:00:00Z": "until Sat 2026-11-21 01:00:00 CET, or Wed 2026-07-01 14:00:00 CEST",
		"on 2026-02-31T00:00:00Z":                             "on 2026-02-31T00:00:00Z",
		"by ann":                                              "by ann",
		"paused since 2026-11-21T00:00:00Z: until 2026-11-21T04:00:00Z": "paused since Sat 2026-11-21 01:00:00 CET: until 2026-11-21T04:00:00Z",
		`busy: write {"until":"2026-01-31T04:00:00Z"}`:                  `busy: write {"until":"2026-01-31T04:00:00Z"}`,
	} {
		if got := at.text(text); got != want {
			t.Errorf("%q is shown as %q, not %q", text, got, want)
		}
	}
	if got := (timeFlags{UTC: true}).format().at(time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)); got != "Sat 2026-11-21 01:00:00 UTC" {
		t.Errorf("it is %s", got)
	}
}
