package tenantobject

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// ListResource lists the objects of one type that a tenant has, for terraform query. It
// decides which tenant is asked and how a failure is reported; Find says what there is.
type ListResource struct {
	// TypeName is that of the resource whose objects these are.
	TypeName string
	// About describes the list.
	About string
	// OfSite is set for objects of the site: the list has no tenant.
	OfSite bool
	// Filters are the attributes beside tenant.
	Filters map[string]schema.Attribute
	// Find returns the objects.
	Find func(ctx context.Context, ask Query) ([]Listed, error)

	data *providerdata.Data
}

var _ list.ListResourceWithConfigure = (*ListResource)(nil)

// Query is what is asked of a list.
type Query struct {
	Data   *providerdata.Data
	API    *client.Client
	Tenant string
	// Limit is how many objects are wanted at most; 0 is all.
	Limit int
	// Contents is set if the attributes of the objects are wanted too.
	Contents bool
	// Config has the filters.
	Config tfsdk.Config
	Diags  *diag.Diagnostics
}

// Listed is an object of a list.
type Listed struct {
	// Name shows the object to a person.
	Name string
	// Identity is the identity of the resource.
	Identity any
	// Fill sets the attributes, as a read after an import does.
	Fill func(ctx context.Context, to *tfsdk.Resource, diags *diag.Diagnostics)
}

// Metadata sets the type name.
func (l *ListResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = l.TypeName
}

// Configure gets the connection from the provider.
func (l *ListResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	l.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// ListResourceConfigSchema defines the configuration.
func (l *ListResource) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: l.About,
		Attributes: map[string]schema.Attribute{"tenant": schema.StringAttribute{
			Optional: true, MarkdownDescription: "The tenant; the provider's `tenant` by default. For several tenants use `for_each`.",
			Validators: []validator.String{validators.Name()},
		}},
	}
	if l.OfSite {
		delete(resp.Schema.Attributes, "tenant")
	}
	maps.Copy(resp.Schema.Attributes, l.Filters)
}

// List lists the objects of the tenant.
func (l *ListResource) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	found := l.find(ctx, req, &diags)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	if req.Limit > 0 && int64(len(found)) > req.Limit {
		found = found[:req.Limit]
	}
	results := make([]list.ListResult, 0, len(found))
	for _, one := range found {
		result := req.NewListResult(ctx)
		result.DisplayName = one.Name
		result.Diagnostics.Append(result.Identity.Set(ctx, one.Identity)...)
		if req.IncludeResource {
			one.Fill(ctx, result.Resource, &result.Diagnostics)
		}
		results = append(results, result)
	}
	stream.Results = slices.Values(results)
}

func (l *ListResource) find(ctx context.Context, req list.ListRequest, diags *diag.Diagnostics) []Listed {
	operation := "Unable to list " + l.TypeName
	tenant := ""
	if !l.OfSite {
		var own types.String
		diags.Append(req.Config.GetAttribute(ctx, path.Root("tenant"), &own)...)
		tenant = providerdata.NeedTenant(diags, l.data.TenantOr(own))
	}
	api := l.data.Client(diags, operation)
	if diags.HasError() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	found, err := l.Find(ctx, Query{Data: l.data, API: api, Tenant: tenant, Limit: int(req.Limit), Contents: req.IncludeResource, Config: req.Config, Diags: diags})
	if err != nil {
		diagnostics.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(diags, nil)
	}
	return found
}

// List returns a list of the objects of a tenant. all returns their contents by name; nil
// stands for Kind.List, or for the one object that a tenant has, or has not.
func (r *Resource[T, M, P]) List(about string, all func(ctx context.Context, ask Query) (map[string]T, error)) list.ListResource {
	switch {
	case all != nil:
	case r.kind.List != nil:
		all = r.stored
	default:
		all = r.single
	}
	return &ListResource{TypeName: r.kind.TypeName, About: about, OfSite: r.kind.NamedBy != "", Find: func(ctx context.Context, ask Query) ([]Listed, error) {
		objects, err := all(ctx, ask)
		var found []Listed
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			at := Key{ask.Tenant, name}
			if r.kind.NamedBy != "" {
				at = Key{Tenant: name}
			}
			found = append(found, r.listed(ask.API, at, objects[name]))
		}
		return found, err
	}}
}

// stored returns all objects of a tenant, in one request.
func (r *Resource[T, M, P]) stored(ctx context.Context, ask Query) (map[string]T, error) {
	objects := map[string]T{}
	all, err := r.kind.List(ctx, ask.API, ask.Tenant)
	for name, one := range all {
		objects[name] = one.Value
	}
	return objects, err
}

// single returns the one object of a tenant, if it has one.
func (r *Resource[T, M, P]) single(ctx context.Context, ask Query) (map[string]T, error) {
	at := r.store(ask.API, Key{Tenant: ask.Tenant})
	server, err := at.Get(ctx)
	switch {
	case err == nil:
		return map[string]T{"": server.Value}, nil
	case removed(ctx, at, err):
		return nil, nil
	}
	return nil, err
}

func (r *Resource[T, M, P]) listed(api *client.Client, at Key, content T) Listed {
	tenant, name := types.StringValue(at.Tenant), types.StringValue(at.Name)
	return Listed{Name: at.ID(), Identity: r.identityOf(tenant, name), Fill: func(ctx context.Context, to *tfsdk.Resource, diags *diag.Diagnostics) {
		diags.Append(to.SetAttribute(ctx, r.tenantAttribute(), tenant)...)
		if r.named() {
			diags.Append(to.SetAttribute(ctx, path.Root("name"), name)...)
		}
		model := P(new(M))
		diags.Append(to.Get(ctx, model)...)
		model.FromAPI(ctx, content, true, diags)
		r.complete(ctx, api, at, model, "Unable to list "+r.kind.TypeName, diags)
		diags.Append(to.Set(ctx, model)...)
	}}
}
