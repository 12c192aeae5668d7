package calendar_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestAccCalendar_refusesToOverwriteWhatChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	changed := server.Config(block("kind = \"freeze\"\n description = \"b\""))
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{
		{Config: server.Config(block("kind = \"freeze\"\n description = \"a\""))},
		{
			Config: changed,
			ConfigPlanChecks: expect(do(func() {
				api.EditCalendar(acctest.Tenant, name, func(c *v1.Calendar) { c.Kind = "allow" })
			})),
			ExpectError: regexp.MustCompile(`(?s)Somebody else changed kind of calendar christmas of tenant acme.*when planned:\s+- freeze\s+on the server now:\s+- allow.*Run plan again`),
		},
		{Config: changed, Check: stored(api, v1.Calendar{Kind: "freeze", Description: "b"})},
		{
			Config: server.Config("# nothing"),
			ConfigPlanChecks: expect(do(func() {
				api.EditCalendar(acctest.Tenant, name, func(c *v1.Calendar) { c.Description = "c" })
			})),
			ExpectError: regexp.MustCompile(`(?s)Unable to delete osupgrade_calendar.*Somebody else changed description`),
		},
	}})
}

func TestAccCalendar_adopts(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetCalendar(acctest.Tenant, name, v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2027-01-01T00:00:00", Duration: "60m"}}})
	const same = `events = [{ start = "2027-01-01T00:00", duration = "1h", timezone = "site-local" }]`
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: server.Config(block("kind = \"allow\"\n" + same)),
			ExpectError: regexp.MustCompile(`(?s)Calendar christmas of tenant acme has kind already, which\s+this\s+resource\s+did\s+not\s+manage` +
				`.*import \{\s+to = osupgrade_calendar.example\s+id = "acme/christmas"`),
		},
		{Config: server.Config(block("kind = \"freeze\"\n" + same)), Check: writes(api, 0)},
		{
			Config: server.Config(block("kind = \"freeze\"\n description = \"lost\"\n" + same)),
			ConfigPlanChecks: expect(do(func() {
				api.Inject(http.MethodPut, "", fakeapi.CloseAfter())
			})),
			Check: stored(api, v1.Calendar{
				Kind: "freeze", Description: "lost", Events: []v1.Event{{Start: "2027-01-01T00:00", Duration: "1h", Timezone: "site-local"}},
			}),
		},
	}})
}
