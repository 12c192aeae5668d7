package dnf_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestRealTornMetadata is what a power cut may leave of metadata and caches. dnf compares metadata with its sums.
// In a cache that has lost a part to zeros it finds nothing new, and with half a cache it fails until that is gone.
func TestRealTornMetadata(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		m := newMachine(t, s, pack{name: "appliance", version: "1.0"})
		m.publish(pack{name: "appliance", version: "2.0"})
		m.prepare()
		for n, row := range []struct{ files, tear, plan string }{
			{"*.solv", "dd if=/dev/zero of=$f bs=1 seek=$(($(stat -c %s $f)*5/8)) count=100 conv=notrunc 2>&1", `"to":"2.0-1"`},
			{"*.solv*", "truncate -s $(($(stat -c %s $f)/2)) $f", `"to":"2.0-1"`},
			{"*-primary.xml.*", ": >$f", `"class":"repository"`},
		} {
			m.Must("files=$(find " + s.cache + " -name '" + row.files + "'); test -n \"$files\"; for f in $files; do " + row.tear + "; done")
			m.boot = fmt.Sprint("boot ", n)
			if got := m.act("plan"); !strings.Contains(got.text, row.plan) {
				t.Errorf("%s: the plan is\n%s\nwant %s", row.files, got.text, row.plan)
			}
		}
		wantPlan(t, m.prepare(), "appliance.noarch 1.0-1 → 2.0-1")
	})
}
