package realhost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// patience bounds the wait for something that has to happen.
const patience = 2 * time.Minute

// TestRealRepositoryFaults shows that apt meets each fault of a repository as it meets
// that of a real one.
func TestRealRepositoryFaults(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	repository := realhost.NewRepository(t)
	repository.Publish(realhost.Deb{Name: "appliance", Version: "1.0"})
	c := realhost.NewContainer(t, realhost.ContainerOptions{})
	realhost.AddRepository(c, "appliance", repository)
	c.Start()
	const update = "rm -rf /var/lib/apt/lists/*; apt-get -q -o APT::Update::Error-Mode=any -o Acquire::Retries=0 update"
	for _, fault := range []struct {
		fault realhost.Fault
		says  string
	}{
		{realhost.WrongKey, "NO_PUBKEY"},
		{realhost.Expired, "is expired"},
		{realhost.Down, "503"},
	} {
		repository.Break(fault.fault)
		if out, err := c.Run(t.Context(), update); err == nil || !strings.Contains(out, fault.says) {
			t.Errorf("fault %v: %v, wanted %q:\n%s", fault.fault, err, fault.says, out)
		}
	}
	repository.Break(realhost.Damaged)
	if out, err := c.Run(t.Context(), update+" && apt-get -q -y install appliance"); err == nil || !strings.Contains(out, "Hash Sum mismatch") {
		t.Errorf("damaged: %v\n%s", err, out)
	}
	repository.Break(realhost.None)
	c.Must(update + " && apt-get -q -y install appliance")
}
