package calendar_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const address = "osupgrade_calendar.test"

// block is the calendar christmas with this body.
func block(body string) string {
	return "resource \"osupgrade_calendar\" \"test\" {\n name = \"christmas\"\n" + body + "\n}\n"
}

// complete declares every attribute except ics, and whole is its object in the API.
const complete = `
  kind        = "freeze"
  description = "Shops are busy"
  events = [
    { summary = "Christmas", start = "2026-12-20", end = "2027-01-07", all_day = true, rrule = "FREQ=YEARLY" },
    {
      summary  = "Audit"
      start    = "2027-03-01T18:00"
      duration = "4h"
      timezone = "Europe/Stockholm"
      rdate    = ["2027-04-01T18:00", "2027-05-01T18:00"]
      exdate   = ["2027-04-01T18:00"]
    },
    { start = "2027-06-01T00:00", end = "2027-06-02T00:00", timezone = "UTC" },
  ]
`

func whole() v1.Calendar {
	return v1.Calendar{Kind: "freeze", Description: "Shops are busy", Events: []v1.Event{
		{Summary: "Christmas", Start: "2026-12-20", End: "2027-01-07", Timezone: "site-local", AllDay: true, RRule: "FREQ=YEARLY"},
		{
			Summary: "Audit", Start: "2027-03-01T18:00", Duration: "4h", Timezone: "Europe/Stockholm",
			RDate: []string{"2027-04-01T18:00", "2027-05-01T18:00"}, ExDate: []string{"2027-04-01T18:00"},
		},
		{Start: "2027-06-01T00:00", End: "2027-06-02T00:00", Timezone: "UTC"},
	}}
}

// otherForm is complete in another form with the same meaning.
var otherForm = strings.NewReplacer(`"4h"`, `"240m"`, `start    = "2027-03-01T18:00"`, `start = "2027-03-01T18:00:00"`, `end = "2027-06-02T00:00"`, `end = "2027-06-02T00:00:00"`).Replace(complete)

const ics = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//a//b//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n" +
	"DTSTART;VALUE=DATE:20261220\r\nDTEND;VALUE=DATE:20270107\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"

// quoted is a text as Terraform writes it.
func quoted(text string) string {
	return `"` + strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(text) + `"`
}

func TestAccCalendar_lifecycle(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	fromICS := server.Config(block("kind = \"freeze\"\n ics = " + quoted(ics)))
	acctest.Run(t, resource.TestCase{
		CheckDestroy: absent(api),
		Steps: []resource.TestStep{
			{Config: server.Config(block(`kind = "allow"`)), Check: stored(api, v1.Calendar{Kind: "allow"})},
			{Config: server.Config(block(complete)), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, whole())},
			{Config: server.Config(block(otherForm)), ConfigPlanChecks: emptyPlan()},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/christmas", ImportStateKind: resource.ImportBlockWithID},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/christmas", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{ResourceName: address, ImportState: true, ImportStateId: "acme", ExpectError: regexp.MustCompile(`"acme"\s+is\s+not\s+the\s+name\s+of\s+a\s+tenant\s+and\s+the\s+name\s+of\s+a\s+calendar`)},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/easter", ExpectError: regexp.MustCompile(`(?i)cannot import non-existent`)},
			{Config: fromICS, ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, v1.Calendar{Kind: "freeze", ICS: new(ics)})},
			{Config: fromICS, ConfigPlanChecks: emptyPlan()},
			{
				Config:           server.Config(strings.Replace(block(`kind = "allow"`), "christmas", "easter", 1)),
				ConfigPlanChecks: action(plancheck.ResourceActionDestroyBeforeCreate),
				Check:            absent(api),
			},
		},
	})
}

// TestAccCalendar_byURL takes a calendar with a URL through its life. What the site fetches
// is no change, the form of a duration is none, and an import has what was declared.
func TestAccCalendar_byURL(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	const url = "https://calendar.example/swordfish/a.ics"
	byURL := "kind = \"freeze\"\n url = \"" + url + "\""
	acctest.Run(t, resource.TestCase{
		CheckDestroy: absent(api),
		Steps: []resource.TestStep{
			{Config: server.Config(block(complete)), Check: stored(api, whole())},
			{Config: server.Config(block(byURL)), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, v1.Calendar{Kind: "freeze", URL: url})},
			{Config: server.Config(block(byURL + "\n refresh = \"120m\"")), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, v1.Calendar{Kind: "freeze", URL: url, Refresh: "2h"})},
			{Config: server.Config(block(byURL + "\n refresh = \"2h\"")), ConfigPlanChecks: emptyPlan()},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/christmas", ImportStateKind: resource.ImportBlockWithID},
			{
				PreConfig:        func() { api.EditCalendar(acctest.Tenant, name, func(c *v1.Calendar) { c.URL += "?other" }) },
				Config:           server.Config(block(byURL)),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, v1.Calendar{Kind: "freeze", URL: url}),
			},
			{Config: server.Config(block("kind = \"freeze\"\n ics = " + quoted(ics))), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, v1.Calendar{Kind: "freeze", ICS: new(ics)})},
		},
	})
}

// TestAccCalendar_noPerpetualDiff checks that a declared value keeps its form,
// whatever form the server returns.
func TestAccCalendar_noPerpetualDiff(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.RenderCalendar(v1.Calendar.Canonical)
	var steps []resource.TestStep
	for _, body := range []string{otherForm, "kind = \"freeze\"\n events = []"} {
		steps = append(steps, resource.TestStep{
			PreConfig: api.ForgetRequests,
			// Each step checks that the next plan is empty.
			Config: server.Config(block(body)), Check: writes(api, 1),
		}, resource.TestStep{Config: server.Config()})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func TestAccCalendar_driftIsPutBack(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	config := server.Config(block(complete))
	steps := []resource.TestStep{{Config: config}}
	for what, edit := range map[string]func(*v1.Calendar){
		"kind":          func(c *v1.Calendar) { c.Kind = "allow" },
		"event removed": func(c *v1.Calendar) { c.Events = c.Events[1:] },
		"event changed": func(c *v1.Calendar) { c.Events[1].Duration, c.Events[0].AllDay = "5h", false },
		"now a text":    func(c *v1.Calendar) { c.Events, c.ICS = nil, new(ics) },
	} {
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				t.Log(what)
				api.EditCalendar(acctest.Tenant, name, edit)
			},
			Config: config, ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: stored(api, whole()),
		})
	}
	steps = append(steps, resource.TestStep{
		PreConfig: func() { api.RemoveCalendar(acctest.Tenant, name) },
		Config:    config, ConfigPlanChecks: action(plancheck.ResourceActionCreate), Check: stored(api, whole()),
	}, resource.TestStep{
		PreConfig: func() {
			api.Inject(http.MethodGet, "", fakeapi.Status(http.StatusNotFound, `tenant "acme" does not exist`))
		},
		Config: config, PlanOnly: true,
		ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_calendar.*does not exist`),
	})
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestAccCalendar_severalAreIndependent: two calendars of one tenant do not
// touch each other, and two resources for one calendar are refused.
func TestAccCalendar_severalAreIndependent(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	other := "resource \"osupgrade_calendar\" \"other\" {\n name = \"easter\"\n kind = \"allow\"\n}\n"
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete), other), Check: stored(api, whole())},
		{
			Config:           server.Config(block(complete), strings.Replace(other, "allow", "freeze", 1)),
			ConfigPlanChecks: action(plancheck.ResourceActionNoop),
			Check:            stored(api, whole()),
		},
		{Config: server.Config(other), Check: absent(api)},
		{
			Config:      server.Config(block(complete), strings.Replace(other, "easter", "christmas", 1)),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`Two resources manage the calendar christmas of one tenant`),
		},
	}})
}

// TestAccCalendar_importOfADefault: the calendar of a configuration that leaves out the default
// time zone is imported without a change, also of a server that returns the default.
func TestAccCalendar_importOfADefault(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.RenderCalendar(v1.Calendar.Canonical)
	config := server.Config(block("kind = \"freeze\"\n events = [{ start = \"2099-12-20T00:00\", duration = \"1h\" }]"))
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{ResourceName: address, ImportState: true, ImportStateId: "acme/christmas", ImportStateKind: resource.ImportBlockWithID},
		{ResourceName: address, ImportState: true, ImportStateId: "acme/christmas", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
		{Config: config, ConfigPlanChecks: emptyPlan(), Check: writes(api, 1)},
	}})
}

// TestAccCalendar_aDefaultThatIsWrittenOutIsNotWritten: the plan shows that a default is
// written out, because an attribute with a default would be unknown to functions in the plan
// of a mock_provider. Nothing is written.
func TestAccCalendar_aDefaultThatIsWrittenOutIsNotWritten(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	const start = `kind = "freeze"` + "\n" + `events = [{ start = "2099-12-20T00:00", duration = "1h"`
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(start + " }]")), Check: writes(api, 1)},
		{Config: server.Config(block(start + ", timezone = \"site-local\", all_day = false, rdate = [], exdate = [] }]")), Check: writes(api, 1)},
		{Config: server.Config(block(start + " }]")), Check: writes(api, 1)},
	}})
}
