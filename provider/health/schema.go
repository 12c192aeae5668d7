package health

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Whether a run could begin now: the results of `checks.start` of the rollout. Supported by `osupgrade-agent` only.\n\n" +
			"Each read, so each plan, runs these checks at the site and on the hosts, and waits for their results. It starts no run. " +
			"The token must have the right to start runs.\n\n" +
			"A failed check is not an error: use `ok` in a `check` block or in a condition. A host that does not answer in time has failed the check.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantobject.TenantDataAttribute(),
			"environment": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The environment whose rollout has the checks; `default` has the hosts that are in no other. Needed if several environments have hosts.",
				Validators:          []validator.String{validators.Name()},
			},
			"ok": tenantobject.ComputedBool("Whether no check has failed. True if the rollout has no start checks."),
			"checks": tenantobject.ComputedObjects("The results in the order of the checks; a check that is asked on several hosts has one for each of them. Empty if the rollout has no start checks.", map[string]schema.Attribute{
				"name":   tenantobject.ComputedText("The name of the check."),
				"host":   tenantobject.ComputedText("The host on which it was asked; null if that was the site, or if no host matches the check."),
				"result": tenantobject.ComputedText("`passed`, `failed`, or `not asked` if no host matches the check."),
				"text":   tenantobject.ComputedText("What is wrong, or why the check was not asked; null if it has passed."),
			}),
		},
	}
}
