package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// firstYAML is the file that a guide declares.
var firstYAML = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// playShops executes all commands of a guide in their order, in a folder with its file as shops.yaml,
// at a site whose hosts have a value of a label each. It returns what they print.
func playShops(t *testing.T, guide, before, key string, values []string, parts ...string) string {
	t.Helper()
	labels := map[string]map[string]string{}
	for i, value := range values {
		labels[fmt.Sprintf("h%02d", i+1)] = map[string]string{key: value}
	}
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Tenant: "acme", Hosts: len(values), Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	root := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", root+"/osupgrade-agent", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	file := firstYAML.FindStringSubmatch(read(t, "../../docs/guides/"+guide+".md"))
	if file == nil {
		t.Fatal("the guide shows no file")
	}
	if err := os.WriteFile(filepath.Join(root, "shops.yaml"), []byte(file[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	return showGuide(t, root, before+commandsOf(t, guide),
		[]string{"OSUPGRADE_ENDPOINT=" + d.Endpoint, "OSUPGRADE_TOKEN=" + d.Token, "OSUPGRADE_TENANT=acme", "PATH=" + root + ":" + os.Getenv("PATH")}, parts...)
}

// TestEnvironmentsGuide executes the guide "Environments", and checks that the table in it is
// what is printed.
func TestEnvironmentsGuide(t *testing.T) {
	t.Parallel()
	const b, l = "basel", "lisbon"
	table := regexp.MustCompile("(?s)```text\n(NAME .*?)```").FindStringSubmatch(read(t, "../../docs/guides/environments.md"))
	if table == nil {
		t.Fatal("the guide shows no table")
	}
	playShops(t, "environments", "", "shop", []string{b, b, l, b, b, b, b, b, l, l, l, l}, table[1],
		"Host h03 is assigned to environment basel.", "basel (assigned)", "Deleted environment basel of tenant acme.")
}

// TestCanaryGuide executes the guide "Canary first". Before, a run of the environment that comes
// later is refused.
func TestCanaryGuide(t *testing.T) {
	t.Parallel()
	guide := read(t, "../../docs/guides/canary.md")
	before := `
osupgrade-agent apply -f shops.yaml
printf 'config:\n  worker-applications: [{name: os-upgrade-simulated}]\n' >config.yaml
osupgrade-agent apply -f config.yaml
! osupgrade-agent start --environment shops --override-window --reason early
sed 's/^  canary:$/&\n    after: {environments: [shops]}/' shops.yaml >cycle.yaml
! osupgrade-agent apply -f cycle.yaml
`
	const refused = "environment shops waits for environment canary to complete a run"
	out := playShops(t, "canary", before, "ring", []string{"canary", "shop", "shop"}, refused, "of shops has begun with 2 hosts", "overrides after:  security fix")
	for _, quoted := range []string{"canary comes after shops comes after canary", refused} {
		if !strings.Contains(guide, quoted) || !strings.Contains(out, quoted) {
			t.Errorf("the guide does not quote %q, or it is not printed:\n%s", quoted, out)
		}
	}
}

// TestReleasesGuide executes the guide "Releases". Before, the environment has a run, which the guide calls 57.
func TestReleasesGuide(t *testing.T) {
	t.Parallel()
	const before = `
cp shops.yaml november.yaml
printf 'config:\n  worker-applications: [{name: os-upgrade-simulated}]\nenvironments:\n  basel: {match: {labels: {shop: basel}}}\n' >basel.yaml
osupgrade-agent apply -f basel.yaml
osupgrade-agent start --environment basel --override-window --reason first --wait
run=$(osupgrade-agent runs --output json | sed -n '/"id":/{s/[^0-9]*"id": *\([0-9]*\).*/\1/p;q}')
osupgrade-agent() { command osupgrade-agent "${@/#57/$run}"; }
`
	playShops(t, "releases", before, "shop", []string{"basel", "basel"},
		"Written, in this order: release security-2026-11-21, environment basel.", "environment basel", "Release security-2026-11-21 is withdrawn by", "Release security-2026-11-21 may be installed again.",
		"Release nov is created: ", "rolls back:", "2 of 2 hosts rolled back")
}
