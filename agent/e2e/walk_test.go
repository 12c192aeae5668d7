package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
)

var walk = regexp.MustCompile("(?s)<!-- This walk is run by agent/e2e/walk_test.go as it is written. -->\n```sh\n(.*?)```")

const withoutTerraform = "../../docs/guides/without-terraform.md"

// TestWalk runs the walk of the guide as it is written, but for the folder and the ports,
// which somebody else may use.
func TestWalk(t *testing.T) {
	t.Parallel()
	found := walk.FindStringSubmatch(read(t, withoutTerraform))
	if found == nil {
		t.Fatal("the guide has no walk")
	}
	api, log := freePorts(t)
	script := strings.NewReplacer("/tmp/try", t.TempDir(), "127.0.0.1:4646", api).Replace(found[1])
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script) //nolint:gosec // our own guide
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "OSUPGRADE_LISTEN="+api, "OSUPGRADE_ENDPOINT=http://"+api,
		"OSUPGRADE_NATS_LISTEN="+log, "OSUPGRADE_NATS_URL=nats://"+log)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What the walk leaves in the background must not keep the pipe open.
	output, err := os.Create(t.TempDir() + "/output")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	out, readErr := os.ReadFile(output.Name())
	if err != nil || readErr != nil {
		t.Fatalf("the walk ends with %v, %v:\n%s", err, readErr, out)
	}
	// What watch shows in between depends on the moment; these are facts.
	for _, part := range []string{"completed: 1 of 1 host upgraded", "release 1.1", "action=reboot"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("the walk does not show %q:\n%s", part, out)
		}
	}
}

// TestFileOfTheGuide checks that apply reads the file that the guide shows.
func TestFileOfTheGuide(t *testing.T) {
	t.Parallel()
	shown := regexp.MustCompile("(?s)<!-- This file is read by agent/e2e/walk_test.go. -->\n```yaml\n(.*?)```").FindStringSubmatch(read(t, withoutTerraform))
	if shown == nil {
		t.Fatal("the guide shows no file")
	}
	declared, err := intent.Decode(intent.Source{Name: "guide", Text: []byte(shown[1])})
	if err != nil || len(declared.Keys()) != 3 {
		t.Errorf("it declares %v, %v", declared.Keys(), err)
	}
}

// freePorts returns two addresses that nobody listens on. They lie below the
// ports that the kernel gives out by itself (ip(7)), so that no other test is
// given them before the walk takes them.
func freePorts(t *testing.T) (first, second string) {
	t.Helper()
	var found []string
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(10_000))
		listener, err := net.Listen("tcp", address) //nolint:noctx // ends at once
		if err != nil {
			continue
		}
		// It is held until there are both, so that they are not the same.
		defer func() { _ = listener.Close() }()
		if found = append(found, address); len(found) == 2 {
			return found[0], found[1]
		}
	}
	t.Fatal("there are no free ports")
	return "", ""
}
