package rollout_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// wrongValue is what a rollout has that is wrong, and the error about it as an expression.
type wrongValue struct{ body, says string }

// wrongStepsAndStarts are the wrong values of steps, and of the checks before a run.
func wrongStepsAndStarts() map[string]wrongValue {
	stage := func(members string) string { return "stages = [{ name = \"a\"\n " + members + " }]" }
	step := func(members string) string {
		return "stages = [{ name = \"a\"\n " + members + " }, { name = \"rest\" }]"
	}
	start := func(members string) string { return "checks = { start = [{ " + members + " }] }" }
	const do = `do = { type = "exec", script = "a", on = "site" }`
	return map[string]wrongValue{
		"step and match":      {step(`match = { roles = ["x"] }, step = { ` + do + ` }`), `(?s)value of stages\[0\].step.*hosts\s+or\s+a\s+step`},
		"step without do":     {step(`step = { undo = { type = "exec", script = "a" } }`), `(?s)value of stages\[0\].step.do.*is\s+missing`},
		"step of no host":     {step(`step = { do = { type = "exec", script = "a" } }`), `(?s)value of stages\[0\].step.match.*is\s+missing`},
		"host of no hook":     {step(`step = { match = { roles = ["x"] }, ` + do + ` }`), `(?s)value of stages\[0\].step.match.*leave\s+it\s+out`},
		"name of an output":   {step(`step = { gives = ["a-b"], ` + do + ` }`), `(?s)value of stages\[0\].step.gives.*not\s+the\s+name\s+of\s+an\s+output`},
		"hosts of a step":     {step(`max_unavailable = 2, step = { ` + do + ` }`), `(?s)value of stages\[0\].max_unavailable.*has\s+a\s+step`},
		"steps alone":         {stage(`step = { ` + do + ` }`), `(?s)value of stages.*no\s+host\s+is\s+upgraded`},
		"points of no return": {`stages = [{ name = "a", match = { roles = ["x"] }, point_of_no_return = true }, { name = "b", point_of_no_return = true }]`, `(?s)value of stages\[1\].point_of_no_return.*stages\[0\]\s+is\s+the\s+point\s+of\s+no\s+return`},
		"query":               {start(`type = "prometheus", url = "http://p", query = "sum(up"`), `(?s)value of checks.start\[0\].query.*not\s+a\s+query`},
		"bound":               {start(`type = "prometheus", url = "http://p", query = "up", below = "few"`), `(?s)value of checks.start\[0\].below`},
		"query on hosts":      {start(`type = "prometheus", url = "http://p", query = "up", match = { roles = ["x"] }`), `(?s)value of checks.start\[0\].match.*at\s+the\s+site`},
		"query after a host":  {`checks = { after_host = [{ type = "prometheus", url = "http://p", query = "up" }] }`, `(?s)value of checks.after_host\[0\].type.*at\s+the\s+site`},
	}
}

func TestAccRollout_wrongValuesAreTold(t *testing.T) {
	t.Parallel()
	check := func(members string) string { return "checks = { fleet = [{ " + members + " }] }" }
	hook := func(members string) string { return "hooks = { drain = { " + members + " } }" }
	stage := func(members string) string { return "stages = [{ name = \"a\"\n " + members + " }]" }
	rows := map[string]wrongValue{
		"tenant":                   {`tenant = "Acme"`, `"Acme"\s+is\s+not\s+a\s+name`},
		"max_failures":             {`max_failures = "one"`, `(?s)value of max_failures.*"one"\s+is\s+not\s+a\s+count`},
		"max_failures of none":     {`max_failures = 0`, `too\s+few`},
		"empty text":               {`on_failure = ""`, `(?s)on_failure.*""\s+is\s+invalid;\s+use\s+stop,\s+pause\s+or\s+continue`},
		"empty reserve":            {`reserve = ""`, `(?s)reserve.*"" is no value`},
		"empty method":             {hook(`type = "http", url = "http://a", method = ""`), `(?s)hooks.drain.method.*""\s+is\s+invalid;\s+use\s+GET`},
		"zero load":                {check(`type = "load", max_load = 0`), `(?s)checks.fleet\[0\].max_load.*0 is out of range`},
		"url with a password":      {check(`type = "http", url = "https://me:hush@a/"`), `(?s)value of checks.fleet\[0\].url.*use\s+a\s+script\s+\(type\s+exec\)`},
		"hook with a password":     {hook(`type = "http", url = "https://me:hush@a/{host}"`), `(?s)value of hooks.drain.url.*use\s+a\s+script\s+\(type\s+exec\)`},
		"zero":                     {check(`type = "tcp", address = "a:1", passes = 0`), `(?s)checks.fleet\[0\].passes.*0 is out of range`},
		"zero status":              {check(`type = "http", url = "http://a", status = 0`), `(?s)checks.fleet\[0\].status.*use a whole number from 100`},
		"on_failure":               {`on_failure = "halt"`, `(?s)value of on_failure.*use\s+stop,\s+pause\s+or\s+continue`},
		"min_prepared":             {`min_prepared = "101%"`, `(?s)value of min_prepared.*not\s+a\s+count`},
		"overrun":                  {`overrun = "finish"`, `(?s)value of overrun.*finish-host\s+or\s+stop`},
		"reserve":                  {`reserve = "1 hour"`, `(?s)value of reserve.*not\s+a\s+duration`},
		"splay":                    {`splay = "8d"`, `(?s)value of splay.*too\s+long`},
		"exempt":                   {`exempt = {}`, `(?s)value of exempt.*names\s+no\s+hosts`},
		"exempt_reboot":            {`exempt_reboot = { roles = [" x"] }`, `(?s)value of exempt_reboot.roles.*not\s+a\s+role`},
		"name of a stage":          {`stages = [{ name = "A" }]`, `(?s)value of stages\[0\].name.*not\s+a\s+name`},
		"name of a stage twice":    {`stages = [{ name = "a", match = { roles = ["x"] } }, { name = "a" }]`, `(?s)value of stages\[1\].name.*stages\[0\]\s+already`},
		"stage that takes all":     {`stages = [{ name = "a" }, { name = "b" }]`, `(?s)value of stages\[0\].match.*none\s+are\s+left\s+for\s+stages\[1\]`},
		"match":                    {stage(`match = {}`), `(?s)value of stages\[0\].match.*names\s+no\s+hosts`},
		"host":                     {stage(`match = { hosts = ["h 1"] }`), `(?s)value of stages\[0\].match.hosts.*"h 1"\s+is\s+not\s+the\s+name\s+of\s+a\s+host`},
		"label":                    {stage(`match = { labels = { "a.b/c" = "?" } }`), `(?s)value of stages\[0\].match.labels.*not\s+the\s+value\s+of\s+a\s+label`},
		"key of a label":           {stage(`match = { labels = { "?" = "" } }`), `(?s)value of stages\[0\].match.labels.*not\s+the\s+key\s+of\s+a\s+label`},
		"application":              {stage(`match = { applications = ["a_b"] }`), `(?s)value of stages\[0\].match.applications.*not\s+a\s+name`},
		"max_unavailable":          {stage(`max_unavailable = "0"`), `(?s)value of stages\[0\].max_unavailable.*too\s+few`},
		"soak":                     {stage(`soak = "1w"`), `(?s)value of stages\[0\].soak.*not\s+a\s+duration`},
		"approval_timeout":         {stage(`approval_timeout = "0s"`), `(?s)value of stages\[0\].approval_timeout.*too\s+short`},
		"null among stages":        {`stages = [null]`, `(?i)null`},
		"null among hosts":         {stage(`match = { hosts = [null] }`), `(?i)null`},
		"null label":               {stage(`match = { labels = { a = null } }`), `(?i)null`},
		"null among arguments":     {check(`type = "exec", script = "a", args = [null]`), `(?i)null`},
		"type of a check":          {check(`type = "ping"`), `(?s)value of checks.fleet\[0\].type.*tcp`},
		"member of another type":   {check(`type = "tcp", address = "a:1", unit = "a.service"`), `(?s)value of checks.fleet\[0\].unit.*not\s+of\s+type\s+tcp`},
		"missing member":           {check(`type = "systemd"`), `(?s)value of checks.fleet\[0\].unit.*systemd\s+unit`},
		"script":                   {check(`type = "exec", script = "../a"`), `(?s)value of checks.fleet\[0\].script.*name\s+of\s+a\s+script`},
		"url":                      {check(`type = "http", url = "ftp://a"`), `(?s)value of checks.fleet\[0\].url.*http\s+or\s+https`},
		"status":                   {check(`type = "http", url = "http://a", status = 600`), `(?s)value of checks.fleet\[0\].status.*100\s+to\s+599`},
		"status that is no number": {check(`type = "http", url = "http://a", status = 200.5`), `not\s+an\s+integer`},
		"address":                  {check(`type = "tcp", address = "a"`), `(?s)value of checks.fleet\[0\].address.*host\s+and\s+a\s+port`},
		"path":                     {check(`type = "disk", path = "var", min_free = "1GB"`), `(?s)value of checks.fleet\[0\].path.*absolute`},
		"min_free":                 {check(`type = "disk", path = "/var", min_free = "1"`), `(?s)value of checks.fleet\[0\].min_free.*free\s+space`},
		"passes":                   {check(`type = "tcp", address = "a:1", passes = 101`), `(?s)value of checks.fleet\[0\].passes.*1\s+to\s+100`},
		"timeout for the passes":   {check(`type = "tcp", address = "a:1", passes = 20`), `(?s)value of checks.fleet\[0\].timeout.*too\s+short\s+for\s+20\s+passes`},
		"interval":                 {check(`type = "tcp", address = "a:1", interval = "500ms"`), `(?s)value of checks.fleet\[0\].interval.*not\s+a\s+duration`},
		"type of a hook":           {hook(`type = "tcp"`), `(?s)value of hooks.drain.type.*exec\s+or\s+http`},
		"method":                   {hook(`type = "http", url = "http://a", method = "POTS"`), `(?s)value of hooks.drain.method.*use\s+GET,\s+HEAD`},
		"on":                       {hook(`type = "exec", script = "a", on = "worker"`), `(?s)value of hooks.drain.on.*host\s+or\s+site`},
		"retries":                  {hook(`type = "exec", script = "a", retries = 21`), `(?s)value of hooks.drain.retries.*0\s+to\s+20`},
		"retry_interval":           {hook(`type = "exec", script = "a", retry_interval = "-1s"`), `(?s)value of hooks.drain.retry_interval.*not\s+a\s+duration`},
		"command_timeouts":         {`command_timeouts = { reboot = "0s" }`, `(?s)value of command_timeouts.reboot.*too\s+short`},
	}
	maps.Copy(rows, wrongStepsAndStarts())
	w := acctest.NewWorkspace(t)
	config := acctest.Requirement
	for i, name := range slices.Sorted(maps.Keys(rows)) {
		config += fmt.Sprintf("# %s\nresource \"osupgrade_rollout\" \"r%d\" {\n%s\n}\n", name, i, rows[name].body)
	}
	w.Write(t, "main.tf", config)
	told := acctest.Diagnostics(t, w.Run(t, 1, "validate", "-json"))
	for i, name := range slices.Sorted(maps.Keys(rows)) {
		address := fmt.Sprintf("osupgrade_rollout.r%d", i)
		if len(told[address]) != 1 && name != "null label" || strings.Contains(told[address][0], "hush") {
			t.Errorf("%s: got %q, want one error, without the password", name, told[address])
		}
		if says := regexp.MustCompile(rows[name].says); !slices.ContainsFunc(told[address], says.MatchString) {
			t.Errorf("%s: got %q, want an error with %s", name, told[address], says)
		}
	}
}

func TestAccRollout_theServerChecksThePlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.AcceptRollout(func(_ string, r v1.Rollout) []v1.Error {
		return []v1.Error{
			{Message: "not that long here", Info: v1.ErrorInfo{Field: "timeouts.reboot"}},
			{Message: "no such host", Info: v1.ErrorInfo{Field: "stages[0].match.hosts[0]"}},
			{Message: "not on a Friday"},
		}
	})
	var steps []resource.TestStep
	for _, says := range []string{ // In an order that is Terraform's.
		`(?s)would not accept osupgrade_rollout.*Attribute: command_timeouts.reboot.*not that long here`,
		`(?s)Attribute: stages\[0\].match.hosts\s.*no such host`, `not on a Friday`,
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(block(complete)), PlanOnly: true, ExpectError: regexp.MustCompile(says)})
	}
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: steps})
}

func TestAccRollout_avassaHasNone(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	var none fakeapi.Fault
	none = func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			api.Inject(http.MethodPut, "/rollout", none)
			fakeapi.Status(http.StatusNotFound, "no such path")(serve).ServeHTTP(w, r)
		})
	}
	api.Inject(http.MethodPut, "/rollout", none)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{{
		Config:      server.Config(block(complete)),
		ExpectError: regexp.MustCompile(`(?s)Unable to create osupgrade_rollout.*no such path.*supported\s+by\s+osupgrade-agent\s+only;\s+Avassa's\s+own\s+API\s+has\s+no\s+such\s+object`),
	}}})
}

func TestAccRollout_importIDs(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{ResourceName: address, ImportState: true, ImportStateId: "Acme!", ExpectError: regexp.MustCompile(`"Acme!" is not the name of a tenant`)},
		{ResourceName: address, ImportState: true, ImportStateId: "beta", ExpectError: regexp.MustCompile(`(?i)cannot import non-existent`)},
	}})
}
