package provider_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// has checks the JSON text that a server has, with the members that no attribute is for.
func has(body func() string, want string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		var got, expected any
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			return err
		}
		text := body()
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, expected) {
			return fmt.Errorf("the server has %s, want %s", text, want)
		}
		return nil
	}
}

// TestUnknownMembers_ofARollout: a creation, an update and what follows an import keep the
// members of a newer agent, beside ours, below them and in entries of lists.
func TestUnknownMembers_ofARollout(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Newer()
	body := func() string { return api.RolloutBody(acctest.Tenant) }
	api.SetRolloutBody(acctest.Tenant, `{"future":{"deep":[1]}}`)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(`resource "osupgrade_rollout" "a" { reserve = "10m" }`), Check: has(body, `{"future":{"deep":[1]},"reserve":"10m"}`)},
		{
			PreConfig: func() {
				api.SetRolloutBody(acctest.Tenant, `{"future":2,"reserve":"10m","stages":[{"name":"a","match":{"roles":["a"]},"x-colour":"red"},{"name":"b","match":{"roles":["b"],"x-mood":"good"}},{"name":"rest"}],"hooks":{"x-when":"late"}}`)
			},
			Config: server.Config(`resource "osupgrade_rollout" "a" {
				reserve = "20m"
				stages  = [{ name = "b", match = { roles = ["b"] } }, { name = "a", match = { roles = ["a", "c"] } }, { name = "rest" }]
				hooks   = { drain = { type = "http", url = "http://127.0.0.1/" } }
			}`),
			Check: has(body, `{"future":2,"reserve":"20m","stages":[{"name":"b","match":{"roles":["b"],"x-mood":"good"}},{"name":"a","match":{"roles":["a","c"]},"x-colour":"red"},{"name":"rest"}],`+
				`"hooks":{"x-when":"late","drain":{"type":"http","url":"http://127.0.0.1/"}}}`),
		},
	}})
}

// TestUnknownMembers_ofACalendar: a creation and an update keep the members of a newer
// agent, also in events.
func TestUnknownMembers_ofACalendar(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Newer()
	body := func() string { return api.CalendarBody(acctest.Tenant, "c") }
	configuration := func(description string) string {
		return server.Config(`resource "osupgrade_calendar" "a" {
			name               = "c"
			kind               = "allow"
			description        = "` + description + `"
			overwrite_existing = true
			events             = [{ start = "2099-01-01T00:00", duration = "1h" }]
		}`)
	}
	const event = `{"start":"2099-01-01T00:00","duration":"1h"`
	api.SetCalendarBody(acctest.Tenant, "c", `{"future":1,"kind":"allow","events":[`+event+`,"x-by":"me"}]}`)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: configuration("one"), Check: has(body, `{"future":1,"kind":"allow","description":"one","events":[`+event+`,"x-by":"me"}]}`)},
		{Config: configuration("two"), Check: has(body, `{"future":1,"kind":"allow","description":"two","events":[`+event+`,"x-by":"me"}]}`)},
	}})
}

// TestUnknownMembers_besideAWindow: a window is added, changed and removed, and all else of
// the configuration stays as Avassa's server has it.
func TestUnknownMembers_besideAWindow(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Avassa()
	body := func() string { return api.ConfigBody(acctest.Tenant) }
	const (
		others = `"future-key":{"since":"2027"},"worker-applications":[{"name":"a","x-extra":{"deep":[1,2]}}]`
		theirs = `{"days-of-week":"Sunday","start-time":"03:00","timezone":"UTC","duration":"2h","x-label":"theirs"}`
	)
	api.SetConfigBody(acctest.Tenant, `{`+others+`,"maintenance-windows":[`+theirs+`]}`)
	configuration := func(duration string) string {
		return server.Config(`resource "osupgrade_maintenance_window" "a" {
			days_of_week = ["Friday"]
			start_time   = "01:00"
			duration     = "` + duration + `"
		}`)
	}
	with := func(duration string) string {
		return `{` + others + `,"maintenance-windows":[` + theirs + `,{"days-of-week":"Friday","start-time":"01:00","timezone":"site-local","duration":"` + duration + `"}]}`
	}
	acctest.Run(t, resource.TestCase{
		CheckDestroy: has(body, `{`+others+`,"maintenance-windows":[`+theirs+`]}`),
		Steps: []resource.TestStep{
			{Config: configuration("4h"), Check: has(body, with("4h"))},
			{Config: configuration("5h"), Check: has(body, with("5h"))},
		},
	})
}

// TestOpenEnumerations: values that this version does not know break neither a refresh nor
// a plan, of our resources and of those that others wrote.
func TestOpenEnumerations(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Newer()
	const configuration = `
resource "osupgrade_config" "a" {
  worker_applications = ["x"]
}
resource "osupgrade_rollout" "a" {
  on_failure = "continue"
  checks     = { fleet = [{ type = "tcp", address = "127.0.0.1:80" }] }
}
resource "osupgrade_calendar" "a" {
  name   = "c"
  kind   = "freeze"
  events = [{ start = "2099-01-01T00:00", duration = "1h" }]
}
data "osupgrade_config" "a" {
  depends_on = [osupgrade_config.a]
}
data "osupgrade_state" "a" {
  depends_on = [osupgrade_config.a]
}
data "osupgrade_hosts" "a" {}
data "osupgrade_runs" "a" {}
`
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h1", Warnings: []v1.Warning{{Host: "h1", Kind: "levitates", Text: "It does."}}})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(configuration)},
		{
			PreConfig: func() {
				api.SetConfigBody(acctest.Tenant, `{"worker-applications":[{"name":"x"}],"maintenance-windows":[{"days-of-week":"every-workday","start-time":"dusk","timezone":"moon","duration":"P4H"}]}`)
				api.SetState(acctest.Tenant, v1.State{Situation: v1.Situation{Status: "pondering"}, OSUpgrade: v1.OSUpgrade{}})
			},
			Config:           server.Config(configuration),
			ConfigPlanChecks: emptyOf("osupgrade_config.a", "osupgrade_rollout.a", "osupgrade_calendar.a"),
		},
		{
			PreConfig: func() {
				api.SetRolloutBody(acctest.Tenant, `{"on-failure":"ponder","order":"by-mood","checks":{"fleet":[{"type":"telepathy","mood":"good"}]}}`)
				api.SetCalendarBody(acctest.Tenant, "c", `{"kind":"perhaps","events":[{"start":"2099-01-01T00:00","duration":"1h","rrule":"FREQ=DECENNIAL"}]}`)
			},
			Config: server.Config(configuration),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("osupgrade_rollout.a", plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction("osupgrade_calendar.a", plancheck.ResourceActionUpdate),
			}},
		},
	}})
}

func emptyOf(addresses ...string) resource.ConfigPlanChecks {
	var checks resource.ConfigPlanChecks
	for _, address := range addresses {
		checks.PreApply = append(checks.PreApply, plancheck.ExpectResourceAction(address, plancheck.ResourceActionNoop))
	}
	return checks
}
