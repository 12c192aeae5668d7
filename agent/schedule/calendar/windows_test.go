package calendar

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// outlook is a text with a VTIMEZONE as Outlook writes it, and an event in that zone.
func outlook(id string, parts ...string) string {
	return strings.Replace(vcalendar("DTSTART;TZID=\""+id+"\":20260605T180000", "DURATION:PT4H"), "VERSION:2.0",
		"VERSION:2.0\r\nBEGIN:VTIMEZONE\r\nTZID:"+id+"\r\n"+strings.Join(parts, "")+"END:VTIMEZONE", 1)
}

func standard(before, after, day string, month int) string {
	return part("STANDARD", before, after, day, month)
}

func daylight(before, after, day string, month int) string {
	return part("DAYLIGHT", before, after, day, month)
}

func part(name, before, after, day string, month int) string {
	clock := "020000"
	if before == "+0200" || before == "+1100" {
		clock = "030000"
	}
	rule := ""
	if day != "" {
		rule = fmt.Sprintf("RRULE:FREQ=YEARLY;BYDAY=%s;BYMONTH=%d\r\n", day, month)
	}
	return "BEGIN:" + name + "\r\nDTSTART:16010101T" + clock + "\r\nTZOFFSETFROM:" + before + "\r\nTZOFFSETTO:" + after + "\r\n" + rule + "END:" + name + "\r\n"
}

// TestWindowsZones compares the table with the one of the Go toolchain, which is made from
// CLDR's windowsZones.xml, and requires that each zone of it is known.
func TestWindowsZones(t *testing.T) {
	t.Parallel()
	for name := range windowsZones {
		if zone, known := windowsZone(name); !known || zone == (window.Zone{}) {
			t.Errorf("%s is %s, which is not known", name, windowsZones[name])
		}
	}
	file := filepath.Join(runtime.GOROOT(), "src", "time", "zoneinfo_abbrs_windows.go") //nolint:staticcheck // It is where the source of the toolchain is.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("the toolchain has no source here: %v", err)
	}
	theirs := map[string]string{"Utc": "Etc/UTC"}
	for _, match := range regexp.MustCompile(`(?m)^\t"([^"]+)": .*// (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		theirs[match[1]] = match[2]
	}
	if len(theirs) < 100 || !maps.Equal(windowsZones, theirs) {
		for name, zone := range theirs {
			if windowsZones[name] != zone {
				t.Errorf("%q is %q; in Go's table, made from CLDR, it is %q", name, windowsZones[name], zone)
			}
		}
	}
}

// TestRulesOfWindowsZones writes each zone of Windows as Outlook does, under a name that says
// nothing: the zone that is found shows the same time all year.
func TestRulesOfWindowsZones(t *testing.T) {
	t.Parallel()
	offset := func(seconds int) string { return time.Unix(0, 0).In(time.FixedZone("", seconds)).Format("-0700") }
	found := 0
	for name := range windowsZones {
		zone, _ := windowsZone(name)
		location := zone.Location(nil)
		parts := changesOf(location)
		like, ok := likeRules(parts)
		if !ok {
			if len(parts) != 2 { // Outlook cannot say it either.
				continue
			}
			t.Errorf("no zone is like %s: %+v", name, parts)
			continue
		}
		found++
		for day := range 365 {
			at := time.Date(ruleYear, 1, 1+day, 12, 0, 0, 0, time.UTC)
			_, want := at.In(location).Zone()
			if _, got := at.In(like.Location(nil)).Zone(); got != want {
				t.Errorf("%s is taken for %s, which is %s and not %s at %s", name, like, offset(got), offset(want), at)
				break
			}
		}
	}
	if found < len(windowsZones)-5 {
		t.Errorf("the rules of %d zones only are found", found)
	}
}
