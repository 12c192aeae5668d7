// Package limit is the attribute timeouts of resources, described in one
// place.
//
// It decides nothing; each resource names its own limits.
package limit

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Attribute is the attribute timeouts with the limits in opts, each of which
// must have a description.
func Attribute(ctx context.Context, opts timeouts.Opts) schema.Attribute {
	attribute := timeouts.Attributes(ctx, opts)
	if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long the operations may take, retries included. " +
			"Each is a number with a unit, such as `30s`, `10m` or `2h45m`."
		return nested
	}
	return attribute
}
