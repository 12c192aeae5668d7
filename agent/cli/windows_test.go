package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// planner is an API with a weekly window, a release and a freeze.
func planner(t *testing.T) *fakeapi.Server {
	t.Helper()
	s := fakeapi.New(t)
	s.SetConfig("acme", v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{
		{DaysOfWeek: "Friday", StartTime: "22:00", Timezone: "UTC", Duration: "4h"},
	}})
	s.SetCalendar("acme", "release", v1.Calendar{Kind: "allow", Events: []v1.Event{
		{Summary: "the\nbig one", Start: "2027-01-12T18:00", Duration: "2h", Timezone: "UTC"},
	}})
	s.SetCalendar("acme", "audit", v1.Calendar{Kind: "freeze", Events: []v1.Event{
		{Summary: "audit", Start: "2027-01-16", End: "2027-01-25", AllDay: true},
	}})
	return s
}

func windowsOf(t *testing.T, s *fakeapi.Server, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return call(t, as(t, s.URL, s.Token, "acme", append([]string{"windows"}, args...)...)...)
}

func TestWindowsTable(t *testing.T) {
	t.Parallel()
	s := planner(t)
	s.SetNow(time.Date(2027, 1, 12, 12, 0, 0, 0, time.UTC))
	code, stdout, stderr := windowsOf(t, s, "--count", "3", "--timezone", "Europe/Stockholm")
	want := `OPENS                        CLOSES                       LENGTH  OPENED BY                       CUT BY                  NOTE
Tue 2027-01-12 19:00:00 CET  Tue 2027-01-12 21:00:00 CET  2h      calendar release (the big one)  -                       -
Fri 2027-01-15 23:00:00 CET  Sat 2027-01-16 01:00:00 CET  2h      maintenance window 1            calendar audit (audit)  -
Fri 2027-01-22 23:00:00 CET  Sat 2027-01-23 03:00:00 CET  -       maintenance window 1            calendar audit (audit)  frozen: it does not open
Fri 2027-01-29 23:00:00 CET  Sat 2027-01-30 03:00:00 CET  4h      maintenance window 1            -                       -
`
	if code != exitOK || stdout != want {
		t.Errorf("exit code %d:\n%s%s; want\n%s", code, stdout, stderr, want)
	}
	code, stdout, stderr = windowsOf(t, s, "--utc", "--from", "2027-01-16", "--to", "2027-01-25T00:00:00Z")
	if code != exitOK || !strings.Contains(stdout, "Fri 2027-01-22 22:00:00 UTC  Sat 2027-01-23 02:00:00 UTC  -       maintenance window 1  calendar audit (audit)  frozen: it does not open\n") || strings.Count(stdout, "\n") != 2 {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = windowsOf(t, s, "--count=1", "--output", "json")
	if code != exitOK || !strings.Contains(stdout, `"start": "2027-01-12T18:00:00Z"`) || strings.Count(stdout, `"length"`) != 1 {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestWindowsNotes checks what a change of the clock does to the note.
func TestWindowsNotes(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]v1.Window{
		"":                            {},
		"the clock changes meanwhile": {EndMoved: true},
		"opens late: the clock skips its time, the clock changes meanwhile": {StartMoved: true, EndMoved: true},
	} {
		if got := clockNote(w); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
	if got, want := joined(make([]v1.WindowCut, 6)), "calendar , calendar , calendar , calendar  and 2 more"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestWindowsPicture(t *testing.T) {
	t.Parallel()
	s := planner(t)
	code, stdout, stderr := windowsOf(t, s, "--month", "--from", "2027-01-05", "--to", "2027-02-01", "--timezone", "Europe/Stockholm")
	want := `January 2027
 Mo  Tu  We  Th  Fr  Sa  Su
                  1*  2*  3
  4   5   6   7   8*  9* 10
 11  12* 13  14  15* 16# 17x
 18x 19x 20x 21x 22x 23x 24x
 25  26  27  28  29* 30* 31

* a window is open   x frozen   # open in part, frozen in part
Days are those of Europe/Stockholm.
`
	if code != exitOK || stdout != want {
		t.Errorf("exit code %d:\n%s%s\nwant\n%s", code, stdout, stderr, want)
	}
}

// TestPictureOfEnvironment checks that the windows of an environment are drawn, with the freezes of the
// tenant.
func TestPictureOfEnvironment(t *testing.T) {
	t.Parallel()
	s := planner(t)
	s.SetEnvironment("acme", "basel", v1.Environment{Match: v1.Match{Hosts: []string{"b1"}}, MaintenanceWindows: []v1.MaintenanceWindow{
		{DaysOfWeek: "Monday", StartTime: "02:00", Timezone: "UTC", Duration: "4h"},
	}})
	code, stdout, stderr := windowsOf(t, s, "--month", "--environment", "basel", "--from", "2027-01-05", "--to", "2027-02-01", "--utc")
	want := `January 2027
 Mo  Tu  We  Th  Fr  Sa  Su
                  1   2   3
  4*  5   6   7   8   9  10
 11* 12* 13  14  15  16x 17x
 18x 19x 20x 21x 22x 23x 24x
 25* 26  27  28  29  30  31

* a window is open   x frozen   # open in part, frozen in part
Days are those of UTC.
Windows are those of environment basel.
`
	if code != exitOK || stdout != want {
		t.Errorf("exit code %d:\n%s%s\nwant\n%s", code, stdout, stderr, want)
	}
}

// TestPictureOfSkipped checks that a day whose only window is skipped is none on which one is open.
func TestPictureOfSkipped(t *testing.T) {
	t.Parallel()
	day := time.Date(2027, 2, 10, 0, 0, 0, 0, time.UTC)
	p, err := newPicture(v1.WindowFilter{From: day, To: day.AddDate(0, 0, 9)}, day, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	p.mark(day, day.Add(72*time.Hour), skippedDay)
	p.mark(day.Add(24*time.Hour), day.Add(25*time.Hour), open)
	p.mark(day.Add(48*time.Hour), day.Add(49*time.Hour), frozen)
	if got := p.draw(false); !strings.Contains(got, " 10- 11* 12x 13 ") || !strings.Contains(got, "- a window is skipped\n") {
		t.Errorf("got\n%s", got)
	}
}

// TestPictureHasWholeMonths checks which months a picture shows by default, and
// that a zone's own months are meant.
func TestPictureHasWholeMonths(t *testing.T) {
	t.Parallel()
	kiritimati, err := time.LoadLocation("Pacific/Kiritimati") // 14 hours ahead.
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		filter   v1.WindowFilter
		site     *time.Location
		from, to string
	}{
		"by default":         {v1.WindowFilter{}, time.UTC, "2026-11-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		"where it is later":  {v1.WindowFilter{}, kiritimati, "2026-11-30T10:00:00Z", "2027-01-31T10:00:00Z"},
		"to a month's end":   {v1.WindowFilter{To: time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)}, time.UTC, "2026-11-01T00:00:00Z", "2027-03-01T00:00:00Z"},
		"from a month later": {v1.WindowFilter{From: now.AddDate(0, 1, 0)}, time.UTC, "2026-12-01T00:00:00Z", "2027-02-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := newPicture(row.filter, now, row.site)
			if err != nil {
				t.Fatal(err)
			}
			if from, to := p.from().UTC().Format(time.RFC3339), p.to().UTC().Format(time.RFC3339); from != row.from || to != row.to {
				t.Errorf("%s to %s; want %s to %s", from, to, row.from, row.to)
			}
		})
	}
}

// TestPictureInColour checks that each kind of day is told apart by its letter
// too, and that where colours do no good there are none.
func TestPictureInColour(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 2, 10, 0, 0, 0, 0, time.UTC)
	p, err := newPicture(v1.WindowFilter{To: now}, now.AddDate(0, 0, -1), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	p.mark(now.AddDate(-1, 0, 0), now.AddDate(0, 0, -8), open)   // Up to 2 February, 00:00.
	p.mark(now.AddDate(0, 0, -9), now.AddDate(0, 0, -7), frozen) // The first two days.
	p.mark(now.AddDate(0, 1, 0), now.AddDate(0, 2, 0), open)     // Beyond the month.
	coloured := p.draw(true)
	if want := "Su\n\x1b[30;43m  1#\x1b[0m\x1b[30;46m  2x\x1b[0m  3   4"; !strings.Contains(coloured, want) {
		t.Errorf("no %q in\n%q", want, coloured)
	}
	if plain := p.draw(false); strings.Contains(plain, "\x1b") || strings.Count(plain, "*") != 1 || !strings.Contains(plain, "\n  1#  2x  3   4") {
		t.Errorf("got\n%q", plain)
	}
	if colourful(&bytes.Buffer{}) {
		t.Error("a buffer is taken for a terminal")
	}
}

func TestWrongWindowsFlags(t *testing.T) {
	t.Parallel()
	s := planner(t)
	for name, row := range map[string]struct {
		args []string
		code int
		want string
	}{
		"from no time":        {[]string{"--from", "tomorrow"}, exitUsage, `--from: "tomorrow" is not a time; use RFC 3339`},
		"to no date":          {[]string{"--to", "2027-02-30"}, exitUsage, `--to: "2027-02-30" is not a time`},
		"both":                {[]string{"--from", "x", "--to", "y"}, exitUsage, `--to: "y"`},
		"to too far":          {[]string{"--to", "2999-01-01"}, exitUsage, "--to: "},
		"to before from":      {[]string{"--from", "2027-02-02", "--to", "2027-02-01"}, exitUsage, "is not after from"},
		"count of none":       {[]string{"--count", "0"}, exitUsage, "--count: 0 is out of range; use 1 to 1000"},
		"count below none":    {[]string{"--count=-1"}, exitUsage, "--count: -1 is out of range"},
		"count too great":     {[]string{"--count", "1001"}, exitUsage, "use 1 to 1000"},
		"count no number":     {[]string{"--count", "all"}, exitUsage, "--count"},
		"unknown zone":        {[]string{"--timezone", "Europe/Stokholm"}, exitUsage, "did you mean Europe/Stockholm?"},
		"site-local":          {[]string{"--timezone", "site-local"}, exitUsage, "means another zone at each site"},
		"no zone":             {[]string{"--timezone", ""}, exitUsage, "use UTC or an IANA name"},
		"a picture in JSON":   {[]string{"--month", "--output", "json"}, exitUsage, "--month draws a picture"},
		"a picture of some":   {[]string{"--month", "--count", "3"}, exitUsage, "leave out --count"},
		"a picture too large": {[]string{"--month", "--from", "2027-01-31", "--to", "2028-01-02"}, exitUsage, "use at most 12 months from --from, Sun 2027-01-31"},
		"another output":      {[]string{"--output", "xml"}, exitUsage, "--output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := windowsOf(t, s, row.args...)
			if code != row.code || !strings.Contains(stderr, row.want) {
				t.Errorf("exit code %d, not %d, or no word of %q:\n%s%s", code, row.code, row.want, stdout, stderr)
			}
		})
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
