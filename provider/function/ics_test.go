package function

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func icsText(lines ...string) attr.Value {
	return text("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
}

func TestParseICS(t *testing.T) {
	t.Parallel()
	null, nulls := types.StringNull(), types.ListNull(types.StringType)
	list := func(all ...string) attr.Value { return texts(all...) }
	for name, row := range map[string]struct {
		given attr.Value
		want  members
	}{
		"all day": {
			icsText("SUMMARY:Christmas", "DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261227", "RRULE:FREQ=YEARLY"),
			members{"summary": text("Christmas"), "start": text("2026-12-24"), "end": text("2026-12-27"), "duration": null, "timezone": text("site-local"), "all_day": types.BoolValue(true), "rrule": text("FREQ=YEARLY"), "rdate": nulls, "exdate": nulls},
		},
		"in a zone, with dates of another": {
			icsText("DTSTART;TZID=Europe/Stockholm:20261224T180000", "DURATION:PT240M", "RDATE:20261226T170000Z", "EXDATE;VALUE=DATE:20261225"),
			members{"summary": null, "start": text("2026-12-24T18:00"), "end": null, "duration": text("4h"), "timezone": text("Europe/Stockholm"), "all_day": types.BoolValue(false), "rrule": null, "rdate": list("2026-12-26T18:00"), "exdate": list("2026-12-25")},
		},
		"from one zone to another": {
			icsText("DTSTART:20261224T180030Z", "DTEND;TZID=Europe/Stockholm:20261224T200030"),
			members{"summary": null, "start": text("2026-12-24T18:00:30"), "end": null, "duration": text("1h"), "timezone": text("UTC"), "all_day": types.BoolValue(false), "rrule": null, "rdate": nulls, "exdate": nulls},
		},
		"twice the same": {
			icsText("DTSTART;VALUE=DATE:20261224", "END:VEVENT", "BEGIN:VEVENT", "DTSTART;VALUE=DATE:20261224"),
			members{"summary": null, "start": text("2026-12-24"), "end": null, "duration": null, "timezone": text("site-local"), "all_day": types.BoolValue(true), "rrule": null, "rdate": nulls, "exdate": nulls},
		},
	} {
		got, failure := call(t, newParseICS(), row.given)
		want := types.ObjectValueMust(map[string]attr.Type{"events": types.ListType{ElemType: eventType}, "left_out": types.ListType{ElemType: types.StringType}}, members{
			"events": types.ListValueMust(eventType, []attr.Value{types.ObjectValueMust(eventType.AttrTypes, row.want)}), "left_out": list(),
		})
		if failure != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v\nwant %v", name, got, failure, want)
		}
	}
}

// TestParseICS_tellsWhatIsLeftOut: an event that never happens is not lost without a word.
func TestParseICS_tellsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	got, failure := call(t, newParseICS(), icsText("DTSTART;VALUE=DATE:20261224", "END:VEVENT", "BEGIN:VEVENT", "DTSTART:20261224T180000Z"))
	if failure != nil {
		t.Fatal(failure)
	}
	const want = `VEVENT[1].DTSTART, line 6: \"20261224T180000Z\" has neither DTEND nor DURATION`
	if !strings.Contains(got.String(), want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestParseICS_errors name line and property.
func TestParseICS_errors(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		given attr.Value
		want  string
	}{
		"a property":   {icsText("SUMMARY:a", " long one", "DTSTART:tomorrow", "DURATION:PT4H"), `VEVENT[0].DTSTART, line 5: "tomorrow" is not a date or a time`},
		"a duration":   {icsText("DTSTART:20261224", "DURATION:4h", "RRULE:x"), "VEVENT[0].DURATION, line 4: \"4h\" is not a duration"},
		"a line":       {text("BEGIN:VCALENDAR\nhello\n"), `line 2, "hello": is not a line of iCalendar`},
		"no calendar":  {text(""), `the text is not a calendar; begin with BEGIN:VCALENDAR`},
		"without ends": {text("BEGIN:VCALENDAR\nBEGIN:VEVENT\n"), `the text ends within VEVENT`},
	} {
		_, failure := call(t, newParseICS(), row.given)
		if failure == nil || *failure.FunctionArgument != 0 || !strings.HasPrefix(failure.Text, row.want) {
			t.Errorf("%s: got %v, want %s", name, failure, row.want)
		}
	}
}
