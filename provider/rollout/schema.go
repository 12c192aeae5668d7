package rollout

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// Schema describes the resource.
func (*Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The policy of a tenant's runs: in which order the hosts go and how many at once, what must be healthy before and after, " +
			"and what happens when a host fails. Offered by `osupgrade-agent` only; Avassa's own API has no such object. " +
			"The guide [Rollouts](../guides/rollout.md) explains how the rules work together.\n\n" +
			"There is one rollout for each tenant, and this resource owns it as a whole: an attribute that is left out has the server's default, " +
			"and when somebody sets it to something else elsewhere, the next plan shows it. A change counts from the next run on; " +
			"only `paused` also holds up a run that is under way.\n\n" +
			"A length of time is such as `30s`, `90m` or `1d4h`, and another spelling of the same length is no change. " +
			"A number of hosts is a count such as `2`, or a percentage such as `10%`.",
		Attributes: tenantresource.Attributes(ctx, attributes()),
	}
}

// attributes are those that make up the API's object.
func attributes() map[string]schema.Attribute {
	all := limitAttributes()
	all["stages"] = stagesAttribute()
	all["exempt"] = matchAttribute("The hosts that are not upgraded. They are shown as skipped, with the reason. No host is exempt by default.")
	all["exempt_reboot"] = matchAttribute("The hosts that are upgraded but not rebooted. A note at the host says so. No host by default.")
	all["checks"] = checksAttribute()
	all["hooks"] = hooksAttribute()
	all["step_timeouts"] = timeoutsAttributes()
	return all
}

// limitAttributes are the simple ones.
func limitAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"max_failures": text("The number of failed hosts at which `on_failure` happens; `1` by default. " +
			"A percentage is of the run's hosts, rounded down, but at least 1."),
		"on_failure": text("What happens then: `stop` ends the run after the hosts under way, `pause` holds it up until somebody resumes or aborts it, " +
			"`continue` goes on; `stop` by default."),
		"min_prepared": text("How many hosts must have prepared before the first one is upgraded; `100%` by default. A percentage is rounded up."),
		"overrun": text("What happens to hosts under way when the time of the run is up: `finish-host` waits for what they are doing, sends them no further command and undrains them; " +
			"`stop` leaves them behind at once; `finish-host` by default."),
		"reserve": length("How long before the end of its window a run ends; `0s` by default."),
		"splay":   length("The span at the beginning of a stage over which its hosts start; `0s` by default."),
		"paused": schema.BoolAttribute{
			Optional:            true,
			MarkdownDescription: "Whether all runs of the tenant are held up, the one under way included; `false` by default.",
		},
	}
}

func timeoutsAttributes() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How long a host may take to answer each command, from `1s` to `7d`; one that does not has failed. " +
			"The attribute `timeouts` is about Terraform's own operations instead.",
		Attributes: map[string]schema.Attribute{
			"prepare": length("For preparing; `1h` by default."),
			"upgrade": length("For upgrading; `1h` by default."),
			"reboot":  length("For rebooting; `15m` by default."),
		},
	}
}
