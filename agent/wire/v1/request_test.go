package v1

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

func TestDecodeAsk(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, what, contentType, body string
		want                          Ask
		problem                       string
	}{
		{"pause", "pause", "", `{"reason": "a look"}`, Ask{Reason: "a look"}, ""},
		{"approve", "approve", "", `{"reason": "fine", "stage": "canary"}`, Ask{Reason: "fine", Stage: "canary"}, ""},
		{"release in YAML", "release", inYAML, "reason: 10:30\nhost: h01\n", Ask{Reason: "10:30", Host: "h01"}, ""},
		{"no reason", "resume", "", `{}`, Ask{}, `reason: "" is empty; it is stored with the run`},
		{"blank reason", "resume", "", `{"reason": " \n"}`, Ask{}, `reason: " \n" is empty; it is stored with the run`},
		{"reason that steers a terminal", "abort", "", `{"reason": "\u001b[2J"}`, Ask{}, `reason: "\x1b[2J" has characters that cannot be shown; use letters, digits, signs and blanks on one line`},
		{"long reason", "abort", "", `{"reason": "` + strings.Repeat("x", 1001) + `"}`, Ask{}, `reason: 1001 characters are too many; use at most 1000`},
		{"approve nothing", "approve", "", `{"reason": "r"}`, Ask{}, `stage: "" is not the name of a stage; name the one to approve`},
		{"release nothing", "release", "", `{"reason": "r"}`, Ask{}, `host: "" is not the name of a host; name the one whose slot is to be freed`},
		{"pause a stage", "pause", "", `{"reason": "r", "stage": "s"}`, Ask{}, `stage: "s" does not apply to this operation; omit it`},
		{"approve a host", "approve", "", `{"reason": "r", "stage": "s", "host": "h"}`, Ask{}, `host: "h" does not apply to this operation; omit it`},
		{"unknown key", "pause", "", `{"reason": "r", "why": "s"}`, Ask{}, `why: unknown key; use all, environment, host, now, reason, reset-failures, stage`},
		{"resume and forget", "resume", "", `{"reason": "r", "reset-failures": true}`, Ask{Reason: "r", ResetFailures: true}, ""},
		{"pause and forget", "pause", "", `{"reason": "r", "reset-failures": true}`, Ask{}, `reset-failures: "true" does not apply to this operation; omit it`},
		{"abort now", "abort", "", `{"reason": "r", "now": true}`, Ask{Reason: "r", Now: true}, ""},
		{"pause now", "pause", "", `{"reason": "r", "now": true}`, Ask{}, `now: "true" does not apply to this operation; omit it`},
		{"abort in an environment", "abort", "", `{"reason": "r", "environment": "basel"}`, Ask{Reason: "r", Environment: "basel"}, ""},
		{"abort in no environment", "abort", "", `{"reason": "r", "environment": "Basel!"}`, Ask{}, `environment: "Basel!" is not the name of an environment; ` + names.Form},
		{"abort all", "abort", "", `{"reason": "r", "all": true}`, Ask{Reason: "r", All: true}, ""},
		{"abort all of one", "abort", "", `{"reason": "r", "all": true, "environment": "basel"}`, Ask{}, `all: "true" aborts the runs of all environments; omit environment`},
		{"pause all", "pause", "", `{"reason": "r", "all": true}`, Ask{}, `all: "true" does not apply to this operation; name an environment, or omit both`},
		{"empty", "pause", "", ``, Ask{}, `the document is empty; write an object`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeAsk(row.what, row.contentType, []byte(row.body))
			if got != row.want || errText(err) != row.problem {
				t.Fatalf("got %+v, %v; want %+v, %q", got, err, row.want, row.problem)
			}
		})
	}
}

func TestRunFilter(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	run := Run{Environment: "basel", Result: "failed", OpenedAt: day(10), Hosts: []RunHost{{Hostname: "h01"}, {Hostname: "h02"}}}
	for _, row := range []struct {
		name   string
		filter RunFilter
		keeps  bool
	}{
		{"all", RunFilter{}, true},
		{"its result", RunFilter{Result: "failed"}, true},
		{"another result", RunFilter{Result: "completed"}, false},
		{"another host", RunFilter{Selector: Selector{Hosts: []string{"h03"}}}, true},
		{"its environment", RunFilter{Selector: Selector{Environments: []string{"bern", "basel"}}}, true},
		{"another environment", RunFilter{Selector: Selector{Environments: []string{"default"}}}, false},
		{"since then", RunFilter{Since: day(10)}, true},
		{"since later", RunFilter{Since: day(10).Add(1)}, false},
		{"until then", RunFilter{Until: day(10)}, false},
		{"until later", RunFilter{Until: day(10).Add(1)}, true},
		{"everything at once", RunFilter{Result: "failed", Selector: Selector{Hosts: []string{"h01"}}, Since: day(9), Until: day(11), Limit: 1}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.filter.Keeps(run); got != row.keeps {
				t.Errorf("it keeps the run: %v", got)
			}
			if wrong := row.filter.Validate(); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
	if (RunFilter{}).Most() != 100 || (RunFilter{Limit: 7}).Most() != 7 {
		t.Error("the limit that counts is another one")
	}
	want := `result: "fail" is invalid; use completed, partial, failed, aborted or timed-out; did you mean failed?; host: "a b" is not the name of a host; ` +
		`until: "2026-11-10T00:00:00Z" is not after since; limit: 1001 is out of range; use 1 to 1000`
	if wrong := (RunFilter{Result: "fail", Selector: Selector{Hosts: []string{"a b"}}, Since: day(10), Until: day(10), Limit: 1001}).Validate(); wrong.Error() != want {
		t.Errorf("problems %v; want %s", wrong, want)
	}
}
