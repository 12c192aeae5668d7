package realhost_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/realhost"
)

// TestRealVM is a run of a virtual machine, with its own kernel, from an old release to
// a new boot.
func TestRealVM(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	repository := realhost.NewRepository(t)
	repository.Publish(appliance("1.0"), kernel("1.0"))
	c := installed(t, repository, "appliance appliance-kernel")
	c.Cut()
	site := realhost.NewSite(t)
	v := realhost.NewVM(t, c)
	realhost.AddRepository(v, "appliance", repository)
	site.AddHost(v, "h01", map[string]string{"scripts": scripts(t, v, "apt")})
	v.Start()
	first := v.BootID()
	site.Online("h01")
	repository.Add(appliance("2.0"), kernel("2.0"))
	run := site.Upgrade()
	if run.Result != "completed" {
		t.Errorf("the run ended as %s: %s: %+v", run.Result, run.Reason, run.Hosts)
	}
	if second := v.BootID(); second == first {
		t.Errorf("it did not boot: %s", second)
	}
	if got := v.Must("dpkg-query -W -f '${db:Status-Abbrev}${Version} ' appliance appliance-kernel; systemctl is-active appliance; dpkg --audit"); got != "ii 2.0 ii 2.0 active\n" {
		t.Errorf("the host has %q", got)
	}
}
