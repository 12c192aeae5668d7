// Package tenantobject implements the resources that manage one object of a tenant, such
// as the configuration, the rollout or a named calendar, and the data sources, which read
// something about one tenant.
//
// It decides what to write and when a write would overwrite somebody else's change: it
// creates, reads, updates and deletes by ETag. A Kind defines the content of its object
// and which part of it the resource owns; a Mapping does so for objects that a resource
// owns completely. The package never starts or ends a run.
//
// What an operation does is in two files: resource.go has Create, Read, Update and Delete from
// the plan to the state, and write.go what becomes of the object on the server. All else is
// what they use: parts.go (which part is owned), mapping.go and defaults.go (attributes and
// members), store.go and prefetch.go (requests), silence.go (a server that does not answer),
// private.go (what a plan tells its apply). plan.go has what a plan looks at, entries.go the
// windows that have a resource each, and exchange.go what creations and
// deletions of one apply owe each other.
package tenantobject

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// Default timeouts. The deletion of a configuration waits for a run under way, but no longer
// than suits a CI job of an hour.
const (
	createLimit = 10 * time.Minute
	readLimit   = 5 * time.Minute
	updateLimit = 10 * time.Minute
	deleteLimit = 50 * time.Minute
)

// Kind is a kind of object with content T. A T is also used for the part of an
// object that a resource owns.
type Kind[T any] struct {
	// TypeName is the type name of the resource.
	TypeName string
	// Noun names the object for people, such as "configuration".
	Noun string
	// NotFound is the advice for a write that fails with 404; empty means the
	// usual advice. Refused is the advice for a deletion that is refused with 412 because the
	// object is in use.
	NotFound, Refused string
	// Doubt is the summary of what the server warns of; empty means that no host matches.
	Doubt string
	// Locate returns the attribute of a field of the API.
	Locate diagnostics.Locate
	// Validate applies the API's rules to a configuration; nil if the attributes have
	// validators for all of them.
	Validate func(config tftypes.Value, diags *diag.Diagnostics)
	// Warn adds warnings about the effect of a change. A nil Warn warns of nothing.
	Warn func(ctx context.Context, change Change[T], diags *diag.Diagnostics)
	// Guard refuses changes after which nobody could undo them; nil if there are none.
	Guard *Guard[T]

	// Secret is what the server never returns; nil if there is nothing.
	Secret *Secret[T]
	// Computed are the attributes that the server gives a new object: see Completed.
	Computed []string
	// Immutable tells that an object cannot become the one that replaces it: it is deleted first.
	Immutable bool
	// ForAll is set if there are objects of all tenants, of the tenant *. ValidName reports
	// whether a text is the name of an object; nil is the rule of most.
	ForAll    bool
	ValidName func(name string) bool

	// Needs returns which other objects an object refers to, each as Needed names it; nil if it
	// refers to none.
	Needs func(want T, at Key) []string
	// NamedBy is the attribute that names the tenant; empty is tenant. With another one, the
	// object is the tenant itself, and the provider's tenant does not matter.
	NamedBy string

	// Beside returns what the owner of a whole list has to do with resources of single
	// entries; nil if there are none.
	Beside func(data *providerdata.Data, api *client.Client, tenant string) Beside[T]
	// Object returns the client's object of a key.
	Object func(at Key) client.Object[T]
	// List gets all objects of a tenant by name, in one request. It is nil if a tenant has
	// one object of the kind, or the API has no such list with the revision of each.
	List func(ctx context.Context, api *client.Client, tenant string) (map[string]client.Stored[T], error)
	// Parts are the parts of the object that a resource may own.
	Parts Parts[T]
}

// Beside is told what the owner of a list has and wants, so that entries can move between a
// list and resources of their own.
type Beside[T any] interface {
	// OwnAll records what is owned.
	OwnAll(owned T)
	// HoldAll records what is wanted: no other resource of the process removes it.
	HoldAll(want T)
	// Left returns what a deletion leaves: want, and what of the owned part other resources
	// of the process ask for.
	Left(ctx context.Context, owned, want T) T
}

// Guard refuses changes after which nobody could undo them. It is asked of each plan, also of
// one that is not validated.
type Guard[T any] struct {
	// By is the attribute that decides. A plan in which it is not known is not looked at.
	By string
	// Refuse adds an error about a change that is refused.
	Refuse func(ctx context.Context, change Change[T], diags *diag.Diagnostics)
}

// Change is a planned change of an object.
type Change[T any] struct {
	// API is nil if the server cannot be asked. A plan that creates an object is made
	// twice, so it asks only what matters most.
	API *client.Client
	// Data is what the process shares; nil if it shares nothing.
	Data *providerdata.Data
	// Now is the time of the plan.
	Now time.Time
	At  Key
	// Prior is what the resource owned; nil if it is created.
	Prior *T
	Want  T
	// Deletion is set if the object is deleted; there is no Want then. Renamed is set too if
	// one of another name is created after that.
	Deletion, Renamed bool
	// Renews is set if a new secret is sent.
	Renews bool
}

// Model is the Terraform model of a resource.
type Model[T any] interface {
	// Shared returns the common attributes.
	Shared() *Common
	// ToAPI returns the owned part. All values must be known.
	ToAPI(ctx context.Context, diags *diag.Diagnostics) T
	// FromAPI sets the managed attributes to the server's content. It keeps the
	// form of values with the same meaning. If all is set, as after an import,
	// it sets every attribute.
	FromAPI(ctx context.Context, server T, all bool, diags *diag.Diagnostics)
	// Loss describes the effect of a deletion; empty if there is none.
	Loss(tenant string) (summary, detail string)
}

// Claimant is a model that manages parts of an object; any other model manages all of it.
type Claimant interface {
	// Claims maps each managed part of the tenant, in words, to its attribute.
	Claims() map[string]path.Path
}

// Resource is a resource of one kind, without its Schema.
type Resource[T, M any, P interface {
	*M
	Model[T]
}] struct {
	kind Kind[T]
	data *providerdata.Data
}

// New returns a resource of a kind.
func New[T, M any, P interface {
	*M
	Model[T]
}](kind Kind[T]) Resource[T, M, P] {
	return Resource[T, M, P]{kind: kind}
}

// Metadata sets the type name.
func (r *Resource[T, M, P]) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.kind.TypeName
}

// Configure gets the connection from the provider.
func (r *Resource[T, M, P]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig applies the API's rules.
func (r *Resource[T, M, P]) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if r.kind.Validate != nil {
		r.kind.Validate(req.Config.Raw, &resp.Diagnostics)
	}
}

// Key identifies an object: by its tenant and, if a tenant may have several
// objects of the kind, by its name.
type Key struct{ Tenant, Name string }

// ID returns the id for an import.
func (k Key) ID() string {
	if k.Name == "" {
		return k.Tenant
	}
	return k.Tenant + "/" + k.Name
}

// Named is a model of a named object. NamedCommon is one.
type Named interface {
	// ObjectName returns the attribute name.
	ObjectName() types.String
}

// renewed reports whether a replacement by the same object begins anew: the server gives the new
// object what only the old one had, nobody can see what it has, or the old one cannot become it.
func (k Kind[T]) renewed() bool { return len(k.Computed) > 0 || k.Secret != nil || k.Immutable }

// Completed is a model with attributes that the object of the API does not have.
type Completed interface {
	// Complete asks the server for them. If that fails, they are null.
	Complete(ctx context.Context, api *client.Client, at Key) error
}

// complete completes a model, if there is something to complete.
func (r *Resource[T, M, P]) complete(ctx context.Context, api *client.Client, at Key, model P, operation string, diags *diag.Diagnostics) {
	if incomplete, ok := any(model).(Completed); ok {
		if err := incomplete.Complete(ctx, api, at); err != nil {
			r.kind.report(diags, operation, at, err)
		}
	}
}

// completeWritten completes the model of an object that has been written. A failure is a
// warning: after an error, Terraform would replace what was created.
func (r *Resource[T, M, P]) completeWritten(ctx context.Context, api *client.Client, at Key, model P, diags *diag.Diagnostics) {
	incomplete, ok := any(model).(Completed)
	if !ok {
		return
	}
	ask := func(ctx context.Context) error { return incomplete.Complete(ctx, api, at) }
	err := ask(ctx)
	if silent(err) {
		err = silenceOf(r.data).outlast(ctx, ask)
	}
	if err != nil {
		diags.AddWarning("The "+r.kind.Noun+" could not be read back",
			"The write succeeded, but the read of "+strings.Join(r.kind.Computed, ", ")+" after it failed: "+err.Error()+"\n\nThe next plan reads it again.")
	}
}

// Begun is a model whose object is created in another way than it is changed.
type Begun[T any] interface {
	// Begin returns the object as its creation writes it.
	Begin(ctx context.Context, api *client.Client) (client.Object[T], error)
}

// creatable returns the object that the creation of a resource writes.
func (r *Resource[T, M, P]) creatable(ctx context.Context, api *client.Client, at Key, plan P) (store[T], error) {
	begun, ok := any(plan).(Begun[T])
	if !ok {
		return r.store(api, at), nil
	}
	object, err := begun.Begin(ctx, api)
	return remote[T]{api, object, at.Tenant}, err
}

// Forcible is a model of an object that may be deleted while it is in use.
type Forcible interface {
	// Force returns the attribute force_destroy.
	Force() types.Bool
}

// nameOf returns the name of a model; null if it is not Named.
func nameOf(model any) types.String {
	if named, ok := model.(Named); ok {
		return named.ObjectName()
	}
	return types.StringNull()
}

// store returns the object of a key.
func (r *Resource[T, M, P]) store(api *client.Client, at Key) store[T] {
	object := remote[T]{api, r.kind.Object(at), at.Tenant}
	if r.kind.List == nil {
		return object
	}
	return listed[T]{object, at.Name, r.prefetched(api, at.Tenant)}
}

// deletable returns the object of a resource that is deleted.
func (r *Resource[T, M, P]) deletable(api *client.Client, at Key, state P) store[T] {
	if forcible, ok := any(state).(Forcible); ok && forcible.Force().ValueBool() {
		return remote[T]{api, r.kind.Object(at).Forced(), at.Tenant}
	}
	return r.store(api, at)
}

// prefetched returns what the process has read of the objects of a tenant in one request.
func (r *Resource[T, M, P]) prefetched(api *client.Client, tenant string) *prefetch[T] {
	kept := r.data.Once("objects of "+r.kind.TypeName+" "+tenant, func() any {
		return &prefetch[T]{list: func(ctx context.Context) (map[string]client.Stored[T], error) {
			return r.kind.List(ctx, api, tenant)
		}}
	})
	objects, _ := kept.(*prefetch[T])
	return objects
}

// beside calls do if there may be resources of single entries beside an object.
func (r *Resource[T, M, P]) beside(api *client.Client, at Key, do func(Beside[T])) {
	if r.kind.Beside != nil && api != nil {
		do(r.kind.Beside(r.data, api, at.Tenant))
	}
}

// tenantAttribute returns the attribute that names the tenant.
func (r *Resource[T, M, P]) tenantAttribute() path.Path {
	return path.Root(cmp.Or(r.kind.NamedBy, "tenant"))
}

// key returns the key of a model's object. Tenant and name must be known.
func (r *Resource[T, M, P]) key(model P) Key {
	return Key{model.Shared().Tenant.ValueString(), nameOf(model).ValueString()}
}
