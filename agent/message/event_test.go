package message

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestEventBodies checks what events look like on the log, and that they are
// read as they were written: an old log must stay readable.
func TestEventBodies(t *testing.T) {
	t.Parallel()
	opens := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	end := opens.Add(4 * time.Hour)
	for body, event := range map[string]Event{
		`{"event":"opened","trigger":"window","hosts":["h01","h03"],"silent":["h03"],"window":"2026-11-21T01:00:00Z","not-after":"2026-11-21T05:00:00Z"}`: {
			Event: Opened, Trigger: TriggerWindow, Hosts: []string{"h01", "h03"}, Silent: []string{"h03"}, Window: &opens, NotAfter: &end,
		},
		`{"event":"opened","trigger":"window","hosts":["h01"],"unwell":[{"host":"h02","since":"2026-11-21T01:00:00Z","late":"upgrade","drained":true,"checks":"after-host"}],"not-after":"2026-11-21T05:00:00Z"}`: {
			Event: Opened, Trigger: TriggerWindow, Hosts: []string{"h01"}, NotAfter: &end,
			Unwell: []Unwell{{Host: "h02", Since: opens, Debt: Debt{Answer: Upgrade, Undrain: true, Checks: AfterHost}}},
		},
		`{"event":"opened","trigger":"manual","hosts":["h01"],"not-after":"2026-11-21T05:00:00Z"}`: {
			Event: Opened, Trigger: TriggerManual, Hosts: []string{"h01"}, NotAfter: &end,
		},
		`{"event":"recovered","hosts":["h03"],"reason":"heard"}`: {Event: Recovered, Hosts: []string{"h03"}, Reason: Heard},
		`{"event":"finished","result":"partial"}`:                {Event: Finished, Result: "partial"},
	} {
		if got := string(event.Encode()); got != body {
			t.Errorf("the body is %s, not %s", got, body)
		}
		if got, err := DecodeEvent([]byte(body)); err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%s is read as %+v, %v", body, got, err)
		}
	}
}

// TestMalformedRecovered checks that what would free a slot names whose, and
// why.
func TestMalformedRecovered(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"event":"recovered","reason":"heard"}`:                 "hosts is empty",
		`{"event":"recovered","hosts":["h03"]}`:                  `reason "" is none of heard, deleted`,
		`{"event":"recovered","hosts":["h03"],"reason":"hoped"}`: `reason "hoped" is none of heard, deleted`,
		`{"event":"recovered","hosts":["a b"],"reason":"heard"}`: `"a b" is not a host name`,
		`{"event":"recovering","hosts":["h"],"reason":"heard"}`:  `there is no such event`,
		`{"event":"recovered","hosts":"h03","reason":"deleted"}`: "cannot read event",
	} {
		if _, err := DecodeEvent([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v and does not say %q", body, err, want)
		}
	}
}

// TestMalformedUnwell checks that hosts which are not well are named, each
// once, with what they lack.
func TestMalformedUnwell(t *testing.T) {
	t.Parallel()
	for unwell, want := range map[string]string{
		`[{"host":"a b"}]`:                     `"a b", which is not a host name`,
		`[{"host":"h01"},{"host":"h01"}]`:      `names h01 twice`,
		`[{"host":"h01","late":"dance"}]`:      `"dance", which is no action`,
		`[{"host":"h01","checks":"fleet"}]`:    `"fleet", which are no checks of a host`,
		`[{"host":"h01","since":"yesterday"}]`: "cannot read event",
	} {
		body := `{"event":"opened","hosts":["h01"],"not-after":"2026-11-21T05:00:00Z","unwell":` + unwell + `}`
		if _, err := DecodeEvent([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v and does not say %q", unwell, err, want)
		}
	}
}
