package tenantobject

// This file stores JSON values in the private state of resources, which no plan shows.
// Private state is readable in the state file, so it never holds a secret.

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

const (
	baseKey      = "base"
	importedKey  = "imported"
	contentKey   = "content"
	successorKey = "successor"
	creationKey  = "creation"
)

// Private is the private state of a request or a response.
type Private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// snapshot is the object that a change is based on, as a read or a write left it.
type snapshot struct {
	// ETag is empty if it is not known.
	ETag string `json:"etag"`
	// Body is the object as JSON text; empty if all of it is in the state.
	Body json.RawMessage `json:"body,omitempty"`
}

// keepBase stores the base of the next change. It is not an attribute, because it would
// turn each change of a value's form into a planned change.
func keepBase(ctx context.Context, s Private, base snapshot, diags *diag.Diagnostics) {
	set(ctx, s, baseKey, base, diags)
}

// baseOf returns the stored base; the zero one if there is none, as after an import.
func baseOf(ctx context.Context, s Private, diags *diag.Diagnostics) snapshot {
	var base snapshot
	get(ctx, s, baseKey, &base, diags)
	return base
}

// keepContent stores the server's content at the time when a deletion was
// planned. Terraform plans the deletion of a resource that is no longer
// configured without a refresh, so the state may be older than the plan.
func keepContent[T any](ctx context.Context, s Private, content T, diags *diag.Diagnostics) {
	set(ctx, s, contentKey, content, diags)
}

// Content returns the stored content, or otherwise if there is none.
func contentOf[T any](ctx context.Context, s Private, otherwise T, diags *diag.Diagnostics) T {
	var content *T
	get(ctx, s, contentKey, &content, diags)
	if content == nil {
		return otherwise
	}
	return *content
}

// successor is what the creation of a replacement wants.
type successor[T any] struct {
	ID   string `json:"id"`
	Want T      `json:"want"`
}

// KeepSuccessor stores in the plan of a creation what it wants. If the creation is a part of
// a replacement, Terraform passes it to the deletion of what is replaced.
func KeepSuccessor[T any](ctx context.Context, s Private, id string, want T, diags *diag.Diagnostics) {
	set(ctx, s, successorKey, successor[T]{id, want}, diags)
}

// SuccessorOf returns what the replacement of the same object wants, and whether there is
// one.
func SuccessorOf[T any](ctx context.Context, s Private, id string, diags *diag.Diagnostics) (want T, found bool) {
	var next successor[T]
	get(ctx, s, successorKey, &next, diags)
	return next.Want, next.ID == id
}

// MarkImported records that the object has just been imported.
func MarkImported(ctx context.Context, s Private, diags *diag.Diagnostics) {
	set(ctx, s, importedKey, true, diags)
}

// TakeImported reports whether the object has been imported and not read since,
// and clears the record.
func TakeImported(ctx context.Context, s Private, diags *diag.Diagnostics) bool {
	var imported bool
	get(ctx, s, importedKey, &imported, diags)
	if imported {
		set(ctx, s, importedKey, false, diags)
	}
	return imported
}

func set(ctx context.Context, s Private, key string, value any, diags *diag.Diagnostics) {
	text, err := json.Marshal(value)
	if err != nil {
		diags.AddError("Unable to keep private state", "cannot write "+key+" as JSON: "+err.Error())
		return
	}
	diags.Append(s.SetKey(ctx, key, text)...)
}

// get leaves value as it is when the key is absent.
func get(ctx context.Context, s Private, key string, value any, diags *diag.Diagnostics) {
	text, problems := s.GetKey(ctx, key)
	diags.Append(problems...)
	if len(text) == 0 {
		return
	}
	if err := json.Unmarshal(text, value); err != nil {
		diags.AddError("Unable to read private state", "cannot read "+key+": "+err.Error())
	}
}
