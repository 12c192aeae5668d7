package rollout

import (
	"strings"
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

// TestQueries checks which expressions are refused by their text alone.
func TestQueries(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`up == 0`: "",
		"sum by (job) (rate(x{a=\"}\"}[5m]))\n  > 1 # more (than that": "",
		"a{b='it\\'s'} or c{d=`\\`}":                                   "",
		"":                                                             `"" is not a query; use an expression such as up{job="ceph"} == 0`,
		" ":                                                            `" " is not a query; use an expression such as up{job="ceph"} == 0`,
		`sum(up`:                                                       `"sum(up" is not a query: a ( is not closed; add )`,
		`up == `:                                                       `"up == " is not a query: it ends with =; add what follows`,
		"up > # more":                                                  `"up > # more" is not a query: it ends with >; add what follows`,
		`sum(up}`:                                                      `"sum(up}" is not a query: nothing is open that the } at byte 7 could close`,
		`up{job="a}`:                                                   `"up{job=\"a}" is not a query: the " at byte 8 has no other one to end its text`,
		`up]`:                                                          `"up]" is not a query: nothing is open that the ] at byte 3 could close`,
		"up\x00":                                                       `"up\x00" has characters that cannot be printed; leave them out`,
	} {
		r := Rollout{Checks: &Checks{Fleet: []Check{{Type: Prometheus, URL: "http://a", Query: query}}}}
		got := ""
		for _, p := range r.Validate() {
			got += p.Message
			if p.Field != "checks.fleet[0].query" {
				t.Errorf("%q: the field is %s", query, p.Field)
			}
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}

// TestChecksOfTheSite checks what the checks that are asked at the site only may not have.
func TestChecksOfTheSite(t *testing.T) {
	t.Parallel()
	query := func(change func(*Check)) Check {
		c := Check{Type: Prometheus, URL: "http://a", Query: "up"}
		change(&c)
		return c
	}
	for want, checks := range map[string]Checks{
		"": {Fleet: []Check{query(func(c *Check) { c.Below, c.Above = "1e3", "-0.5" }), {Type: Hosts, Expected: []string{"h1"}, SameVersion: "linux-image-amd64"}}},
		`checks.start[0].match: a check of type hosts is asked at the site; leave match out`:                                                     {Start: []StartCheck{{Check: Check{Type: Hosts}, Match: &Match{Roles: []string{"db"}}}}},
		`checks.start[1].match: it names no hosts; give hosts, labels, roles or applications, or leave it out`:                                   {Start: []StartCheck{{Check: Check{Type: Hosts}}, {Check: Check{Type: Load, MaxLoad: 1}, Match: &Match{}}}},
		`checks.start[0].path: "var" is not an absolute path; use one that begins with "/", such as /var`:                                        {Start: []StartCheck{{Check: Check{Type: Disk, Path: "var", MinFree: "1%"}}}},
		`checks.before-host[0].type: "prometheus" is asked at the site; use it in checks.start or checks.fleet`:                                  {BeforeHost: []Check{query(func(*Check) {})}},
		`checks.after-host[0].type: "hosts" is asked at the site; use it in checks.start or checks.fleet`:                                        {AfterHost: []Check{{Type: Hosts}}},
		`checks.fleet[0].below: "x" is not a number; use one such as 0.8 or 1e6`:                                                                 {Fleet: []Check{query(func(c *Check) { c.Below = "x" })}},
		`checks.fleet[0].above: "NaN" is not a number; use one such as 0.8 or 1e6`:                                                               {Fleet: []Check{query(func(c *Check) { c.Above = "NaN" })}},
		`checks.fleet[0].below: "2" leaves no number above 2; use a greater one`:                                                                 {Fleet: []Check{query(func(c *Check) { c.Below, c.Above = "2", "2" })}},
		`checks.fleet[0].url: "prometheus:9090" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`: {Fleet: []Check{query(func(c *Check) { c.URL = "prometheus:9090" })}},
		`checks.fleet[0].expected[1]: "h1" is checks.fleet[0].expected[0] again; give it once`:                                                   {Fleet: []Check{{Type: Hosts, Expected: []string{"h1", "h1"}}}},
		`checks.fleet[0].same-version: " a" is not the name of a package; use at most 512 printable characters without blanks at the ends`:       {Fleet: []Check{{Type: Hosts, SameVersion: " a"}}},
	} {
		var got []string
		for _, p := range (Rollout{Checks: &checks}).Validate() {
			got = append(got, p.Field+": "+p.Message)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("got %s, want %s", strings.Join(got, "\n"), want)
		}
	}
}
