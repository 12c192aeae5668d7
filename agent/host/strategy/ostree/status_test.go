package ostree

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

var (
	one   = strings.Repeat("1", 64)
	two   = strings.Repeat("2", 64)
	three = strings.Repeat("3", 64)
)

// TestParseStatus reads what OSTree 2022.7 prints, and what its source prints besides.
func TestParseStatus(t *testing.T) {
	t.Parallel()
	all, err := parseStatus("  debian " + two + ".0 (pending)\n    Version: 2\n    origin refspec: origin:stable\n" +
		"* debian " + one + ".1\n    Version: 1.0 beta\n    Unlocked: development\n    Pinned: yes\n    origin refspec: origin:stable\n      `- source\n    GPG: Signature made Sun 22 Nov 2026: BAD signature\n" +
		"  debian " + three + ".0 (rollback)\n    origin: <unknown origin type>\n")
	want := deployments{
		{name: "debian", id: two, label: "2", origin: "origin:stable"},
		{name: "debian", id: one, serial: 1, label: "1.0 beta", origin: "origin:stable", booted: true, pinned: true},
		{name: "debian", id: three},
	}
	if err != nil || len(all) != len(want) {
		t.Fatalf("%+v, %v", all, err)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("deployment %d is %+v, not %+v", i, all[i], want[i])
		}
	}
	if all, err = parseStatus("  debian " + two + ".0 (staged)\n* debian " + one + ".0\n"); err != nil || !all[0].staged || all[1].staged {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err = parseStatus("No deployments.\n"); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, odd := range []string{"* debian\n", "* debian " + one + "\n", "* debian " + one[1:] + ".0\n", "* debian " + one + ".x\n", "  x y.0\n"} {
		if all, err := parseStatus(odd); err == nil {
			t.Errorf("%q is read as %+v", odd, all)
		}
	}
}

// FuzzParseStatus checks that no output is read as a deployment without a checksum, and
// that none makes a decision fail but by an error.
func FuzzParseStatus(f *testing.F) {
	f.Add("* debian " + one + ".0\n    Version: 1\n")
	f.Add("  debian " + two + ".0 (staged)\n    Pinned: yes\n* debian " + one + ".0\n")
	f.Add("    Version: 1\n* \n")
	f.Fuzz(func(t *testing.T, printed string) {
		all, err := parseStatus(printed)
		if err != nil {
			return
		}
		for _, d := range all {
			if len(d.id) != 64 || d.name == "" {
				t.Errorf("%+v", d)
			}
		}
		now, err := all.Systems()
		if err != nil {
			return
		}
		plan := now.Plan(versionOf("x", three), 0, "", nil)
		if err := plan.Check(); err != nil {
			t.Errorf("the plan of %q: %v", printed, err)
		}
		_, _, _ = back(all, plan)
	})
}

// nothing is a way back for which nothing is done.
const nothing image.WayBack = 0

// back returns what a rollback of a plan does, and with which deployment.
func back(all deployments, plan message.ChangeSet) (image.WayBack, deployment, error) {
	now, err := all.Systems()
	if err != nil || len(plan.Changes) == 0 {
		return nothing, deployment{}, err
	}
	first, _ := all.first()
	switch c := plan.Changes[0]; now.Back(c) {
	case image.Restore:
		old, err := all.find(c.From)
		return image.Restore, old, err
	case image.UnderWay:
		return image.UnderWay, first, nil
	default:
		if !all.next(c.To) {
			return nothing, deployment{}, nil
		}
		return image.Discard, first, nil
	}
}

// TestDecisions checks what the deployments say, and what undoes the plan from 1 to 2.
func TestDecisions(t *testing.T) {
	t.Parallel()
	d := func(id string, change func(d *deployment)) deployment {
		d := deployment{name: "debian", id: id, label: id[:1], origin: "origin:stable"}
		if change != nil {
			change(&d)
		}
		return d
	}
	booted := func(d *deployment) { d.booted = true }
	fresh := func(d *deployment) { d.fresh = true }
	v := func(id string) string { return versionOf(id[:1], id) }
	plan := message.ChangeSet{Changes: []message.Change{{Name: "debian", From: v(one), To: v(two)}}}
	for name, c := range map[string]struct {
		all    deployments
		want   image.Systems
		do     image.WayBack
		old    string
		failed bool
	}{
		"before":          {deployments{d(one, booted)}, image.Systems{Running: v(one)}, nothing, "", false},
		"deployed":        {deployments{d(two, fresh), d(one, booted)}, image.Systems{Running: v(one), Next: v(two)}, image.Discard, two, false},
		"staged":          {deployments{d(two, func(d *deployment) { d.staged = true }), d(one, booted)}, image.Systems{Running: v(one), Next: v(two)}, image.Discard, two, false},
		"runs":            {deployments{d(two, booted), d(one, nil)}, image.Systems{Running: v(two)}, image.Restore, one, false},
		"on its way":      {deployments{d(one, fresh), d(two, booted), d(one, nil)}, image.Systems{Running: v(two), Next: v(one)}, image.UnderWay, one, false},
		"is back":         {deployments{d(one, booted), d(two, nil)}, image.Systems{Running: v(one)}, nothing, "", false},
		"did not start":   {deployments{d(two, nil), d(one, booted)}, image.Systems{Running: v(one), Failed: v(two)}, image.Discard, two, false},
		"the old is gone": {deployments{d(two, booted), d(three, nil)}, image.Systems{Running: v(two)}, image.Restore, "", true},
		"of another root": {deployments{d(two, booted), d(one, func(d *deployment) { d.name = "fedora" })}, image.Systems{Running: v(two)}, image.Restore, "", true},
	} {
		c.want.Name = "debian"
		if got, err := c.all.Systems(); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
		do, old, err := back(c.all, plan)
		if do != c.do || old.id != c.old || (err != nil) != c.failed {
			t.Errorf("%s: the way back is %d to %.3q, %v", name, do, old.id, err)
		}
	}
	if _, err := (deployments{d(one, nil)}).Systems(); err == nil {
		t.Error("a host on which no deployment runs has no error")
	}
}

// TestVersion checks that a version tells two commits of one label apart, and names its
// commit.
func TestVersion(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"1.0", one, "1.0 (111111111111)"},
		{"", one, "111111111111"},
		{"40 (beta)", "sha256:" + two, "40 (beta) (222222222222)"},
		{"\x1b[2J", one, "[2J (111111111111)"},
	} {
		if got := versionOf(c[0], c[1]); got != c[2] || !strings.Contains(c[1], idOf(got)) {
			t.Errorf("%q of %.10s is %q, of which the id is %q", c[0], c[1], got, idOf(got))
		}
	}
}

// TestFollow checks that a host follows its branch again after a way back, and that what
// is said of one deployment is not said of the next.
func TestFollow(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{
		"":                                  "[origin]\nrefspec=origin:stable\n",
		"[origin]\nrefspec=" + one + "\n":   "[origin]\nrefspec=origin:stable\n",
		"[origin]\nrefspec=a\nbaserefs=x\n": "[origin]\nrefspec=origin:stable\nbaserefs=x\n",
		"[origin]\nrefspec=a\n\n[libostree-transient]\npinned=true\n":                 "[origin]\nrefspec=origin:stable\n",
		"[packages]\nrequested=vim\n[origin]\nrefspec = a\n[rpmostree]\noverride=b\n": "[origin]\nrefspec=origin:stable\n[packages]\nrequested=vim\n[rpmostree]\noverride=b\n",
	} {
		if got := follow(origin, "origin:stable"); got != want {
			t.Errorf("%q becomes %q, not %q", origin, got, want)
		}
	}
}

// TestBranch checks what a host may follow.
func TestBranch(t *testing.T) {
	t.Parallel()
	if remote, name, err := branch("origin:debian/12/x86_64"); err != nil || remote != "origin" || name != "debian/12/x86_64" {
		t.Errorf("%q, %q, %v", remote, name, err)
	}
	for _, odd := range []string{"", one, "stable", "origin:", ":stable", "--origin:stable", "origin:--url=https://example.com", "origin:stable@" + one, "origin:a b"} {
		if remote, name, err := branch(odd); err == nil {
			t.Errorf("%q is read as %q and %q", odd, remote, name)
		}
	}
}

// TestClassOf checks the classes of what the tools print.
func TestClassOf(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]message.Class{
		"Commit 1f: GPG verification enabled, but no signatures found (use gpg-verify=false in remote config to disable)": message.Artifact,
		"Can't check signature: public key not found":   message.Artifact,
		"No such branch 'stable' in repository summary": message.Artifact,
		"Server returned HTTP 404":                      message.Artifact,
		"Server returned HTTP 403":                      message.Repository,
		"Server returned HTTP 503":                      message.Transient,
		"While fetching http://127.0.0.1:1/config: [7] Failed to connect to 127.0.0.1 port 1":    message.Transient,
		"While fetching https://x/config: [6] Could not resolve host: x":                         message.Transient,
		"While fetching https://x/config: [60] SSL certificate problem: self-signed certificate": message.Repository,
		"min-free-space-percent '3%' would be exceeded, at least 1 MB requested":                 message.Space,
		"opendir(boot): No space left on device":                                                 message.Space,
		"Locking repo exclusive failed: Resource temporarily unavailable":                        message.Lock,
		"Transaction in progress: upgrade":                                                       message.Lock,
		"Bootloader write config: grub2-mkconfig: child process exited with code 1":              message.Install,
	} {
		if got := classOf(said, message.Install); got != want {
			t.Errorf("%q is %q, not %q", said, got, want)
		}
	}
}
