package function

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// fromJSON is a JSON value as a configuration's jsondecode gives it.
func fromJSON(value any) attr.Value {
	switch value := value.(type) {
	case string:
		return types.StringValue(value)
	case bool:
		return types.BoolValue(value)
	case float64:
		return types.Float64Value(value)
	case []any:
		values, kinds := []attr.Value{}, []attr.Type{}
		for _, each := range value {
			v := fromJSON(each)
			values, kinds = append(values, v), append(kinds, v.Type(context.Background()))
		}
		return types.TupleValueMust(kinds, values)
	case map[string]any:
		m := members{}
		for name, each := range value {
			m[name] = fromJSON(each)
		}
		return obj(m)
	default:
		return types.StringNull()
	}
}

// FuzzArguments checks that any arguments give a result, or the error of an argument
// with its path.
func FuzzArguments(f *testing.F) {
	f.Add(`[{"days_of_week": ["Friday"], "start_time": "22:00", "duration": "4h", "timezone": null}]`, `[]`)
	f.Add(`[]`, `[{"name": "a", "kind": "freeze", "events": [{"start": "2026-12-24", "all_day": true, "rrule": "FREQ=YEARLY", "rdate": ["2026-12-26"], "exdate": []}]}]`)
	f.Add(`null`, `{"a": {"kind": "allow", "ics": "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"}}`)
	f.Add(`[null, 1, {"days_of_week": [1]}]`, `{"a": null, "b": {"events": {}}}`)
	f.Fuzz(func(t *testing.T, windows, calendars string) {
		var w, c any
		if json.Unmarshal([]byte(windows), &w) != nil || json.Unmarshal([]byte(calendars), &c) != nil {
			t.Skip("no JSON")
		}
		result, failure := call(t, newInWindow(), types.DynamicValue(fromJSON(w)), types.DynamicValue(fromJSON(c)), text("2026-12-24T12:00:00Z"), zones())
		switch {
		case failure == nil && (result.IsNull() || result.IsUnknown()):
			t.Errorf("got %v, want true or false", result)
		case failure != nil && (failure.FunctionArgument == nil ||
			!strings.HasPrefix(failure.Text, []string{"windows", "calendars"}[*failure.FunctionArgument])):
			t.Errorf("got %+v, want an error that names the path", failure)
		}
	})
}
