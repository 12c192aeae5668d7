package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestGuidesNameEverything checks that the guides name all that people write scripts and
// faults by, and each result of a run.
func TestGuidesNameEverything(t *testing.T) {
	t.Parallel()
	script := []string{"OSUPGRADE_TENANT", "OSUPGRADE_HOST", "OSUPGRADE_KIND", "OSUPGRADE_STAGE", "OSUPGRADE_OUTPUTS", "OSUPGRADE_RUN"}
	for _, kind := range message.TaskKinds() {
		script = append(script, string(kind))
	}
	faults := []string{
		simulated.FaultFail, simulated.FaultHang, simulated.FaultCrash, simulated.FaultCrashBefore, simulated.FaultCrashAfter, simulated.FaultPowerOff, simulated.FaultNoReboot,
		"prepare", "upgrade", "reboot", "verify", "resume", "rollback",
	}
	for file, words := range map[string][]string{
		"../../docs/guides/rollout.md":         slices.Concat(script, v1.Results()),
		"../../docs/guides/simulated-hosts.md": faults,
	} {
		text := read(t, file)
		for _, word := range words {
			if !strings.Contains(text, "`"+word+"`") {
				t.Errorf("%s does not name %s", file, word)
			}
		}
	}
}

// TestGuideJSON checks that the API takes the rollout that the guide shows.
func TestGuideJSON(t *testing.T) {
	t.Parallel()
	shown := regexp.MustCompile("(?s)```json\n(\\{\n.*?)```").FindStringSubmatch(read(t, "../../docs/guides/rollout.md"))
	if shown == nil {
		t.Fatal("the guide shows no rollout in JSON")
	}
	if r, err := v1.DecodeRollout("application/json", []byte(shown[1])); err != nil || r.Timeouts == nil {
		t.Errorf("the guide's rollout is %+v, %v", r, err)
	}
}

// TestGuideStrategies checks that a worker takes the configuration that the guide of each
// strategy shows.
func TestGuideStrategies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"apt", "dnf", "rauc", "ostree", "sysupdate"} {
		shown := regexp.MustCompile("(?s)```yaml\n# /etc/osupgrade/worker.yaml\n(.*?)```").FindAllStringSubmatch(read(t, "../../docs/guides/"+name+".md"), -1)
		if len(shown) == 0 {
			t.Errorf("the guide of %s shows no worker.yaml", name)
		}
		for _, example := range shown {
			config := filepath.Join(t.TempDir(), "worker.yaml")
			if err := os.WriteFile(config, []byte(example[1]+"tenant: acme\napplication: os\nhost: h01\nkey-file: /etc/osupgrade/h01.key\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, problems strings.Builder
			if code := cli.Run(t.Context(), "test", []string{"worker", "--config", config, "--print-config"}, strings.NewReader(""), &out, &problems); code != 0 || !strings.Contains(out.String(), "strategy: "+name) {
				t.Errorf("%s: exit code %d, %s%s", name, code, &out, &problems)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
