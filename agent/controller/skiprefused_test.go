package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// TestRefusedSkipNamesCommands checks that the commands in a refusal name the environment, where there
// is more than one.
func TestRefusedSkipNamesCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel"})
		m.obedient = true
		c, _ := m.control(t)
		m.beat()
		refused := func(environment string, start time.Time, command string) {
			t.Helper()
			_, err := m.skip(c, environment, start)
			if refused, is := errors.AsType[*run.Refused](err); !is || !strings.HasSuffix(refused.Message, ": osupgrade-agent "+command) {
				t.Errorf("it is answered %v, want it to end with %s", err, command)
			}
		}
		refused("default", time.Now(), "windows")
		basel := inShop("basel", "UTC")
		m.declareShop("basel", &basel)
		first := time.Now().Add(2 * time.Hour)
		refused("default", time.Now(), "windows --environment default")
		refused("basel", time.Now(), "windows --environment basel")
		m.pass(4 * time.Hour)
		refused("basel", first, "abort --environment basel --reason …")
	})
}
