package tenantobject

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// store keeps one object of a tenant: the API, or in tests the memory.
type store[T any] interface {
	// Get fails with status 404 if there is no object; see client.Missing.
	Get(ctx context.Context) (client.Stored[T], error)
	// Validate asks whether Put would be accepted, and returns what the server warns of.
	Validate(ctx context.Context, base client.Stored[T], value T, when client.Precondition) ([]v1.IntentWarning, error)
	// Put replaces the object by value, and keeps the members of base that T does not
	// have. A precondition that does not hold is status 412.
	Put(ctx context.Context, base client.Stored[T], value T, when client.Precondition) (client.Stored[T], error)
	// Delete removes the object. An absent object is no error.
	Delete(ctx context.Context, when client.Precondition) error
	// AwaitRun waits for the end of a run that blocks a write.
	AwaitRun(ctx context.Context, id uint64) error
	// TenantExists reports whether the tenant can be read.
	TenantExists(ctx context.Context) bool
}

// remote is an object of the API.
type remote[T any] struct {
	api    *client.Client
	object client.Object[T]
	tenant string
}

func (s remote[T]) Get(ctx context.Context) (client.Stored[T], error) {
	return s.object.Get(ctx, s.api, s.tenant)
}

func (s remote[T]) Validate(ctx context.Context, base client.Stored[T], value T, when client.Precondition) ([]v1.IntentWarning, error) {
	return s.object.Validate(ctx, s.api, s.tenant, base, value, when)
}

func (s remote[T]) Put(ctx context.Context, base client.Stored[T], value T, when client.Precondition) (client.Stored[T], error) {
	return s.object.Put(ctx, s.api, s.tenant, base, value, when)
}

func (s remote[T]) Delete(ctx context.Context, when client.Precondition) error {
	return s.object.Delete(ctx, s.api, s.tenant, when)
}

func (s remote[T]) AwaitRun(ctx context.Context, id uint64) error {
	return UntilUnblocked(ctx, s.api, s.tenant, id, func(v1.Run) {})
}

func (s remote[T]) TenantExists(ctx context.Context) bool {
	_, err := s.api.State(ctx, s.tenant, "")
	return err == nil
}
