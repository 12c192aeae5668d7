// Package singleton is what resources have in common that are one object of a
// tenant: its configuration, its rollout, or a calendar of some name.
//
// It decides what to write, and when somebody else's change must not be
// overwritten. What such an object holds, and which part of it a resource
// owns, each Kind says itself. It never starts or ends a run.
package tenantresource

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// Limits of the operations when the attribute timeouts names none. Deletion
// waits for a run that is under way, and a run by hand may take four hours.
const (
	createLimit = 10 * time.Minute
	readLimit   = 5 * time.Minute
	updateLimit = 10 * time.Minute
	deleteLimit = 4*time.Hour + 10*time.Minute
)

// Kind is one kind of object, whose content is a T. A T may also be the part
// of an object that a resource owns.
type Kind[T any] struct {
	// TypeName is the name of the resource.
	TypeName string
	// Noun is the object in words, such as "configuration".
	Noun string
	// Absent is how our agent's words begin for an object that is not there;
	// %q is the tenant.
	Absent string
	// NotFound says what to do when a write finds no place; empty for the
	// usual advice.
	NotFound string
	// Locate finds the attribute of a field of the API.
	Locate diagnostic.Locate
	// Foresee warns of what a change leads to; nil when there is nothing to warn
	// of. A nil api is one that is not to be asked. It adds no error.
	Foresee func(ctx context.Context, api *client.Client, now time.Time, at Key, want T, diags *diag.Diagnostics)

	Requests[T]
	Rules[T]
}

// Requests are the methods of the client for such an object: see PerTenant and
// PerName.
type Requests[T any] struct {
	Get      func(c *client.Client, ctx context.Context, at Key) (T, string, error)
	Put      func(c *client.Client, ctx context.Context, at Key, content T, when client.Precondition) (string, error)
	Validate func(c *client.Client, ctx context.Context, at Key, content T) error
	Delete   func(c *client.Client, ctx context.Context, at Key, when client.Precondition) error
}

// Rules tell what belongs to whom. In them prior is what a resource owned,
// want is what it shall own, and server is what is there.
type Rules[T any] struct {
	// Merged is the whole object to write.
	Merged func(want, server T) T
	// Settled reports whether the server has what is owned.
	Settled func(want, server T) bool
	// Unchanged reports whether there is nothing to write.
	Unchanged func(prior, want T) bool
	// Conflicts lists what somebody else wrote and a write would overwrite.
	Conflicts func(prior, server, want T) []Conflict
	// OwnsAll reports whether nothing of the object is somebody else's.
	OwnsAll func(owned T) bool
	// Empty reports whether nothing is left that is worth an object.
	Empty func(content T) bool
	// Restricted is the part of the content that is owned.
	Restricted func(content, owned T) T
	// Emptied is what is left of what is owned when it is given up.
	Emptied func(owned T) T
}

// Model is such a resource as Terraform has it.
type Model[T any] interface {
	// Shared are the common attributes.
	Shared() *Common
	// ToAPI is what the model owns. All values must be known.
	ToAPI(ctx context.Context, diags *diag.Diagnostics) T
	// FromAPI takes over what the server has of what the model manages, in the
	// spelling that it has. With all it begins to manage all that is there, as
	// after an import.
	FromAPI(ctx context.Context, server T, all bool, diags *diag.Diagnostics)
	// Claims are what it manages of the tenant, and where that stands.
	Claims() map[string]path.Path
	// Loss tells what it means to delete it; empty when it means nothing.
	Loss(tenant string) (summary, detail string)
}

// Resource is a resource of one kind. It lacks its Schema.
type Resource[T, M any, P interface {
	*M
	Model[T]
}] struct {
	kind       Kind[T]
	connection *connection.Connection
}

// New makes a resource of a kind.
func New[T, M any, P interface {
	*M
	Model[T]
}](kind Kind[T]) Resource[T, M, P] {
	return Resource[T, M, P]{kind: kind}
}

// Metadata names the resource.
func (r *Resource[T, M, P]) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.kind.TypeName
}

// Configure takes the connection over from the provider.
func (r *Resource[T, M, P]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.connection = connection.From(req.ProviderData, &resp.Diagnostics)
}

// Key is where an object is: a tenant and, of a kind of which a tenant may
// have several, a name.
type Key struct{ Tenant, Name string }

// ID is the id to import it by.
func (p Key) ID() string {
	if p.Name == "" {
		return p.Tenant
	}
	return p.Tenant + "/" + p.Name
}

// PerTenant are the methods of the client for an object of which a tenant has
// one.
func PerTenant[T any](
	get func(*client.Client, context.Context, string) (T, string, error),
	put func(*client.Client, context.Context, string, T, client.Precondition) (string, error),
	validate func(*client.Client, context.Context, string, T) error,
	remove func(*client.Client, context.Context, string, client.Precondition) error,
) Requests[T] {
	return Requests[T]{
		Get: func(c *client.Client, ctx context.Context, at Key) (T, string, error) {
			return get(c, ctx, at.Tenant)
		},
		Put: func(c *client.Client, ctx context.Context, at Key, content T, when client.Precondition) (string, error) {
			return put(c, ctx, at.Tenant, content, when)
		},
		Validate: func(c *client.Client, ctx context.Context, at Key, content T) error {
			return validate(c, ctx, at.Tenant, content)
		},
		Delete: func(c *client.Client, ctx context.Context, at Key, when client.Precondition) error {
			return remove(c, ctx, at.Tenant, when)
		},
	}
}

// PerName are the methods of the client for an object that has a name.
func PerName[T any](
	get func(*client.Client, context.Context, string, string) (T, string, error),
	put func(*client.Client, context.Context, string, string, T, client.Precondition) (string, error),
	validate func(*client.Client, context.Context, string, string, T) error,
	remove func(*client.Client, context.Context, string, string, client.Precondition) error,
) Requests[T] {
	return Requests[T]{
		Get: func(c *client.Client, ctx context.Context, at Key) (T, string, error) {
			return get(c, ctx, at.Tenant, at.Name)
		},
		Put: func(c *client.Client, ctx context.Context, at Key, content T, when client.Precondition) (string, error) {
			return put(c, ctx, at.Tenant, at.Name, content, when)
		},
		Validate: func(c *client.Client, ctx context.Context, at Key, content T) error {
			return validate(c, ctx, at.Tenant, at.Name, content)
		},
		Delete: func(c *client.Client, ctx context.Context, at Key, when client.Precondition) error {
			return remove(c, ctx, at.Tenant, at.Name, when)
		},
	}
}

// Named is a model of an object that has a name.
type Named interface {
	// ObjectName is its attribute name.
	ObjectName() types.String
}

// nameOf is the name of a model that has one, and null for another.
func nameOf(model any) types.String {
	if named, ok := model.(Named); ok {
		return named.ObjectName()
	}
	return types.StringNull()
}

// place is where a model's object is. All of it must be known.
func (r *Resource[T, M, P]) place(model P) Key {
	return Key{model.Shared().Tenant.ValueString(), nameOf(model).ValueString()}
}
