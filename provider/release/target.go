package release

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// Target are the attributes that say what runs install, of an environment and of the configuration.
type Target struct {
	Releases types.Object `tfsdk:"releases"`
	Follow   types.Object `tfsdk:"follow"`
}

// TargetAttributes are the attributes of a Target; omitted says what is so without both.
func TargetAttributes(omitted string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"releases": tenantobject.ObjectAttribute("The releases that runs install. Omitted, with `follow` omitted too: "+omitted, map[string]schema.Attribute{
			"os": tenantobject.RequiredText("The name of the release of the system: an `osupgrade_release` that is not withdrawn."),
		}),
		"follow": tenantobject.ObjectAttribute("Makes the release of each run when it is opened, of packages that are old enough, in place of `releases`.", map[string]schema.Attribute{
			"select": tenantobject.ChoiceAttribute("Which packages: `all`, also by default, or `security`.", release.All, release.Security),
			"age":    tenantobject.DurationAttribute("How old the packages must be, such as `7d`, at most `365d`; `0s` by default, which is what the repositories of a host have."),
		}),
	}
}

type named struct {
	OS types.String `tfsdk:"os"`
}

type followed struct {
	Select types.String `tfsdk:"select"`
	Age    types.String `tfsdk:"age"`
}

var (
	namedTypes    = map[string]attr.Type{"os": types.StringType}
	followedTypes = map[string]attr.Type{"select": types.StringType, "age": types.StringType}
)

// IsNull reports whether neither attribute is declared.
func (t Target) IsNull() bool { return t.Releases.IsNull() && t.Follow.IsNull() }

// ToAPI returns what is declared. All values must be known.
func (t Target) ToAPI(ctx context.Context, diags *diag.Diagnostics) (of release.Target) {
	if !t.Releases.IsNull() {
		var n named
		diags.Append(t.Releases.As(ctx, &n, basetypes.ObjectAsOptions{})...)
		of.Releases = map[string]string{release.OS: n.OS.ValueString()}
	}
	if !t.Follow.IsNull() {
		var f followed
		diags.Append(t.Follow.As(ctx, &f, basetypes.ObjectAsOptions{})...)
		of.Follow = &release.Follow{Select: f.Select.ValueString(), Age: f.Age.ValueString()}
	}
	return of
}

// FromAPI sets the attributes to the server's, and keeps the form where the meaning is the same.
func (t *Target) FromAPI(ctx context.Context, server release.Target, diags *diag.Diagnostics) {
	if reflect.DeepEqual(t.ToAPI(ctx, diags).Canonical(), server.Canonical()) {
		return
	}
	t.Releases, t.Follow = types.ObjectNull(namedTypes), types.ObjectNull(followedTypes)
	if name := server.Named(); name != "" {
		t.Releases = types.ObjectValueMust(namedTypes, map[string]attr.Value{"os": types.StringValue(name)})
	}
	if f := server.Follow; f != nil {
		t.Follow = types.ObjectValueMust(followedTypes, map[string]attr.Value{"select": conversion.Text(f.Select), "age": conversion.Text(f.Age)})
	}
}
