package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// filter chooses what is asked for, and lists what is wrong with it. A value
// that is not known yet does not choose.
func (m *model) filter() (v1.RunFilter, v1.Problems) {
	var wrong v1.Problems
	instant := func(field string, text types.String) time.Time {
		if text.IsNull() || text.IsUnknown() {
			return time.Time{}
		}
		at, err := time.Parse(time.RFC3339, text.ValueString())
		if err != nil {
			wrong = append(wrong, v1.Problem{Field: field, Value: text.ValueString(), Message: fmt.Sprintf(
				"%q is not an instant as in RFC 3339; use one such as 2026-11-27T00:00:00Z", text.ValueString())})
		}
		return at
	}
	f := v1.RunFilter{
		Result: m.Result.ValueString(), Host: m.Host.ValueString(),
		Since: instant("since", m.Since), Until: instant("until", m.Until),
		Limit: int(m.Limit.ValueInt64()),
	}
	return f, append(wrong, f.Validate()...)
}

// ValidateConfig applies the API's rules of a filter.
func (*DataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	_, wrong := m.filter()
	for _, problem := range wrong {
		at := path.Root(problem.Field)
		resp.Diagnostics.AddAttributeError(at, "Invalid value of "+at.String(), problem.Message)
	}
}
