// Package value turns plain values of the API into those of attributes.
//
// It decides that what is absent from an answer is null.
package value

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Text is null when text is empty.
func Text(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// Time is the text of an instant as in RFC 3339, in UTC; null when there is
// none.
func Time(at *time.Time) types.String {
	if at == nil || at.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(at.UTC().Format(time.RFC3339Nano))
}
