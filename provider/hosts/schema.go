package hosts

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The hosts of a tenant and the versions that they report. A host is listed if it fits each of the attributes that are given.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantobject.TenantDataAttribute(),
			"site":   tenantobject.SiteDataAttribute(),
			"inventories": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether to read the `inventory` of each host, which is some kilobytes long. Only the site's own agent has one.",
			},
			"application": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Only hosts of this worker application.",
				Validators:          []validator.String{validators.Name()},
			},
			"role": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Only hosts whose worker reports this role.",
				Validators:          []validator.String{validators.Text()},
			},
			"labels": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Only hosts whose worker reports all of these labels. Commas join alternatives: `{ shop = \"basel,bern\" }` is either.",
				Validators:          validators.Labels(),
			},
			"environment": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Only hosts of this environment; `default` has the hosts that are in no other. Supported by `osupgrade-agent` only.",
				Validators:          []validator.String{validators.Name()},
			},
			"state": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Only hosts in this state: `online` or `offline`, which is whether the worker has been heard of recently; " +
					"`busy`: no upgrade begins on it now; `outdated`: an upgrade would change something on it now; " +
					"`missed`: the last run that should have upgraded it did not.",
				Validators: []validator.String{validators.OneOf(states...)},
			},
			"version_constraints": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Only hosts that report these packages in a version that fits, such as `{ kernel = \">= 6.12, < 6.13\" }`. " +
					"The operators are `=`, `!=`, `<`, `<=`, `>` and `>=`. Versions are compared as dpkg does: numbers by value, and `~` before all else.",
				Validators: []validator.Map{mapvalidator.NoNullValues(), mapvalidator.ValueStringsAre(validators.Rule("a version constraint such as >= 6.12", constraintRule))},
			},
			"outdated_since": schema.StringAttribute{
				Optional: true, CustomType: timetypes.RFC3339Type{},
				MarkdownDescription: "Only hosts that have been outdated since this instant or longer (RFC 3339), such as `timeadd(plantimestamp(), \"-720h\")` for more than 30 days.",
			},
			"hosts": tenantobject.ComputedObjects("The hosts, sorted by name.", hostAttributes()),
		},
	}
}

func hostAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"hostname":            tenantobject.ComputedText("The name of the host."),
		"application":         tenantobject.ComputedText("The worker application of the host."),
		"online":              tenantobject.ComputedBool("Whether the host's worker has been heard of recently."),
		"last_seen":           tenantobject.ComputedText("When the host's worker was last heard of (RFC 3339); null if not since the agent started."),
		"agent_version":       tenantobject.ComputedText("The version of the agent on the host; null if unknown."),
		"role":                tenantobject.ComputedText("The role that the worker reports; null if none."),
		"environment":         tenantobject.ComputedText("The environment whose runs upgrade the host; null if it is in none, or the tenant has declared none."),
		"unplaced":            tenantobject.ComputedBool("Whether no run upgrades the host, because several environments match it."),
		"labels":              tenantobject.ComputedTextMap("The labels that the worker reports; null if none."),
		"versions":            tenantobject.ComputedTextMap("The version of each package, as last reported; null if never reported."),
		"versions_at":         tenantobject.ComputedText("When `versions` was reported (RFC 3339); null if never reported."),
		"last_run":            tenantobject.ComputedNumber("The id of the last run that the host was a member of; null if none."),
		"last_run_result":     tenantobject.ComputedText("The result of that run; null if none, or until it ends."),
		"last_run_status":     tenantobject.ComputedText("The status of the host in that run, such as `upgraded`, `failed` or `unreachable`; null if none."),
		"last_run_class":      tenantobject.ComputedText("The class of the host's failure in that run: `transient`, `artifact`, `space`, `lock`, `repository`, `install`, `boot` or `verify`; null if it did not fail, or the failure has no class."),
		"last_run_up_to_date": tenantobject.ComputedBool("Whether the host had nothing to change in that run; also `false` if the host does not report this; null if it was in none."),
		"outdated_since":      tenantobject.ComputedText("Since when an upgrade would change something on the host (RFC 3339); null if it would change nothing, or the host has not reported it."),
		"missed_since":        tenantobject.ComputedText("When the first run ended that should have upgraded the host and did not (RFC 3339); null if the last such run upgraded it."),
		"release":             tenantobject.ComputedText("The name of the release that the host has, by the last run that upgraded it; null if that had none."),
		"was":                 tenantobject.ComputedText("The name of the release that the host had before; null if it had none."),
		"busy": tenantobject.ComputedObject("Why no upgrade begins on the host now; null while one may.", map[string]schema.Attribute{
			"reason": tenantobject.ComputedText("What keeps the host busy."),
			"until":  tenantobject.ComputedText("When it is idle at the latest (RFC 3339)."),
		}),
		"warnings": tenantobject.ComputedObjects("What is wrong with the host outside of runs.", map[string]schema.Attribute{
			"kind":  tenantobject.ComputedText("The kind of the warning, such as `clock`, `key-refused`, `second-worker` or `rolled-back`."),
			"text":  tenantobject.ComputedText("What is wrong and what to do."),
			"since": tenantobject.ComputedText("When it was noticed first (RFC 3339)."),
		}),
		"inventory": tenantobject.ComputedObject("What the machine of the host consists of; null without `inventories`, and if the host has not told it. It has no serial numbers.", inventoryAttributes()),
	}
}
