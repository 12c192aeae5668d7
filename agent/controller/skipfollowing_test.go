package controller

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSkippedAfterUsedWindow skips the window after one that is open and has had its run: the next
// upgrade is in the window after both, while the first is open and once it has closed.
func TestSkippedAfterUsedWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel"})
		m.obedient = true
		c, _ := m.control(t)
		m.beat()
		basel := inShop("basel", "UTC")
		m.declareShop("basel", &basel)
		first := time.Now().Add(2 * time.Hour)
		m.pass(4 * time.Hour)
		m.only(c, "basel")
		if _, err := m.skip(c, "basel", first.Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		for _, while := range []string{"open", "closed"} {
			all, err := c.EnvironmentStatuses(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if next := all[0].NextUpgradeAt; !next.Equal(first.Add(48 * time.Hour)) {
				t.Errorf("while the first window is %s the next upgrade is at %s", while, next)
			}
			m.pass(4 * time.Hour)
		}
	})
}
