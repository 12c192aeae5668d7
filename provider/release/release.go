// Package release is the resource osupgrade_release, which says what an upgrade installs, and the data
// source osupgrade_releases. Only osupgrade-agent supports releases.
//
// It defines the attributes, and which changes replace a release. Package tenantobject maps them to the
// members of the API's object, and reads and writes it.
package release

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_release"

// Resource is osupgrade_release.
type Resource struct {
	tenantobject.Resource[v1.Release, model, *model]
}

var (
	_ resource.ResourceWithConfigure        = (*Resource)(nil)
	_ resource.ResourceWithConfigValidators = (*Resource)(nil)
	_ resource.ResourceWithIdentity         = (*Resource)(nil)
	_ resource.ResourceWithImportState      = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan       = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig   = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Release]{
	TypeName: TypeName, Describe: attributes, Elsewhere: map[string]string{"name": "name", "data": "data"},
	Meaning: meaning, Validate: validate,
}

// meaning returns the canonical form with every default.
func meaning(r v1.Release) v1.Release { return shown(r).WithDefaults() }

// shown returns the canonical form without what the site writes of a withdrawal.
func shown(r v1.Release) v1.Release {
	r = r.Canonical()
	if r.Withdrawn != nil {
		r.Withdrawn = &release.Withdrawn{Reason: r.Withdrawn.Reason}
	}
	return r
}

// validate applies the API's rules but for those of data, which is a text here and has its own
// validator.
func validate(r v1.Release) v1.Problems {
	if r.Packages == nil && len(r.Images) == 0 {
		r.Data = []byte("0")
	}
	return r.Validate()
}

// New returns the resource.
func New() resource.Resource {
	of := kind.Kind("Releases", tenantobject.Kind[v1.Release]{
		Noun: "release", Immutable: true,
		Refused: "Have each environment, and the configuration of the tenant, name another release first.",
		Object:  func(at tenantobject.Key) client.Object[v1.Release] { return client.ReleaseNamed(at.Name) },
		List: func(ctx context.Context, api *client.Client, tenant string) (map[string]client.Stored[v1.Release], error) {
			return api.StoredReleases(ctx, tenant)
		},
	})
	of.Parts = tenantobject.Parts[v1.Release]{content(of.Parts[0]), withdrawal()}
	return &Resource{tenantobject.New[v1.Release, model](of)}
}

// content is the whole of a release but for its withdrawal.
func content(whole tenantobject.Part[v1.Release]) tenantobject.Part[v1.Release] {
	only := func(r v1.Release) v1.Release {
		r.Withdrawn = nil
		return r
	}
	return tenantobject.Part[v1.Release]{
		Owned: whole.Owned,
		Same:  func(a, b v1.Release) bool { return whole.Same(only(a), only(b)) },
		Copy: func(to *v1.Release, from v1.Release) {
			if from.Packages != nil || len(from.Images) > 0 || from.Data != nil {
				from.Withdrawn = to.Withdrawn
			} // Else it is deleted, and its withdrawal with it.
			*to = from
		},
		Clear: func(r *v1.Release) { *r = v1.Release{Withdrawn: r.Withdrawn} },
		Conflicts: func(prior, server, want v1.Release) []tenantobject.Conflict {
			return whole.Conflicts(only(prior), only(server), only(want))
		},
	}
}

// withdrawal is owned where it is declared: an operator may withdraw a release in the meantime.
func withdrawal() tenantobject.Part[v1.Release] {
	reason := func(r v1.Release) string {
		if r.Withdrawn == nil {
			return ""
		}
		return r.Withdrawn.Reason
	}
	reasons := func(r v1.Release) []string {
		if r.Withdrawn == nil {
			return nil
		}
		return []string{r.Withdrawn.Reason}
	}
	return tenantobject.Part[v1.Release]{
		Owned: func(r v1.Release) bool { return r.Withdrawn != nil },
		Same:  func(a, b v1.Release) bool { return reason(a) == reason(b) },
		Copy:  func(to *v1.Release, from v1.Release) { to.Withdrawn = from.Withdrawn },
		Clear: func(r *v1.Release) { r.Withdrawn = nil },
		Conflicts: func(prior, server, want v1.Release) []tenantobject.Conflict {
			return []tenantobject.Conflict{{
				At: path.Root("withdrawn"), Unowned: prior.Withdrawn == nil, Was: reasons(prior), Server: reasons(server), Want: reasons(want),
			}}
		},
	}
}

// ConfigValidators refuses a release with none or several of packages, images and data.
func (*Resource) ConfigValidators(context.Context) []resource.ConfigValidator {
	return []resource.ConfigValidator{
		resourcevalidator.ExactlyOneOf(path.MatchRoot("packages"), path.MatchRoot("images"), path.MatchRoot("data")),
	}
}

// ModifyPlan plans a replacement if a member differs that cannot change, however it is spelt. All else
// is as for any object.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !req.State.Raw.IsNull() && !req.Plan.Raw.IsNull() {
		if at, replaced := replacing(ctx, req.State, req.Plan, &resp.Diagnostics); replaced {
			// Terraform asks again, for the creation.
			resp.RequiresReplace = append(resp.RequiresReplace, at)
			return
		}
	}
	r.Resource.ModifyPlan(ctx, req, resp)
}

// replacing returns the attribute of a member that differs and cannot change. One that is not known
// yet differs.
func replacing(ctx context.Context, state tfsdk.State, plan tfsdk.Plan, diags *diag.Diagnostics) (path.Path, bool) {
	var was, next model
	diags.Append(state.Get(ctx, &was)...)
	diags.Append(plan.Get(ctx, &next)...)
	if diags.HasError() {
		return path.Path{}, false
	}
	// An unknown value is left out, and so differs from one that is there.
	member := release.Changed(was.ToAPI(ctx, diags), next.ToAPI(ctx, diags))
	if member == "" || diags.HasError() {
		return path.Path{}, false
	}
	at, known := kind.Locate(member)
	return at, known
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The releases of a tenant.", nil)
}
