package calendar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"
)

func sorted(walls []time.Time) []time.Time {
	slices.SortFunc(walls, time.Time.Compare)
	return walls
}

// drawRule draws a rule without an end.
func drawRule(t *rapid.T) string {
	frequency := rapid.SampledFrom([]string{"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}).Draw(t, "frequency")
	text := fmt.Sprintf("FREQ=%s;INTERVAL=%d", frequency, rapid.IntRange(1, 5).Draw(t, "interval"))
	add := func(name string, list []string) {
		if len(list) > 0 {
			text += ";" + name + "=" + strings.Join(list, ",")
		}
	}
	signed := func(most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			n := rapid.IntRange(1, most).Draw(t, "n")
			return fmt.Sprint(n * rapid.SampledFrom([]int{1, -1}).Draw(t, "sign"))
		})
	}
	few := func(g *rapid.Generator[string], name string) []string {
		if rapid.IntRange(0, 2).Draw(t, "with "+name) > 0 {
			return nil
		}
		return rapid.SliceOfNDistinct(g, 1, 3, rapid.ID).Draw(t, name)
	}
	plain := rapid.SampledFrom([]string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"})
	add("BYMONTH", few(rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(1, 12).Draw(t, "month")) }), "months"))
	weeks := false
	switch frequency {
	case "YEARLY":
		add("BYMONTHDAY", few(signed(31), "month days"))
		add("BYYEARDAY", few(signed(366), "year days"))
		if numbers := few(signed(53), "weeks"); numbers != nil {
			weeks = true
			add("BYWEEKNO", numbers)
		}
	case "MONTHLY", "DAILY":
		add("BYMONTHDAY", few(signed(31), "month days"))
	}
	days := plain
	// Not both kinds of day at once: the other implementation would take only days
	// that match both.
	if numbered := (frequency == "YEARLY" || frequency == "MONTHLY") && !weeks; numbered && rapid.Bool().Draw(t, "numbered") {
		days = rapid.Custom(func(t *rapid.T) string { return signed(5).Draw(t, "nth") + plain.Draw(t, "day") })
	}
	if weeks {
		// Without a day the other implementation takes all days of the week, not the
		// day of the start.
		add("BYDAY", rapid.SliceOfNDistinct(plain, 1, 3, rapid.ID).Draw(t, "days"))
	} else {
		add("BYDAY", few(days, "days"))
	}
	add("BYHOUR", few(rapid.SampledFrom([]string{"0", "9", "23"}), "hours"))
	// The other implementation counts positions in the week of the start from the
	// start, but in the month of the start from the first day.
	if strings.Contains(text, "BYDAY") && frequency != "WEEKLY" {
		add("BYSETPOS", few(signed(4), "positions"))
	}
	return text + ";WKST=" + plain.Draw(t, "week start")
}

// The other implementation gets wall-clock times as UTC, because it handles changes of
// the clock incorrectly, and no COUNT, because it does not count a start
// that the rule does not yield.
func TestRuleIsThatOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	examples, compared := rapid.Custom(drawQuestion), 0
	for seed := range 3000 {
		q := examples.Example(seed)
		ours, err := parseRule(q.rule, dateTime{wall: q.start, zone: utc})
		if err != nil && strings.Contains(err.Error(), "never happens") {
			continue // The other one would look as far as the year 9999.
		}
		if err != nil {
			t.Fatal(err)
		}
		option, err := rrule.StrToROption(q.rule)
		if err != nil {
			t.Fatal(err)
		}
		option.Dtstart, option.Until = q.start, q.last
		theirs, err := rrule.NewRRule(*option)
		if err != nil {
			t.Fatal(err)
		}
		got, want := collect(ours, q.first, q.last), theirs.Between(q.first, q.last, true)
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%d: %s from %v, %v to %v:\n%v\nwant\n%v", seed, q.rule, q.start, q.first, q.last, got, want)
		}
		compared += len(want)
	}
	if compared < 10_000 {
		t.Errorf("only %d starts compared", compared)
	}
}

// question asks a rule for its starts from first to last.
type question struct {
	rule               string
	start, first, last time.Time
}

func drawQuestion(t *rapid.T) question {
	start := time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 9000).Draw(t, "start"))
	first := start.AddDate(0, 0, rapid.IntRange(0, 2000).Draw(t, "first"))
	last := first.AddDate(0, 0, rapid.IntRange(0, 1200).Draw(t, "days"))
	return question{rule: drawRule(t), start: start, first: first, last: last}
}

func TestCountIsUntilItsLast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawRule(t)
		start := dateTime{wall: time.Date(2026, 2, 3, 4, 30, 0, 0, time.UTC), zone: utc}
		endless, err := parseRule(text, start)
		if err != nil {
			t.Skip("it never happens")
		}
		count := rapid.IntRange(1, 30).Draw(t, "count")
		counted, err := parseRule(fmt.Sprintf("%s;COUNT=%d", text, count), start)
		if err != nil {
			t.Fatal(err)
		}
		want := []time.Time{start.wall}
		want = append(want, collect(endless, start.wall.Add(1), start.wall.Add(reach))...)
		want = want[:min(len(want), count)]
		got := collect(counted, start.wall.Add(1), start.wall.Add(reach))
		if !slices.Equal(got, want[1:]) {
			t.Fatalf("%s;COUNT=%d: %v; want %v", text, count, got, want[1:])
		}
	})
}

func collect(r *rule, first, last time.Time) []time.Time {
	var all []time.Time
	r.starts(first, last, func(wall time.Time) bool {
		all = append(all, wall)
		return true
	})
	return all
}
