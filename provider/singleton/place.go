package singleton

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
)

// Place is where an object is: a tenant and, of a kind of which a tenant may
// have several, a name.
type Place struct{ Tenant, Name string }

// ID is the id to import it by.
func (p Place) ID() string {
	if p.Name == "" {
		return p.Tenant
	}
	return p.Tenant + "/" + p.Name
}

// OfTenant are the methods of the client for an object of which a tenant has
// one.
func OfTenant[T any](
	get func(*client.Client, context.Context, string) (T, string, error),
	put func(*client.Client, context.Context, string, T, client.Precondition) (string, error),
	validate func(*client.Client, context.Context, string, T) error,
	remove func(*client.Client, context.Context, string, client.Precondition) error,
) Requests[T] {
	return Requests[T]{
		Get: func(c *client.Client, ctx context.Context, at Place) (T, string, error) {
			return get(c, ctx, at.Tenant)
		},
		Put: func(c *client.Client, ctx context.Context, at Place, content T, when client.Precondition) (string, error) {
			return put(c, ctx, at.Tenant, content, when)
		},
		Validate: func(c *client.Client, ctx context.Context, at Place, content T) error {
			return validate(c, ctx, at.Tenant, content)
		},
		Delete: func(c *client.Client, ctx context.Context, at Place, when client.Precondition) error {
			return remove(c, ctx, at.Tenant, when)
		},
	}
}

// OfName are the methods of the client for an object that has a name.
func OfName[T any](
	get func(*client.Client, context.Context, string, string) (T, string, error),
	put func(*client.Client, context.Context, string, string, T, client.Precondition) (string, error),
	validate func(*client.Client, context.Context, string, string, T) error,
	remove func(*client.Client, context.Context, string, string, client.Precondition) error,
) Requests[T] {
	return Requests[T]{
		Get: func(c *client.Client, ctx context.Context, at Place) (T, string, error) {
			return get(c, ctx, at.Tenant, at.Name)
		},
		Put: func(c *client.Client, ctx context.Context, at Place, content T, when client.Precondition) (string, error) {
			return put(c, ctx, at.Tenant, at.Name, content, when)
		},
		Validate: func(c *client.Client, ctx context.Context, at Place, content T) error {
			return validate(c, ctx, at.Tenant, at.Name, content)
		},
		Delete: func(c *client.Client, ctx context.Context, at Place, when client.Precondition) error {
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
func (r *Resource[T, M, P]) place(model P) Place {
	return Place{model.Shared().Tenant.ValueString(), nameOf(model).ValueString()}
}
