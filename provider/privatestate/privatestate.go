// Package privatestate stores JSON values in the private state of resources,
// which no plan shows.
//
// It decides the keys. Private state is readable in the state file, so it never
// holds a secret.
package privatestate

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

const (
	etagKey     = "etag"
	importedKey = "imported"
	contentKey  = "content"
)

// State is the private state of a request or a response.
type State interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// KeepETag stores the ETag of the content in the state. The ETag is not an
// attribute, because it would turn each change of a value's form into a planned
// change (terraform.md 4.4).
func KeepETag(ctx context.Context, s State, etag string, diags *diag.Diagnostics) {
	set(ctx, s, etagKey, etag, diags)
}

// ETag returns the stored ETag; empty if there is none, as after an import.
func ETag(ctx context.Context, s State, diags *diag.Diagnostics) string {
	var etag string
	get(ctx, s, etagKey, &etag, diags)
	return etag
}

// KeepContent stores the server's content at the time when a deletion was
// planned. Terraform plans the deletion of a resource that is no longer
// configured without a refresh, so the state may be older than the plan.
func KeepContent[T any](ctx context.Context, s State, content T, diags *diag.Diagnostics) {
	set(ctx, s, contentKey, content, diags)
}

// Content returns the stored content, or otherwise if there is none.
func Content[T any](ctx context.Context, s State, otherwise T, diags *diag.Diagnostics) T {
	var content *T
	get(ctx, s, contentKey, &content, diags)
	if content == nil {
		return otherwise
	}
	return *content
}

// MarkImported records that the object has just been imported.
func MarkImported(ctx context.Context, s State, diags *diag.Diagnostics) {
	set(ctx, s, importedKey, true, diags)
}

// TakeImported reports whether the object has been imported and not read since,
// and clears the record.
func TakeImported(ctx context.Context, s State, diags *diag.Diagnostics) bool {
	var imported bool
	get(ctx, s, importedKey, &imported, diags)
	if imported {
		set(ctx, s, importedKey, false, diags)
	}
	return imported
}

func set(ctx context.Context, s State, key string, value any, diags *diag.Diagnostics) {
	text, err := json.Marshal(value)
	if err != nil {
		diags.AddError("Unable to keep private state", "cannot write "+key+" as JSON: "+err.Error())
		return
	}
	diags.Append(s.SetKey(ctx, key, text)...)
}

// get leaves value as it is when the key is absent.
func get(ctx context.Context, s State, key string, value any, diags *diag.Diagnostics) {
	text, problems := s.GetKey(ctx, key)
	diags.Append(problems...)
	if len(text) == 0 {
		return
	}
	if err := json.Unmarshal(text, value); err != nil {
		diags.AddError("Unable to read private state", "cannot read "+key+": "+err.Error())
	}
}
