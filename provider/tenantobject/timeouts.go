package tenantobject

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// The attribute timeouts is not that of the library terraform-plugin-framework-timeouts,
// which refuses 1d: a duration has one form in all attributes.

// longestTimeout is the largest value of a timeout.
const longestTimeout = 30 * 24 * time.Hour

// AboutTimeouts describes the attribute timeouts.
const AboutTimeouts = "How long each operation may take, retries included. A timeout is a duration such as `30s`, `10m`, `2h45m` or `1d`."

// TimeoutValidators validate a timeout.
func TimeoutValidators() []validator.String {
	return []validator.String{validators.Duration(time.Second, longestTimeout)}
}

// TimeoutsAttribute returns the attribute timeouts with the described operations, such
// as create.
func TimeoutsAttribute(operations map[string]string) schema.Attribute {
	attributes := map[string]schema.Attribute{}
	for operation, description := range operations {
		attributes[operation] = schema.StringAttribute{
			Optional: true, MarkdownDescription: description,
			Validators: TimeoutValidators(),
		}
	}
	return Typed(schema.SingleNestedAttribute{
		Optional: true, Attributes: attributes,
		MarkdownDescription: AboutTimeouts,
	})
}

// Timeout returns the timeout of an operation in the attribute timeouts, or usual if it is
// not set.
func Timeout(timeouts types.Object, operation string, usual time.Duration) time.Duration {
	text, ok := timeouts.Attributes()[operation].(types.String)
	if !ok {
		return usual
	}
	if limit, err := window.ParseDuration(text.ValueString()); err == nil {
		return limit
	}
	return usual
}
