package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestCreateRelease checks that a release is made of what a run has installed, under a name that is not
// taken; that what is left out is named; and that the printed file declares the same release.
func TestCreateRelease(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	do := func(stdin, want string, args ...string) string {
		t.Helper()
		_, stdout, stderr := callWith(t, stdin, as(t, s.URL, s.Token, "acme", args...)...)
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q prints\n%s%s, without %q", args, stdout, stderr, want)
		}
		return stdout
	}
	made := v1.Release{Description: "What run 57 installed", Packages: &release.Packages{Select: release.Listed, Only: []string{"bash=5.2", "libc6=2.36"}}}
	s.SetInstalled("acme", 57, v1.Installed{Release: made, LeftOut: []string{"nginx on 3 of 40 hosts"}})
	const left = "\nLeft out, because only some hosts have changed them:\n  nginx on 3 of 40 hosts\n"
	do("", "Release nov is created: 2 packages, each with its exact version."+left, "create-release", "nov", "--from-run", "57", "-o", "text")
	if kept, _, ok := s.Release("acme", "nov"); !ok || kept.Digest() != made.Digest() || kept.Description != made.Description {
		t.Errorf("the site has %+v", kept)
	}
	do("", "cannot create release nov: there is one of this name, and a release never changes; choose another name", "create-release", "nov", "--from-run", "57")
	do("", "Release run-57 is created", "create-release", "--from-run", "57", "-o", "text")
	file := do("", "# left out: nginx on 3 of 40 hosts\n", "create-release", "dec", "--from-run", "57", "--print", "-o", "text")
	do(file, "Written", "apply", "-f", "-", "-o", "text")
	if kept, _, ok := s.Release("acme", "dec"); !ok || kept.Digest() != made.Digest() {
		t.Errorf("the file declares %+v", kept)
	}
	do("", "run 58 has upgraded no host", "create-release", "--from-run", "58")
	do("", "from-run", "create-release", "nov")
}
