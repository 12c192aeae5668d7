package window

import (
	"testing"
	"time"
)

func BenchmarkNextOf10Windows(b *testing.B) {
	var windows []Window
	for _, zone := range zonesInTests[:10] {
		windows = append(windows, mustParse(b, "Friday, Saturday", "01:00", zone, "4h"))
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Next(windows, time.UTC, at); !ok {
			b.Fatal("no next span")
		}
	}
}
