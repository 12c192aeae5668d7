package function

import (
	"context"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// call runs a function as the framework does.
func call(t *testing.T, f function.Function, args ...attr.Value) (attr.Value, *function.FuncError) {
	t.Helper()
	var definition function.DefinitionResponse
	f.Definition(t.Context(), function.DefinitionRequest{}, &definition)
	var named function.MetadataResponse
	f.Metadata(t.Context(), function.MetadataRequest{}, &named)
	var valid function.DefinitionValidateResponse
	definition.Definition.ValidateImplementation(t.Context(), function.DefinitionValidateRequest{FuncName: named.Name}, &valid)
	if valid.Diagnostics.HasError() {
		t.Fatal(valid.Diagnostics)
	}
	result, failure := definition.Definition.Return.NewResultData(t.Context())
	if failure != nil {
		t.Fatal(failure)
	}
	resp := function.RunResponse{Result: result}
	f.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData(args)}, &resp)
	return resp.Result.Value(), resp.Error
}

func text(s string) attr.Value { return types.StringValue(s) }

func texts(list ...string) attr.Value {
	values := []attr.Value{}
	for _, s := range list {
		values = append(values, text(s))
	}
	return types.ListValueMust(types.StringType, values)
}

// zones is the variadic argument.
func zones(list ...string) attr.Value {
	values, kinds := []attr.Value{}, []attr.Type{}
	for _, s := range list {
		values, kinds = append(values, text(s)), append(kinds, types.StringType)
	}
	return types.TupleValueMust(kinds, values)
}

func obj(m members) attr.Value {
	kinds := map[string]attr.Type{}
	for name, value := range m {
		kinds[name] = value.Type(context.Background())
	}
	return types.ObjectValueMust(kinds, m)
}

// tuple is a list as a configuration writes it: its elements may differ.
func tuple(values ...attr.Value) attr.Value {
	kinds := []attr.Type{}
	for _, value := range values {
		kinds = append(kinds, value.Type(context.Background()))
	}
	return types.DynamicValue(types.TupleValueMust(kinds, values))
}

type members = map[string]attr.Value

func weekend(zone string) attr.Value {
	w := members{"days_of_week": texts("saturday", "Friday"), "start_time": text("22:00"), "duration": text("240m")}
	if zone != "" {
		w["timezone"] = text(zone)
	}
	return obj(w)
}

func freeze(events ...attr.Value) attr.Value {
	kinds := []attr.Type{}
	for _, e := range events {
		kinds = append(kinds, e.Type(context.Background()))
	}
	return obj(members{"name": text("christmas"), "kind": text("freeze"), "events": types.TupleValueMust(kinds, events)})
}

func none() attr.Value { return types.DynamicNull() }

func TestNormalizeDuration(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"240m": "4h", "28h18s": "1d4h18s", "4h": "4h", "0m90s": "1m30s"} {
		if got, failure := call(t, newNormalizeDuration(), text(given)); failure != nil || !got.Equal(text(want)) {
			t.Errorf("%s: got %v %v, want %s", given, got, failure, want)
		}
	}
	_, failure := call(t, newNormalizeDuration(), text("1w"))
	if failure == nil || *failure.FunctionArgument != 0 || !strings.Contains(failure.Text, `"1w" is not a duration`) {
		t.Errorf("got %v, want an error of the argument", failure)
	}
}

func TestInWindow(t *testing.T) {
	t.Parallel()
	frozen := tuple(freeze(obj(members{"start": text("2026-11-07"), "all_day": types.BoolValue(true)})))
	for name, row := range map[string]struct {
		windows, calendars attr.Value
		at                 string
		zones              attr.Value
		want               bool
	}{
		"nothing":                     {none(), none(), "2026-11-06T22:00:00Z", zones(), false},
		"start":                       {tuple(weekend("")), none(), "2026-11-06T22:00:00Z", zones(), true},
		"end":                         {tuple(weekend("")), none(), "2026-11-07T02:00:00Z", zones(), false},
		"another offset":              {tuple(weekend("")), none(), "2026-11-07T00:00:00+02:00", zones(), true},
		"zone of the window":          {tuple(weekend("Europe/Stockholm")), none(), "2026-11-06T21:00:00Z", zones("Asia/Tokyo"), true},
		"zone of the site":            {tuple(weekend("site-local")), none(), "2026-11-06T13:00:00Z", zones("Asia/Tokyo"), true},
		"site-local without its zone": {tuple(weekend("site-local")), none(), "2026-11-06T13:00:00Z", zones(), false},
		"before a freeze":             {tuple(weekend("")), frozen, "2026-11-06T23:59:59Z", zones(), true},
		"in a freeze":                 {tuple(weekend("")), frozen, "2026-11-07T00:00:00Z", zones(), false},
		"calendar that opens": {none(), types.DynamicValue(obj(members{
			"extra": obj(members{"kind": text("allow"), "events": types.TupleValueMust(
				[]attr.Type{types.ObjectType{AttrTypes: map[string]attr.Type{"start": types.StringType, "duration": types.StringType}}},
				[]attr.Value{obj(members{"start": text("2026-11-09T10:00"), "duration": text("1h")})})}),
		})), "2026-11-09T10:30:00Z", zones(), true},
	} {
		got, failure := call(t, newInWindow(), row.windows, row.calendars, text(row.at), row.zones)
		if failure != nil || !got.Equal(types.BoolValue(row.want)) {
			t.Errorf("%s: got %v %v, want %v", name, got, failure, row.want)
		}
	}
}

func TestNextWindows(t *testing.T) {
	t.Parallel()
	frozen := tuple(freeze(obj(members{"summary": text("Audit"), "start": text("2026-11-06T23:00"), "duration": text("1h"), "timezone": text("UTC")})))
	got, failure := call(t, newNextWindows(), tuple(weekend("")), frozen, text("2026-11-02T00:00:00Z"), types.Int64Value(3), zones())
	if failure != nil {
		t.Fatal(failure)
	}
	list, _ := got.(types.List)
	var spans []span
	if diags := list.ElementsAs(t.Context(), &spans, false); diags.HasError() {
		t.Fatal(diags)
	}
	window := []source{{Window: types.Int64Value(0)}}
	cuts := []cut{{types.StringValue("christmas"), types.StringValue("Audit"), types.StringValue("2026-11-06T23:00:00Z"), types.StringValue("2026-11-07T00:00:00Z")}}
	want := []span{
		{types.StringValue("2026-11-06T22:00:00Z"), types.StringValue("2026-11-06T23:00:00Z"), types.StringValue("1h"), window, cuts, types.BoolValue(false), types.BoolValue(false)},
		{types.StringValue("2026-11-07T00:00:00Z"), types.StringValue("2026-11-07T02:00:00Z"), types.StringValue("2h"), window, cuts, types.BoolValue(false), types.BoolValue(false)},
		{types.StringValue("2026-11-07T22:00:00Z"), types.StringValue("2026-11-08T02:00:00Z"), types.StringValue("4h"), window, []cut{}, types.BoolValue(false), types.BoolValue(false)},
	}
	if !reflect.DeepEqual(spans, want) {
		t.Errorf("got  %v\nwant %v", spans, want)
	}
}

// TestNextWindows_tellsOfClockChanges: in Stockholm the clock skips 02:00 to
// 03:00 on 2027-03-28.
func TestNextWindows_tellsOfClockChanges(t *testing.T) {
	t.Parallel()
	window := obj(members{"days_of_week": texts("Sunday"), "start_time": text("02:30"), "duration": text("1h"), "timezone": text("Europe/Stockholm")})
	got, failure := call(t, newNextWindows(), tuple(window), none(), text("2027-03-27T00:00:00Z"), types.Int64Value(1), zones())
	if failure != nil {
		t.Fatal(failure)
	}
	list, _ := got.(types.List)
	var spans []span
	if diags := list.ElementsAs(t.Context(), &spans, false); diags.HasError() {
		t.Fatal(diags)
	}
	if len(spans) != 1 || spans[0].Start.ValueString() != "2027-03-28T01:00:00Z" || !spans[0].StartMoved.ValueBool() || !spans[0].EndMoved.ValueBool() {
		t.Errorf("got %v, want one that is moved to 2027-03-28T01:00:00Z", spans)
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	event := obj(members{"start": text("2026-11-07T00:00"), "end": text("2026-11-06T00:00"), "timezone": text("Europe/Stockhom")})
	for name, row := range map[string]struct {
		windows, calendars attr.Value
		at                 string
		count              int64
		zones              attr.Value
		argument           int64
		says               string
	}{
		"windows no list":       {types.DynamicValue(text("x")), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows: "x" is not a list; write a list`},
		"window no object":      {tuple(text("x")), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows[0]: "x" is not an object; write keys and values`},
		"attribute misspelt":    {tuple(obj(members{"start_tme": text("01:00")})), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows[0].start_tme: unknown key; did you mean start_time?`},
		"member of the API":     {tuple(obj(members{"start-time": text("01:00")})), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows[0].start-time: unknown key; did you mean start_time?`},
		"no calendars":          {none(), types.DynamicValue(text("x")), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars: it is neither a list of calendars nor a map of them by name`},
		"number for a text":     {tuple(obj(members{"start_time": types.Int64Value(1)})), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows[0].start_time: 1 is not text; put it in quotes`},
		"number without an end": {tuple(obj(members{"start_time": types.NumberValue(new(big.Float).SetMantExp(big.NewFloat(1), 5000))})), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows: it cannot be read`},
		"number for a day":      {tuple(obj(members{"days_of_week": types.TupleValueMust([]attr.Type{types.Int64Type}, []attr.Value{types.Int64Value(1)})})), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows[0].days_of_week: "1" is not a day`},
		"day misspelt":          {tuple(obj(members{"days_of_week": texts("Frday"), "start_time": text("01:00"), "duration": text("1h")})), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows[0].days_of_week: "Frday" is not a day; did you mean Friday?`},
		"same window twice":     {tuple(weekend(""), weekend("")), none(), "2026-11-06T00:00:00Z", 1, zones(), 0, `windows[1]`},
		"zone of an event":      {none(), tuple(freeze(event)), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[0].events[0].timezone: "Europe/Stockhom" is not a time zone; use site-local, UTC or an IANA name; did you mean Europe/Stockholm?`},
		"kind of a calendar":    {none(), tuple(obj(members{"name": text("a"), "kind": text("freese")})), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[0].kind: "freese"`},
		"a calendar by URL":     {none(), tuple(obj(members{"name": text("a"), "kind": text("freeze"), "url": text("https://calendar.example/a.ics"), "refresh": text("1h")})), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[0]: has a url, whose events only the site knows`},
		"calendar without name": {none(), tuple(obj(members{"kind": text("freeze")})), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[0]: has no name`},
		"name twice":            {none(), tuple(freeze(), freeze()), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[1]: its name "christmas" is also the name of calendars[0]`},
		"by name":               {none(), types.DynamicValue(obj(members{"x-y": obj(members{"kind": text("a")})})), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars["x-y"].kind: "a"`},
		"flag":                  {none(), tuple(freeze(obj(members{"all_day": text("yes")}))), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[0].events[0].all_day: "yes" is not a boolean; use true or false`},
		"dates":                 {none(), tuple(freeze(obj(members{"rdate": text("x")}))), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[0].events[0].rdate: "x" is not a list; write a list`},
		"text of a calendar":    {none(), tuple(obj(members{"name": text("a"), "kind": text("freeze"), "ics": text("soon")})), "2026-11-06T00:00:00Z", 1, zones(), 1, `calendars[0].ics`},
		"instant":               {none(), none(), "now", 1, zones(), 2, `"now" is not an instant`},
		"count of none":         {none(), none(), "2026-11-06T00:00:00Z", 0, zones(), 3, `0 is out of range; use 1 to 1000`},
		"count of too many":     {none(), none(), "2026-11-06T00:00:00Z", 1001, zones(), 3, `1001 is out of range`},
		"zone of the site":      {none(), none(), "2026-11-06T00:00:00Z", 1, zones("Europe/Stockhom"), 4, `did you mean Europe/Stockholm`},
		"site-local site":       {none(), none(), "2026-11-06T00:00:00Z", 1, zones("site-local"), 4, `is not the site's time zone`},
		"two sites":             {none(), none(), "2026-11-06T00:00:00Z", 1, zones("UTC", "UTC"), 4, `there are 2 time zones of the site`},
	} {
		_, failure := call(t, newNextWindows(), row.windows, row.calendars, text(row.at), types.Int64Value(row.count), row.zones)
		if failure == nil || failure.FunctionArgument == nil || *failure.FunctionArgument != row.argument || !strings.Contains(failure.Text, row.says) {
			t.Errorf("%s: got %+v, want argument %d: %s", name, failure, row.argument, row.says)
		}
	}
}
