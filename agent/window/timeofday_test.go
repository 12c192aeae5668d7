package window

import (
	"fmt"
	"testing"
)

func TestEveryMinuteOfTheDaySurvivesItsText(t *testing.T) {
	t.Parallel()
	for minute := range 24 * 60 {
		text := fmt.Sprintf("%02d:%02d", minute/60, minute%60)
		got, err := ParseTimeOfDay(text)
		if err != nil || got.minutes != minute || got.String() != text {
			t.Errorf("ParseTimeOfDay(%q) = %v, %v", text, got, err)
		}
	}
}

func TestParseTimeOfDayErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text string }{
		{"empty", ""},
		{"hour too large", "25:00"},
		{"midnight at the end of the day", "24:00"},
		{"minute too large", "23:60"},
		{"one digit of the hour", "1:00"},
		{"one digit of the minute", "01:0"},
		{"seconds", "01:00:00"},
		{"blank before", " 1:00"},
		{"sign", "+1:00"},
		{"no colon", "01.00"},
		{"minutes since midnight", "630"},
		{"half past one in the afternoon", "01:30pm"},
		{"digits of another script", "٠١:٠٠"},
		{"letters below zero", "0/:00"},
		{"letters above nine", "0a:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			want := fmt.Sprintf("%q is not a time of day; use HH:MM from 00:00 to 23:59", row.text)
			if got, err := ParseTimeOfDay(row.text); err == nil || err.Error() != want {
				t.Fatalf("ParseTimeOfDay(%q) = %v, %v; want error %q", row.text, got, err, want)
			}
		})
	}
}
