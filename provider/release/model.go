package release

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.NamedCommon
	// Data is JSON text, so it is no attribute of the mapping.
	Data types.String `tfsdk:"data"`
	Declaration
}

// Declaration are the attributes of the API's object but for data: see tenantobject.Mapping.
type Declaration struct {
	Description types.String `tfsdk:"description"`
	Component   types.String `tfsdk:"component"`
	Version     types.String `tfsdk:"version"`
	Scheme      types.String `tfsdk:"scheme"`
	From        types.Set    `tfsdk:"from"`
	Requires    types.Map    `tfsdk:"requires"`
	Installs    types.Map    `tfsdk:"installs"`
	Downgrade   types.Bool   `tfsdk:"downgrade"`
	Packages    types.Object `tfsdk:"packages"`
	Images      types.List   `tfsdk:"images"`
	Withdrawn   types.Object `tfsdk:"withdrawn"`
}

// ToAPI returns the declared release.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Release {
	r := kind.ToAPI(ctx, m.Declaration, diags)
	if m.Data.IsNull() || m.Data.IsUnknown() {
		return r
	}
	if err := dataRule(m.Data.ValueString()); err != nil {
		diags.AddAttributeError(path.Root("data"), "Invalid value of data", err.Error())
		return r
	}
	r.Data = json.RawMessage(m.Data.ValueString())
	return r
}

// FromAPI sets the attributes from the server's release. A withdrawal that is not declared is somebody
// else's.
func (m *model) FromAPI(ctx context.Context, server v1.Release, all bool, diags *diag.Diagnostics) {
	server = shown(server)
	if server.Data == nil {
		m.Data = types.StringNull()
	} else if all || !sameData(m.Data.ValueString(), server.Data) {
		m.Data = types.StringValue(string(server.Data))
	}
	server.Data = nil
	if m.Withdrawn.IsNull() && !all {
		server.Withdrawn = nil
	}
	kind.FromAPI(ctx, &m.Declaration, server, all, diags)
}

// sameData reports whether a text is the same JSON as data.
func sameData(text string, data json.RawMessage) bool {
	return dataRule(text) == nil && release.Changed(v1.Release{Data: json.RawMessage(text)}, v1.Release{Data: data}) == ""
}

// dataRule is the rule of the attribute data.
func dataRule(text string) error {
	if !json.Valid([]byte(text)) {
		return errors.New("it is not JSON; use jsonencode()")
	}
	if found := (v1.Release{Data: json.RawMessage(text)}).Validate(); len(found) > 0 {
		return errors.New(found[0].Message)
	}
	return nil
}

// asOfRule is the rule of the attribute as_of. That it is not in the future, the server says.
func asOfRule(text string) error {
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return errors.New("it is not a time (RFC 3339); use one such as 2026-11-21T00:00:00Z")
	}
	return nil
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	return "A release is deleted", "After the deletion of release " + m.Name.ValueString() + " of tenant " + tenant +
		", no environment can name it. As long as one does, or the configuration, the server refuses the deletion."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["name"] = tenantobject.NameAttribute("The name of the release, unique in its tenant: 1 to 63 lower-case letters, digits and hyphens.")
	all["data"] = schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "Any JSON, made with `jsonencode()`, for the scripts of the `exec` strategy. A change replaces the resource.",
		Validators:          []validator.String{validators.Rule("JSON", dataRule)},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A release: what an upgrade installs. It never changes but for `description` and `withdrawn`, so that all hosts of a run, and the runs after it, install the same. " +
			"Supported by `osupgrade-agent` only; Avassa's own API has no such object.\n\n" +
			"It has exactly one of `packages`, `images` and `data`. A change of any other attribute replaces the resource. Have the name tell what the release is, such as its version, and set `create_before_destroy`: " +
			"then the new release is there before an environment names it, and the old one is deleted once none does. A tenant may have up to 500 releases, of at most 64 KiB each.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object but for data. ValidateConfig applies the API's
// rules.
func attributes() map[string]schema.Attribute {
	const replaces = " A change replaces the resource."
	versions := func(description string) schema.Attribute {
		return schema.MapAttribute{ElementType: types.StringType, Optional: true, MarkdownDescription: description + replaces}
	}
	return map[string]schema.Attribute{
		"description": tenantobject.TextAttribute("A text for people."),
		"component":   tenantobject.ChoiceAttribute("The part of a host that the release is for: `os`, also by default."+replaces, release.OS),
		"version":     tenantobject.TextAttribute("What the release is called by those who build it, such as `2.1.0`." + replaces),
		"scheme": tenantobject.ChoiceAttribute("How versions of the release are compared: `semver`, `deb` or `rpm`; `opaque`, also by default, only tells equal ones from others."+replaces,
			string(release.Semver), string(release.Deb), string(release.RPM), string(release.Opaque)),
		"from":      tenantobject.TextSetAttribute("Ranges of versions, such as `>= 2.0, < 2.1`: a host must run a version of one of them. By default any." + replaces),
		"requires":  versions("Ranges of versions that a host must report, by their names, such as `kernel`."),
		"installs":  versions("The versions that a host must report after the upgrade, by their names. If `version` is one of them, its name is what `from` is compared with; otherwise that is the version of the image or of the distribution."),
		"downgrade": tenantobject.BoolAttribute("Whether the release may replace a newer version, within its major version; `false` by default." + replaces),
		"packages": tenantobject.ObjectAttribute("Packages of the host's repositories."+replaces, map[string]schema.Attribute{
			"select": tenantobject.ChoiceAttribute("Which packages: `all`, also by default; `security`, only security updates; `listed`, only those of `only`.", release.All, release.Security, release.Listed),
			"as_of": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The time as of which the repositories count (RFC 3339), not in the future. By default the time at which a host prepares, so that two hosts may get different packages; with `same` they are refused.",
				Validators:          []validator.String{validators.Rule("a time", asOfRule)},
			},
			"only":         tenantobject.TextSetAttribute("Patterns of the names of packages that are upgraded, such as `linux-image-*`; by default all. With `listed`, `name=version` is exactly that version."),
			"except":       tenantobject.TextSetAttribute("Patterns of the names of packages that are not upgraded."),
			"distribution": tenantobject.TextAttribute("The release of the distribution to which hosts are upgraded, such as `trixie` or `42`."),
			"same":         tenantobject.BoolAttribute("Whether a host is refused that would get another version of a package than the first hosts of its run; `false` by default."),
		}),
		"images": tenantobject.ObjectListAttribute("Images of the whole system, one for each kind of host; at most 100."+replaces, map[string]schema.Attribute{
			"platform":   tenantobject.ChoiceAttribute("The platform of the hosts, such as `linux/arm64`; by default any.", release.Platforms...),
			"compatible": tenantobject.TextAttribute("What the image is compatible with, such as the compatible string of RAUC; by default any."),
			"url":        tenantobject.RequiredText("Where the image is: an `https` URL or the path of a bundle, a ref or commit of OSTree, or the reference of a container image."),
			"sha256":     tenantobject.TextAttribute("The SHA-256 sum of the file, in hex."),
			"size":       tenantobject.NumberAttribute("The size of the file in bytes.", 1),
		}),
		"withdrawn": tenantobject.ObjectAttribute("Says that the release must not be installed any more: no run is opened with it, and no further environment may name it. "+
			"Omitted: not managed, so that `osupgrade-agent withdraw` decides.", map[string]schema.Attribute{
			"reason": tenantobject.RequiredText("Why; people see it."),
		}),
	}
}
