package v1

import "testing"

func TestParseCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Count{
		"0": {}, "1": {N: 1}, "10000": {N: 10000}, "0%": {Percent: true}, "1%": {N: 1, Percent: true}, "100%": {N: 100, Percent: true},
	} {
		if got, err := ParseCount(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "-1", "+1", "01", "1.5", "10001", "101%", "1 %", " 1", "1%%", "10 hosts", "99999999999999999999"} {
		if got, err := ParseCount(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestCountOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, count string
		total       int
		down, up    int
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
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, err := ParseCount(row.count)
			if err != nil {
				t.Fatal(err)
			}
			if down, up := c.Of(row.total, false), c.Of(row.total, true); down != row.down || up != row.up {
				t.Errorf("%s of %d is %d or %d; want %d and %d", row.count, row.total, down, up, row.down, row.up)
			}
		})
	}
}

func TestParseMinFree(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		bytes   uint64
		percent int
	}{
		"1KB": {bytes: 1000}, "500MB": {bytes: 500e6}, "1GB": {bytes: 1e9}, "2TB": {bytes: 2e12},
		"1KiB": {bytes: 1024}, "3MiB": {bytes: 3 << 20}, "2GiB": {bytes: 2 << 30}, "8388607TiB": {bytes: 8388607 << 40},
		"1%": {percent: 1}, "100%": {percent: 100},
	} {
		if bytes, percent, err := ParseMinFree(text); err != nil || bytes != want.bytes || percent != want.percent {
			t.Errorf("%q is %d bytes, %d%%, %v; want %+v", text, bytes, percent, err, want)
		}
	}
	for _, text := range []string{"", "1", "0%", "101%", "0GB", "GB", "01GB", "-1GB", "+1GB", "1.5GB", "1 GB", "1gb", "1GiBGiB", "8388608TiB", "99999999999999999999MB"} {
		if bytes, percent, err := ParseMinFree(text); err == nil {
			t.Errorf("%q is %d bytes, %d%%", text, bytes, percent)
		}
	}
}
