package conversion

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestWrite_refusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	list := tftypes.List{ElementType: tftypes.String}
	for name, row := range map[string]struct {
		kind  tftypes.Type
		value any
	}{
		"text for a number":  {tftypes.Number, "1"},
		"number for a text":  {tftypes.String, 1.0},
		"text for a list":    {list, "a"},
		"number in a list":   {list, []any{1.0}},
		"list for an object": {tftypes.Object{}, []any{}},
		"number in a map":    {tftypes.Map{ElementType: tftypes.String}, map[string]any{"a": 1.0}},
		"text for a map":     {tftypes.Map{ElementType: tftypes.String}, "a"},
		"number below":       {tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": list}}, map[string]any{"a": 1.0}},
	} {
		if got, err := Write(row.kind, row.value, func(attribute string) string { return attribute }); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}
