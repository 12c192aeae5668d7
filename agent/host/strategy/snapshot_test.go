package strategy

import (
	"strings"
	"testing"
	"time"
)

func TestDated(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 2, 4, 5, 6, 7, time.FixedZone("", 3600))
	for pattern, want := range map[SnapshotURL]string{
		"https://mirror.example/{date}/{path}":               "https://mirror.example/2026-11-02/debian",
		"https://mirror.example/archive/{path}/{time}":       "https://mirror.example/archive/debian/20261102T030506Z",
		"https://mirror.example/{year}/{month}/{day}/{path}": "https://mirror.example/2026/11/02/debian",
	} {
		if err := pattern.Check("{path}"); err != nil {
			t.Error(err)
		}
		if got := pattern.At(at, "{path}", "debian"); got != want {
			t.Errorf("%s is %s, want %s", pattern, got, want)
		}
	}
	for pattern, want := range map[SnapshotURL]string{
		"https://mirror.example/{path}":         "has no date",
		"https://mirror.example/{year}/{month}": "has no date",
		"https://mirror.example/{date}/{suite}": "has {suite}; use {date}, {time}, {year}, {month}, {day}, {path}",
		"/srv/{date}":                           "is not an address",
		"https://mirror.example/{date} main":    "is not an address",
		"{date}":                                "is not an address",
	} {
		if err := pattern.Check("{path}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", pattern, err, want)
		}
	}
}
