package realhost

import (
	"strings"
	"testing"
)

// TestNeed checks that a test which was asked for and cannot run is told, and that a CI
// does not pass without it.
func TestNeed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, wanted string
		ci           bool
		level        Level
		lacks        string
		spare        bool
		want         verdict
		says         string
	}{
		{name: "a machine that can", level: Quick, want: runs},
		{name: "make test on a machine that can", wanted: "quick", level: Quick, want: runs},
		{name: "go test by hand without root", level: Quick, lacks: "needs root", want: skipped, says: "needs root"},
		{name: "make test without root", wanted: "quick", level: Quick, lacks: "needs root", want: noted, says: "needs root"},
		{name: "a CI without root", wanted: "quick", ci: true, level: Quick, lacks: "needs root", want: failed, says: "needs root"},
		{name: "a CI whose mirror lacks what is not released", wanted: "hosts", ci: true, level: Hosts, lacks: "the tree dnf5", spare: true, want: noted, says: "the tree dnf5"},
		{name: "a long test in make test", wanted: "quick", ci: true, level: Hosts, lacks: "needs root", want: skipped, says: "REALHOST=hosts"},
		{name: "a quick test in make test-long", wanted: "long", level: Quick, want: runs},
		{name: "a long test by hand", level: Long, want: skipped, says: "REALHOST=long"},
		{name: "the turn of other tests", wanted: "off", ci: true, level: Quick, want: skipped, says: "off"},
		{name: "a slip", wanted: "fast", level: Quick, want: failed, says: "quick, hosts, long or off"},
	} {
		got, says := judge(row.wanted, row.ci, row.level, func() lacking { return lacking{row.lacks, row.spare} })
		if got != row.want || !strings.Contains(says, row.says) {
			t.Errorf("%s: %v, %q", row.name, got, says)
		}
	}
}
