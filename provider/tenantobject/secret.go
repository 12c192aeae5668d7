package tenantobject

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// A secret is a member of an object that the server never returns. Its attribute is write-only:
// no plan and no state has it, and no T of this package. Only what sends the object adds it.

// Secret is the secret of an object.
type Secret[T any] struct {
	// Attribute is the write-only attribute. One of the same name with _version after it says
	// when the secret is sent again.
	Attribute string
	// Set sets the member.
	Set func(value *T, secret string)
}

// SecretAttributes returns a write-only attribute with its version.
func SecretAttributes(attribute, description string) map[string]schema.Attribute {
	version := attribute + "_version"
	return map[string]schema.Attribute{
		attribute: schema.StringAttribute{
			Optional: true, WriteOnly: true, Sensitive: true, MarkdownDescription: description + " In no state and no plan.",
			Validators: []validator.String{validators.Text(), stringvalidator.AlsoRequires(path.MatchRoot(version))},
		},
		version: schema.Int64Attribute{
			Optional: true, MarkdownDescription: "A number that you change whenever you change `" + attribute + "`: only then is it sent again.",
			Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRoot(attribute))},
		},
	}
}

// secretOf returns the secret that a change sends: null if it sends none, because its version
// is that of the state. A creation has no state.
func (r *Resource[T, M, P]) secretOf(ctx context.Context, config tfsdk.Config, state *tfsdk.State, diags *diag.Diagnostics) types.String {
	secret := types.StringNull()
	if r.kind.Secret == nil {
		return secret
	}
	version := path.Root(r.kind.Secret.Attribute + "_version")
	var now, before types.Int64
	diags.Append(config.GetAttribute(ctx, path.Root(r.kind.Secret.Attribute), &secret)...)
	if state == nil {
		return secret
	}
	diags.Append(config.GetAttribute(ctx, version, &now)...)
	diags.Append(state.GetAttribute(ctx, version, &before)...)
	if now.Equal(before) {
		return types.StringNull()
	}
	return secret
}

// confidential is a store that adds the secret to what it sends.
type confidential[T any] struct {
	store[T]
	set    func(value *T, secret string)
	secret string
}

// withSecret returns a store that sends a secret, if there is one.
func (k Kind[T]) withSecret(at store[T], secret types.String) store[T] {
	if secret.ValueString() == "" {
		return at
	}
	return confidential[T]{at, k.Secret.Set, secret.ValueString()}
}

// Put implements store.
func (s confidential[T]) Put(ctx context.Context, base client.Stored[T], value T, when client.Precondition) (client.Stored[T], error) {
	s.set(&value, s.secret)
	return s.store.Put(ctx, base, value, when)
}

// Validate implements store.
func (s confidential[T]) Validate(ctx context.Context, base client.Stored[T], value T, when client.Precondition) ([]v1.IntentWarning, error) {
	s.set(&value, s.secret)
	return s.store.Validate(ctx, base, value, when)
}
