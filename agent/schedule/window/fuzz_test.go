package window

import "testing"

func FuzzParseDays(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		days, err := ParseDays(text)
		if err != nil {
			return
		}
		if again, err := ParseDays(days.String()); err != nil || again != days || days == 0 {
			t.Fatalf("%q read as %v, written again: %v, %v", text, days, again, err)
		}
	})
}

func FuzzParseTimeOfDay(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := ParseTimeOfDay(text); err == nil && got.String() != text {
			t.Fatalf("%q read as %v", text, got)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d || d < 0 {
			t.Fatalf("%q read as %d, written again: %d, %v", text, d, again, err)
		}
	})
}

func FuzzParseZone(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		zone, err := ParseZone(text)
		if err != nil {
			return
		}
		if zone.String() != text && text != "" {
			t.Fatalf("%q read as %v", text, zone)
		}
	})
}
