package logind_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/logind"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// policyVariable has the program of this test reboot the machine that it runs on. It is
// set inside of containers only.
const policyVariable = "LOGIND_TEST_POLICY"

func TestMain(m *testing.M) {
	policy := os.Getenv(policyVariable)
	if policy == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if policy == "short" {
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	fmt.Println(logind.Reboot(ctx, logind.Options{
		Override: policy == "override", Wall: "run 41", Waiting: func(by []logind.Inhibitor) { fmt.Println("waits for", logind.Names(by)) },
	}))
}

// TestRealLogind reboots a container: it waits for an inhibitor until its time is over,
// then until the inhibitor ends, and at last overrides one.
func TestRealLogind(t *testing.T) {
	t.Parallel()
	for _, tree := range []realhost.Tree{realhost.Bookworm, realhost.Trixie} {
		t.Run(string(tree), func(t *testing.T) {
			level := realhost.Quick
			if tree != realhost.Bookworm {
				level = realhost.Hosts
			}
			realhost.Need(t, level, tree)
			t.Parallel()
			rebootReally(t, tree)
		})
	}
}

func rebootReally(t *testing.T, tree realhost.Tree) {
	c := realhost.NewContainer(t, realhost.ContainerOptions{Tree: tree})
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	c.WriteFile("/reboot-it", string(program))
	c.Start()
	c.Must("chmod 755 /reboot-it")
	inhibit := "systemd-inhibit --what=shutdown --who=backup --why='copies the database' --mode=block sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >/run/backup; " +
		"until systemd-inhibit --list | grep -q backup; do sleep 0.05; done"
	c.Must(inhibit)
	const waits = "waits for backup (copies the database)\n"
	said := c.Must(policyVariable + "=short /reboot-it")
	if want := waits + "it is inhibited by backup (copies the database); end that, or start the worker with --inhibitors override\n"; said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
	c.Must(policyVariable + "=wait /reboot-it </dev/null >/said 2>&1 &")
	realhost.Until(t, "wait for the inhibitor", testTimeout, func() bool { return c.Must("cat /said || true") == waits })
	if c.Boots() != 1 {
		t.Fatal("it rebooted in spite of the inhibitor")
	}
	c.Must("kill $(cat /run/backup)")
	realhost.Until(t, "reboot", testTimeout, func() bool { return c.Boots() == 2 })
	c.BootID() // It has booted.
	// The machine may go down before the program knows that it will.
	if said := c.Must("cat /said"); said != waits+"<nil>\n" && said != waits {
		t.Errorf("it said %q", said)
	}
	c.Must(inhibit)
	said, err = c.Run(t.Context(), policyVariable+"=override /reboot-it")
	if err == nil && strings.TrimSpace(said) != "<nil>" {
		t.Errorf("it said %q", said)
	}
	realhost.Until(t, "reboot in spite of the inhibitor", testTimeout, func() bool { return c.Boots() == 3 })
}
