package main

import "testing"

const twoSides = `goos: linux
pkg: github.com/osupgrade/terraform-provider-osupgrade/agent/site
,base,,now,,,
,sec/op,CI,sec/op,CI,vs base,P
Fleet/10000-hosts-2,1.5,2%,3,1%,+100.00%,p=0.002 n=6
New-2,,,0.000264,∞,,
Removed-2,1,∞,,,,
geomean,1,,2,,+0.00%,

,base,,now,,,
,sec/synced-write,CI,sec/synced-write,CI,vs base,P
Fleet/10000-hosts-2,0.0004,∞,0.000412,∞,~,p=1.000 n=1

,now,
,allocs/op,CI
Fleet/10000-hosts-2,1.028818e+06,∞
New-2,0,∞

,base,
,gone,CI
Removed-2,7,∞
`

// TestTable: the figures of both sides and the floor stand in one line; what only one side
// has stands alone.
func TestTable(t *testing.T) {
	const want = `| benchmark               | unit      | base      | now     | change   | floor               |
| ---                     | ---       | ---       | ---     | ---      | ---                 |
| site: Fleet/10000-hosts | time/op   | 1.5 s ±2% | 3 s ±1% | +100.00% | synced write 412 µs |
| site: Fleet/10000-hosts | allocs/op |           | 1.03M   |          |                     |
| site: New               | time/op   |           | 264 µs  |          |                     |
| site: New               | allocs/op |           | 0       |          |                     |
`
	if got := table(rowsOf(twoSides), true); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}

// TestPage: the page keeps all that is outside of the marks, and what was written before is
// replaced.
func TestPage(t *testing.T) {
	got, err := filled("above\n"+begin+"\nold\n"+end+"\nbelow\n", "new\n")
	if want := "above\n" + begin + "\nnew\n" + end + "\nbelow\n"; err != nil || got != want {
		t.Errorf("the page is %q, %v; want %q", got, err, want)
	}
	if _, err := filled("no marks", "new\n"); err == nil {
		t.Error("a page without marks is written")
	}
}
