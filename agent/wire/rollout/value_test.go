package rollout

import (
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[Count]struct {
		n       int
		percent bool
	}{
		"0": {}, "1": {n: 1}, "10000": {n: 10000}, "0%": {percent: true}, "1%": {n: 1, percent: true}, "100%": {n: 100, percent: true},
	} {
		if n, percent, err := text.parse(); err != nil || n != want.n || percent != want.percent {
			t.Errorf("%q is %d, %v, %v; want %+v", text, n, percent, err, want)
		}
	}
	for _, text := range []Count{"", "%", "-1", "+1", "01", "1.5", "10001", "101%", "1 %", " 1", "1%%", "10 hosts", "99999999999999999999"} {
		if n, percent, err := text.parse(); err == nil {
			t.Errorf("%q is %d, %v", text, n, percent)
		}
	}
}

func TestCountOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		count    Count
		total    int
		down, up int
	}{
		{"number", "3", 10, 3, 3},
		{"number above the total", "30", 10, 30, 30},
		{"none", "0", 10, 0, 0},
		{"no percent", "0%", 10, 0, 0},
		{"even", "10%", 30, 3, 3},
		{"between", "10%", 39, 3, 4},
		{"just above", "10%", 31, 3, 4},
		{"less than one", "10%", 9, 1, 1},
		{"of nothing", "10%", 0, 1, 1},
		{"all", "100%", 7, 7, 7},
		{"absent", "", 7, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if down, up := row.count.Of(row.total, Down), row.count.Of(row.total, Up); down != row.down || up != row.up {
				t.Errorf("%s of %d is %d or %d; want %d and %d", row.count, row.total, down, up, row.down, row.up)
			}
		})
	}
}

func TestFree(t *testing.T) {
	t.Parallel()
	for text, want := range map[Free]struct {
		bytes   uint64
		percent int
	}{
		"1KB": {bytes: 1000}, "500MB": {bytes: 500e6}, "1GB": {bytes: 1e9}, "2TB": {bytes: 2e12},
		"1KiB": {bytes: 1024}, "3MiB": {bytes: 3 << 20}, "2GiB": {bytes: 2 << 30}, "8388607TiB": {bytes: 8388607 << 40},
		"1%": {percent: 1}, "100%": {percent: 100},
	} {
		if bytes, percent, err := text.parse(); err != nil || bytes != want.bytes || percent != want.percent {
			t.Errorf("%q is %d bytes, %d%%, %v; want %+v", text, bytes, percent, err, want)
		}
	}
	for _, text := range []Free{"", "1", "0%", "101%", "0GB", "GB", "01GB", "-1GB", "+1GB", "1.5GB", "1 GB", "1gb", "1GiBGiB", "8388608TiB", "99999999999999999999MB"} {
		if bytes, percent, err := text.parse(); err == nil {
			t.Errorf("%q is %d bytes, %d%%", text, bytes, percent)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[Span]struct {
		length    time.Duration
		canonical Span
	}{
		"": {0, ""}, "0s": {0, "0s"}, "90m": {90 * time.Minute, "1h30m"}, "1d4h": {28 * time.Hour, "1d4h"}, "1h0m0s": {time.Hour, "1h"}, "soon": {0, "soon"},
	} {
		if text.Duration() != want.length || text.canonical() != want.canonical || (text.unreadable() != nil) != (text == "soon") {
			t.Errorf("%q is %s and canonical %q, %v; want %+v", text, text.Duration(), text.canonical(), text.unreadable(), want)
		}
	}
	if got := SpanOf(1500 * time.Millisecond); got != "2s" {
		t.Errorf("1.5s is %q, want 2s", got)
	}
}
