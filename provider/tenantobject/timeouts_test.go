package tenantobject

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestTimeout(t *testing.T) {
	t.Parallel()
	kinds := map[string]attr.Type{"create": types.StringType, "read": types.StringType}
	set := types.ObjectValueMust(kinds, map[string]attr.Value{"create": types.StringValue("1d12h"), "read": types.StringNull()})
	for name, row := range map[string]struct {
		timeouts  types.Object
		operation string
		want      time.Duration
	}{
		"with days":              {set, "create", 36 * time.Hour},
		"null":                   {set, "read", time.Minute},
		"not an operation of it": {set, "delete", time.Minute},
		"no timeouts":            {types.ObjectNull(kinds), "create", time.Minute},
		"after an import":        {types.Object{}, "create", time.Minute},
	} {
		if got := Timeout(row.timeouts, row.operation, time.Minute); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}
