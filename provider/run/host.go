package run

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
)

// Host is the Terraform model of a host of a run.
type Host struct {
	Hostname types.String `tfsdk:"hostname"`
	Status   types.String `tfsdk:"status"`
	Error    types.String `tfsdk:"error"`
}

// UpToDate describes whether a host of a run had nothing to change.
const UpToDate = "Whether the host counts as upgraded because it had nothing to change; also `false` if the host does not report this."

// member is the Terraform model of a host of the resource.
type member struct {
	Host
	UpToDate types.Bool `tfsdk:"up_to_date"`
}

// HostOf returns the model of a host.
func HostOf(hostname, status, problem string) Host {
	return Host{conversion.Text(hostname), conversion.Text(status), conversion.Text(problem)}
}

// HostAttributes are the attributes of a host; text makes a computed text of a resource or
// of a data source.
func HostAttributes[A any](text func(description string) A) map[string]A {
	return map[string]A{
		"hostname": text("The name of the host."),
		"status":   text("The status of the host, such as `upgraded`, `failed` or `skipped`."),
		"error":    text("The error that the host reported, or why it was skipped; null if there is none."),
	}
}

func hostType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"hostname": types.StringType, "status": types.StringType, "error": types.StringType, "up_to_date": types.BoolType,
	}}
}
