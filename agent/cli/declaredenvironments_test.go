package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestDeclaredTogether checks what is told of environments that one file declares: which hosts two of
// them match, before anything is written; that an order may be reversed, and is no cycle; that a
// deletion warns of those that wait for it; and that a thousand names are no line.
func TestDeclaredTogether(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	do := func(stdin, want string, args ...string) {
		t.Helper()
		if _, stdout, stderr := callWith(t, stdin, as(t, s.URL, s.Token, "acme", args...)...); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q prints\n%s%s, without %q", args, stdout, stderr, want)
		}
	}
	s.SetHosts("acme", v1.Host{Hostname: "h1", Application: "app"}, v1.Host{Hostname: "h2", Application: "app"})
	const two = "environments:\n  ua: {match: {applications: [app]}}\n  ub: {match: {applications: [app]}}\n"
	const overlap = "standard input:2: warning: environments.ua.match: environments ua, ub match the same 2 hosts (h1, h2), and those in default go to the one that is written first"
	do(two, overlap, "validate", "--server", "-f", "-")
	do(two, overlap, "apply", "-f", "-", "--dry-run")
	do(two, overlap, "apply", "-f", "-", "-o", "text")
	do("environments: {ua: null, ub: null}", "Written", "apply", "-f", "-")

	const order = "environments:\n  lisbon: {match: {roles: [l]}%s}\n  basel: {match: {roles: [b]}%s}\n"
	const afterBasel, afterLisbon = ", after: {environments: [basel]}", ", after: {environments: [lisbon]}"
	do(fmt.Sprintf(order, afterBasel, ""), "Written, in this order: environment basel, environment lisbon.", "apply", "-f", "-")
	do(fmt.Sprintf(order, "", afterLisbon), "Valid", "validate", "--server", "-f", "-")
	do(fmt.Sprintf(order, "", afterLisbon), "Written, in this order: environment lisbon, environment basel.", "apply", "-f", "-")
	do(fmt.Sprintf(order, afterBasel, afterLisbon), "nothing was written; the site refuses it:\nenvironment basel: after.environments: \"lisbon\" makes a cycle", "apply", "-f", "-")
	do("", "warning: environment lisbon is deleted, so environment basel opens no run", "delete", "environment/lisbon", "--force")

	// On the way from aosta back to quarto lies sion, which the second file does not name.
	do("environments:\n  aosta: {match: {roles: [a]}}\n  quarto: {match: {roles: [q]}, after: {environments: [aosta]}}\n  sion: {match: {roles: [s]}, after: {environments: [quarto]}}\n", "Written", "apply", "-f", "-")
	do("environments:\n  aosta: {match: {roles: [a]}, after: {environments: [sion]}}\n  quarto: {match: {roles: [q]}}\n", "Written, in this order: environment quarto, environment aosta.", "apply", "-f", "-")

	many := "environments:\n"
	for n := range 30 {
		many += fmt.Sprintf("  e%02d: {match: {hosts: [x%02d]}}\n", n, n)
	}
	do(many, "environment e19 and 10 more.\n", "apply", "-f", "-")
}
