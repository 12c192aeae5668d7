package apiobject

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestDoubtful(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		unknown, field string
		doubtful       bool
	}{
		"itself":                {"reserve", "reserve", true},
		"another at the top":    {"reserve", "splay", false},
		"beside":                {"checks.fleet[0].type", "checks.fleet[0].script", true},
		"another element":       {"checks.fleet[0].type", "checks.fleet[1].script", false},
		"an element like it":    {"checks.fleet[1].type", "checks.fleet[11].script", false},
		"below what is beside":  {"stages[0].match.hosts[0]", "stages[0].name", true},
		"above":                 {"stages", "stages[0].name", true},
		"the list of the wrong": {"checks.fleet[0].args[1]", "checks.fleet[0].args[0]", true},
		"the neighbouring list": {"checks.fleet", "checks.before-host[0].type", false},
		"a name that begins so": {"exempt", "exempt-reboot.roles", false},
		"the hook beside":       {"hooks.drain.type", "hooks.undrain.script", false},
	} {
		d := document{unknown: []string{row.unknown}}
		if got := d.doubtful(row.field); got != row.doubtful {
			t.Errorf("%s: got %v, want %v", name, got, row.doubtful)
		}
	}
}

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
		if got, err := write(row.kind, row.value, func(attribute string) string { return attribute }); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}
