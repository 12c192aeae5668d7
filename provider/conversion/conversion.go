// Package conversion converts between values of Terraform and plain values: the texts,
// instants, maps and lists that the API has.
//
// It decides that an absent value is null. It has no rules for values; package v1 has
// them.
package conversion

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Text converts a text; an empty text is null.
func Text(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// Time converts an instant to RFC 3339 in UTC; no instant is null.
func Time(at *time.Time) types.String {
	if at == nil || at.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(at.UTC().Format(time.RFC3339Nano))
}
