// Package private is what resources keep in their private state: JSON beside
// the attributes that no plan shows.
//
// It decides the keys. It is readable in the state file, and so never holds a
// secret.
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

// KeepETag stores the ETag that the content in the state came with. It is no
// attribute, since one that moves by itself would make a change out of every
// respelling (terraform.md 4.4).
func KeepETag(ctx context.Context, s State, etag string, diags *diag.Diagnostics) {
	set(ctx, s, etagKey, etag, diags)
}

// ETag is the one that was kept; empty when none was, as after an import.
func ETag(ctx context.Context, s State, diags *diag.Diagnostics) string {
	var etag string
	get(ctx, s, etagKey, &etag, diags)
	return etag
}

// KeepContent stores what the API had when a deletion was planned. Terraform
// plans the deletion of a resource that is no longer configured before it
// reads it anew, so that the state may be older than the plan.
func KeepContent[T any](ctx context.Context, s State, content T, diags *diag.Diagnostics) {
	set(ctx, s, contentKey, content, diags)
}

// Content is what was kept, or otherwise when nothing was.
func Content[T any](ctx context.Context, s State, otherwise T, diags *diag.Diagnostics) T {
	var content *T
	get(ctx, s, contentKey, &content, diags)
	if content == nil {
		return otherwise
	}
	return *content
}

// MarkImported notes that the object has just been imported.
func MarkImported(ctx context.Context, s State, diags *diag.Diagnostics) {
	set(ctx, s, importedKey, true, diags)
}

// TakeImported reports whether the object has been imported and not read
// since, and forgets it.
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
