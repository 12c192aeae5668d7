package window

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text      string
		want      time.Duration
		canonical string
	}{
		{"4h", 4 * time.Hour, "4h"},
		{"1d4h18s", 28*time.Hour + 18*time.Second, "1d4h18s"},
		{"60m", time.Hour, "1h"},
		{"24h", day, "1d"},
		{"90m90s", 91*time.Minute + 30*time.Second, "1h31m30s"},
		{"0s", 0, "0s"},
		{"0d0h0m0s", 0, "0s"},
		{"004h", 4 * time.Hour, "4h"},
		{"106751d", 106751 * day, "106751d"},
		{"00000000000000000000000000001s", time.Second, "1s"},
	} {
		t.Run(row.text, func(t *testing.T) {
			t.Parallel()
			got, err := ParseDuration(row.text)
			if err != nil || got != row.want || FormatDuration(got) != row.canonical {
				t.Fatalf("ParseDuration(%q) = %v, %v, written %q", row.text, got, err, FormatDuration(got))
			}
		})
	}
}

func TestParseDurationErrors(t *testing.T) {
	t.Parallel()
	const form, size = "is not a duration", "is too long; use at most 106751d23h47m16s"
	for _, row := range []struct{ name, text, want string }{
		{"empty", "", form},
		{"no unit", "4", form},
		{"no number", "h", form},
		{"unknown unit", "4w", form},
		{"units out of order", "18s4h", form},
		{"unit twice", "4h4h", form},
		{"negative", "-4h", form},
		{"fraction", "1.5h", form},
		{"blank", "4h 30m", form},
		{"upper case", "4H", form},
		{"milliseconds", "5ms", form},
		{"ISO 8601", "PT4H", form},
		{"digits of another script", "٤h", form},
		{"number left over", "4h5", form},
		{"too many days", "106752d", size},
		{"the sum overflows", "106751d24h", size},
		{"more digits than an integer has", "99999999999999999999h", size},
		{"endless digits", strings.Repeat("9", 500) + "s", size},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseDuration(row.text)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("ParseDuration(%q) = %v, %v; want error with %q", row.text, got, err, row.want)
			}
			if len(err.Error()) > 300 {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		d    time.Duration
		want string
	}{
		{"nothing", 0, "0s"},
		{"less than nothing", -time.Hour, "0s"},
		{"a started second is a whole one", time.Nanosecond, "1s"},
		{"rounding carries on", time.Minute - time.Nanosecond, "1m"},
		{"as documented", 28*time.Hour + 18*time.Second, "1d4h18s"},
		{"largest", math.MaxInt64, "106751d23h47m16s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := FormatDuration(row.d); got != row.want {
				t.Fatalf("FormatDuration(%d) = %q; want %q", row.d, got, row.want)
			}
		})
	}
}

func TestEveryDurationSurvivesItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "d"))
		got, err := ParseDuration(FormatDuration(d))
		if err != nil || got < d || got-d >= time.Second || got%time.Second != 0 {
			t.Fatalf("%d written %q, read %d, %v", d, FormatDuration(d), got, err)
		}
	})
}
