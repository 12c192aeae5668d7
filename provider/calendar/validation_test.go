package calendar_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestAccCalendar_wrongValuesAreTold(t *testing.T) {
	t.Parallel()
	event := func(members string) string { return "kind = \"freeze\"\n events = [{ " + members + " }]" }
	rows := map[string]struct{ body, says string }{
		"tenant":             {"kind = \"allow\"\n tenant = \"Acme\"", `"Acme"\s+is\s+not\s+a\s+name`},
		"kind":               {`kind = "freese"`, `(?s)value of kind.*"freese".*freeze`},
		"start":              {event(`start = "tomorrow", duration = "1h"`), `(?s)value of events\[0\].start.*"tomorrow"\s+is\s+not\s+a\s+date\s+or\s+a\s+time`},
		"start with offset":  {event(`start = "2027-01-01T00:00:00Z", duration = "1h"`), `(?s)value of events\[0\].start.*has\s+an\s+offset`},
		"end before start":   {event(`start = "2027-01-02T00:00", end = "2027-01-01T00:00"`), `(?s)value of events\[0\].end.*does\s+not\s+end\s+after\s+its\s+start`},
		"no end":             {event(`start = "2027-01-02T00:00"`), `(?s)value of events\[0\].start.*has\s+no\s+end`},
		"duration":           {event(`start = "2027-01-02T00:00", duration = "1w"`), `(?s)value of events\[0\].duration.*not\s+a\s+duration`},
		"long for a window":  {"kind = \"allow\"\n events = [{ start = \"2027-01-02T00:00\", duration = \"8d\" }]", `(?s)value of events\[0\].duration.*too\s+long\s+for\s+kind\s+allow`},
		"zone":               {event(`start = "2027-01-02T00:00", duration = "1h", timezone = "Europe/Stockhom"`), `(?s)value of events\[0\].timezone.*did\s+you\s+mean\s+Europe/Stockholm`},
		"rule by the second": {event(`start = "2027-01-02T00:00", duration = "1h", rrule = "FREQ=SECONDLY"`), `(?s)value of events\[0\].rrule.*SECONDLY`},
		"weekday of a rule":  {event(`start = "2027-01-02T00:00", duration = "1h", rrule = "FREQ=WEEKLY;BYDAY=FRI"`), `(?s)value of events\[0\].rrule.*FR`},
		"rdate":              {event(`start = "2027-01-02T00:00", duration = "1h", rdate = ["2027-01-03T00:00", "2027-01-04"]`), `(?s)value of events\[0\].rdate\[1\].*does\s+not\s+have\s+the\s+form\s+of\s+the\s+start`},
		"exdate":             {event(`start = "2027-01-02T00:00", duration = "1h", exdate = ["soon"]`), `(?s)value of events\[0\].exdate\[0\].*"soon"\s+is\s+not\s+a\s+date`},
		"duplicate event": {
			"kind = \"freeze\"\n events = [{ start = \"2027-01-02\", all_day = true }, { start = \"2027-01-02\", all_day = true }]",
			`(?s)value of events\[1\].*is\s+the\s+same\s+as\s+events\[0\]`,
		},
		"both":            {"kind = \"freeze\"\n ics = " + quoted(ics) + "\n events = [{ start = \"2027-01-02\", all_day = true }]", `(?s)value of ics.*use\s+one\s+of\s+them`},
		"url and events":  {"kind = \"freeze\"\n url = \"https://calendar.example/a.ics\"\n events = [{ start = \"2027-01-02\", all_day = true }]", `(?s)value of url.*use\s+one\s+of\s+them`},
		"url not https":   {"kind = \"freeze\"\n url = \"webcal://calendar.example/a.ics\"", `(?s)value of url.*write\s+https\s+instead\s+of\s+webcal`},
		"password in url": {"kind = \"freeze\"\n url = \"https://jim:x@calendar.example/a.ics\"", `(?s)value of url.*has\s+a\s+user\s+or\s+password`},
		"refresh":         {"kind = \"freeze\"\n url = \"https://calendar.example/a.ics\"\n refresh = \"1m\"", `(?s)value of refresh.*use\s+15m\s+to\s+7d`},
		"refresh alone":   {"kind = \"freeze\"\n refresh = \"1h\"", `(?s)value of refresh.*leave\s+it\s+out`},
		"empty text":      {"kind = \"freeze\"\n ics = \"\"", `(?s)value of ics.*is\s+empty`},
		"text of no kind": {"kind = \"freeze\"\n ics = \"soon\"", `(?s)value of ics`},
		"null event":      {"kind = \"freeze\"\n events = [null]", `(?i)null`},
		"null date":       {event(`start = "2027-01-02T00:00", duration = "1h", rdate = [null]`), `(?i)null`},
	}
	w := acctest.NewWorkspace(t)
	config := acctest.Requirement
	for i, row := range slices.Sorted(maps.Keys(rows)) {
		config += fmt.Sprintf("# %s\nresource \"osupgrade_calendar\" \"r%d\" {\n name = \"r%d\"\n%s\n}\n", row, i, i, rows[row].body)
	}
	config += "resource \"osupgrade_calendar\" \"named\" {\n name = \"No Name\"\n kind = \"allow\"\n}\n"
	config += "resource \"osupgrade_config\" \"window\" {\n maintenance_windows = [{ days_of_week = [\"Frday\"], start_time = \"22:00\", duration = \"1h\" }]\n}\n"
	w.Write(t, "main.tf", config)
	told := acctest.Diagnostics(t, w.Run(t, 1, "validate", "-json"))
	want := map[string]string{
		"osupgrade_calendar.named": `"No Name"\s+is\s+not\s+a\s+name`,
		"osupgrade_config.window":  `"Frday"\s+is\s+not\s+a\s+day;\s+did\s+you\s+mean\s+Friday`,
	}
	for i, row := range slices.Sorted(maps.Keys(rows)) {
		want[fmt.Sprintf("osupgrade_calendar.r%d", i)] = rows[row].says
	}
	for address, text := range want {
		if says := regexp.MustCompile(text); !slices.ContainsFunc(told[address], says.MatchString) {
			t.Errorf("%s: got %q, want an error with %s", address, told[address], says)
		}
	}
}

func TestAccCalendar_theServerChecksThePlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.AcceptCalendar(func(_, _ string, _ v1.Calendar) []v1.Error {
		return []v1.Error{
			{Message: "not that long here", Info: v1.ErrorInfo{Field: "events[1].all-day"}},
			{Message: "not this one", Info: v1.ErrorInfo{Field: "ics.VEVENT[2].DTSTART"}},
			{Message: "too many already"},
		}
	})
	var steps []resource.TestStep
	for _, says := range []string{ // In an order that is Terraform's.
		`(?s)would not accept osupgrade_calendar.*Attribute: events\[1\].all_day.*not that long here`, `(?s)Attribute: ics\s.*not this one`, `too many already`,
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(block(complete)), PlanOnly: true, ExpectError: regexp.MustCompile(says)})
	}
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: steps})
}

func TestAccCalendar_avassaHasNone(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	var none fakeapi.Fault
	none = func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			api.Inject(http.MethodPut, "/calendars/christmas", none)
			fakeapi.Status(http.StatusNotFound, "no such path")(serve).ServeHTTP(w, r)
		})
	}
	api.Inject(http.MethodPut, "/calendars/christmas", none)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{{
		Config:      server.Config(block(complete)),
		ExpectError: regexp.MustCompile(`(?s)Unable to create osupgrade_calendar.*no such path.*supported\s+by\s+osupgrade-agent\s+only`),
	}}})
}

// TestAccCalendar_valuesThatAreNotKnownYet: a name, an event and a text that are
// outputs of another resource.
func TestAccCalendar_valuesThatAreNotKnownYet(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	const later = `
resource "terraform_data" "later" {
  input = { name = "christmas", kind = "freeze", start = "2026-12-20", wrong = "soon" }
}
locals { out = terraform_data.later.output }
`
	body := func(start string) string {
		return later + "resource \"osupgrade_calendar\" \"test\" {\n name = local.out.name\n kind = local.out.kind\n" +
			" events = [{ start = local.out." + start + ", all_day = true }]\n}\n"
	}
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{
		{Config: server.Config(body("wrong")), ExpectError: regexp.MustCompile(`(?s)value of events\[0\].start.*"soon"\s+is\s+not`)},
		{Config: server.Config(body("start")), Check: stored(api, v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2026-12-20", Timezone: "site-local", AllDay: true}}})},
	}})
}
