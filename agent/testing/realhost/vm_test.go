package realhost_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// TestRealVM is a run of a virtual machine, with its own kernel, from an old release to
// a new boot.
func TestRealVM(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	r := newVM(t, appliance("1.0"), kernel("1.0"))
	first := r.machine.BootID()
	r.repository.Add(appliance("2.0"), kernel("2.0"))
	r.upgraded()
	r.has("appliance 2.0", "appliance-kernel 2.0")
	if second := r.machine.BootID(); second == first {
		t.Errorf("it did not boot: %s", second)
	}
	if said := r.machine.Must("systemctl is-active appliance"); said != "active\n" {
		t.Errorf("appliance is %q", said)
	}
}
