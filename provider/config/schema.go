package config

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/release"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := map[string]schema.Attribute{
		applications: applicationsAttribute(),
		windows: window.ListAttribute("The maintenance windows. A run may be in progress while any of them is open; overlapping windows count as one. Their order does not matter. At most 100. " +
			"Omitted: not managed. `[]`: none, so that no run starts by itself."),
	}
	maps.Copy(all, release.TargetAttributes("not managed. They count for the hosts that are in no environment, and for environments without either. Supported by `osupgrade-agent` only."))
	resp.Schema = schema.Schema{
		MarkdownDescription: "A tenant's OS-upgrade configuration: the applications whose hosts take part, and the maintenance windows in which a run may be in progress.\n\n" +
			"Each tenant has one configuration. The resource manages the lists that it declares: an omitted list is not managed, " +
			"`[]` means none, and any other value means exactly its elements. So one Terraform configuration can own the applications of a tenant and another its windows.\n\n" +
			"Another form of the same time, time zone or duration (`4h` or `240m`) is no change. " +
			"Another order of the same windows or another case of a day is shown in the plan, but nothing is written.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForRun),
	}
}

func applicationsAttribute() schema.Attribute {
	return schema.SetAttribute{
		ElementType: types.StringType,
		Optional:    true,
		MarkdownDescription: "The names of the worker applications. Every host on which one of them is scheduled takes part. At most 1,000. " +
			"Omitted: not managed. `[]`: none.",
		Validators: []validator.Set{
			setvalidator.NoNullValues(),
			setvalidator.SizeAtMost(v1.MaxApplications),
			setvalidator.ValueStringsAre(validators.Name()),
		},
	}
}
