package apt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// debian is a Debian in a container whose packages are those of a repository of the
// test, with this program in it.
type debian struct {
	t *testing.T
	*realhost.Container
	repository *realhost.Repository
	// options are those of the strategy, as the worker hands them on.
	options map[string]any
	plan    message.ChangeSet
	// rejected are versions that were rolled back.
	rejected message.Rejected
	// release is that of the run; nil if it has none.
	release *release.Release
}

// newDebian installs packages of the repository, in the versions that it has.
func newDebian(t *testing.T, debs ...realhost.Deb) *debian {
	t.Helper()
	return newDebianOf(t, realhost.Bookworm, debs...)
}

// newDebianOf is newDebian of another tree.
func newDebianOf(t *testing.T, tree realhost.Tree, debs ...realhost.Deb) *debian {
	t.Helper()
	d := &debian{t: t, Container: realhost.NewContainer(t, realhost.ContainerOptions{Tree: tree}), repository: realhost.NewRepository(t), options: map[string]any{}}
	d.repository.Publish(debs...)
	realhost.AddRepository(d, "appliance", d.repository)
	program, err := os.ReadFile(realhost.Program(t, "0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	d.WriteFile("/usr/local/bin/osupgrade-agent", string(program))
	d.Start()
	names := make([]string, 0, len(debs))
	for _, deb := range debs {
		names = append(names, deb.Name)
	}
	d.Must("chmod 755 /usr/local/bin/osupgrade-agent; apt-get -q update && apt-get -q -y install " + strings.Join(names, " "))
	return d
}

// request is the command that asks the program for an action.
func (d *debian) request(action string) string {
	d.t.Helper()
	options := map[string]any{"Mode": "all", "Conffiles": "keep", "Removals": "refuse", "Phased": "exclude", "ThirdParty": "disable", "LockLimit": "5s", "Versions": []string{"appliance*"}}
	maps.Copy(options, d.options)
	request := map[string]any{
		"format": 1, "action": action, "tenant": "acme", "host": "h01", "run": 7, "boot-id": "b", "plan": d.plan, "rejected": d.rejected,
		"options": map[string]any{"state": "/var/lib/osupgrade-worker", "apt": options},
	}
	if d.release != nil {
		request["release"] = d.release.Pin("r1")
	}
	text, err := json.Marshal(request)
	if err != nil {
		d.t.Fatal(err)
	}
	d.WriteFile("/var/request."+action, string(text))
	return fmt.Sprintf("/usr/local/bin/osupgrade-agent strategy apt %s </var/request.%s", action, action)
}

// answer is what an action came to.
type answer struct {
	status int
	class  string
	// text is all that was printed.
	text string
	plan message.ChangeSet
}

// act has the program carry out an action.
func (d *debian) act(action string) answer {
	d.t.Helper()
	text, err := d.Run(d.t.Context(), d.request(action))
	got := answer{text: text}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got.status = ended.ExitCode()
	} else if err != nil {
		d.t.Fatalf("%s: %v\n%s", action, err, text)
	}
	for line := range strings.Lines(text) {
		var told struct {
			Class string             `json:"class"`
			Plan  *message.ChangeSet `json:"plan"`
		}
		if json.Unmarshal([]byte(line), &told) != nil {
			continue
		}
		got.class = told.Class
		if told.Plan != nil {
			got.plan = *told.Plan
		}
	}
	return got
}

// must is act, and the action has to end with a status.
func (d *debian) must(action string, status int) answer {
	d.t.Helper()
	got := d.act(action)
	if got.status != status {
		d.t.Fatalf("%s ends with %d, want %d:\n%s", action, got.status, status, got.text)
	}
	return got
}

// prepare is the action prepare; later actions have its plan.
func (d *debian) prepare() message.ChangeSet {
	d.t.Helper()
	d.plan = d.must("prepare", 0).plan
	return d.plan
}

// done checks that nothing of the plan is missing and that dpkg has finished.
func (d *debian) done() {
	d.t.Helper()
	if got := d.must("missing", 0); strings.TrimSpace(got.text) != "{}" {
		d.t.Errorf("missing: %s", got.text)
	}
	if audit := d.Must("dpkg --audit"); audit != "" {
		d.t.Errorf("dpkg --audit: %s", audit)
	}
	d.must("verify", 0)
}

func (d *debian) has(want string) {
	d.t.Helper()
	if got := strings.TrimSpace(d.Must("dpkg-query -W -f '${db:Status-Abbrev}${Package} ${Version}\n' 'appliance*' | grep -v '^.[nc]' | sort")); got != want {
		d.t.Errorf("the host has\n%s\nwant\n%s", got, want)
	}
}

func texts(plan message.ChangeSet) []string {
	var list []string
	for _, c := range plan.Changes {
		list = append(list, c.String())
	}
	for _, h := range plan.Held {
		list = append(list, fmt.Sprintf("%s stays %s, not %s: %s", h.Name, h.Version, h.Offered, h.Reason))
	}
	return list
}

func wantPlan(t *testing.T, plan message.ChangeSet, want ...string) {
	t.Helper()
	if got := texts(plan); !slices.Equal(got, want) {
		t.Errorf("the plan is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// simple is a package with one file, a conffile and a script.
func simple(name, version, postinst string) realhost.Deb {
	d := realhost.Deb{Name: name, Version: version, Files: map[string]string{"usr/share/" + name + "/version": version + "\n"}}
	if postinst != "" {
		d.Scripts = map[string]string{"postinst": "[ \"$1\" = configure ] || exit 0\n" + postinst + "\n"}
	}
	return d
}

func configured(name, version string) realhost.Deb {
	d := simple(name, version, "")
	d.Files["etc/"+name+".conf"] = "setting=" + version + "\n"
	return d
}

const marker = `[ -z "$2" ] || { touch /run/reboot-required; echo appliance-kernel >>/run/reboot-required.pkgs; }`

// TestRealUpgrade is the whole way of one host: prepare, upgrade with a reboot, and
// nothing to do afterwards.
func TestRealUpgrade(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	d := newDebian(t,
		configured("appliance", "1.0"), simple("appliance-kernel", "1.0", marker), simple("appliance-held", "1.0", ""), simple("appliance-lib", "1.0", ""), simple("appliance-pinned", "1.0", ""))
	d.Must("apt-mark hold appliance-held; apt-mark auto appliance-lib; echo setting=mine >/etc/appliance.conf; printf 'Package: appliance-pinned\\nPin: version 1.0\\nPin-Priority: 1001\\n' >/etc/apt/preferences.d/pinned")
	two := configured("appliance", "2.0")
	two.Fields = []string{"Depends: appliance-new"}
	d.repository.Add(two, simple("appliance-kernel", "2.0", marker), simple("appliance-held", "2.0", ""), simple("appliance-lib", "2.0", ""), simple("appliance-new", "2.0", ""), simple("appliance-pinned", "2.0", ""))
	// The lists know nothing of the new versions yet, and a plan fetches nothing.
	if got := d.must("plan", 0); strings.TrimSpace(got.text) != "{}" {
		t.Errorf("before prepare the plan is %s", got.text)
	}
	plan := d.prepare()
	wantPlan(t, plan,
		"appliance 1.0 → 2.0", "appliance-kernel 1.0 → 2.0", "appliance-lib 1.0 → 2.0", "appliance-new 2.0 (new)",
		"appliance-held stays 1.0, not 2.0: held by apt-mark", "appliance-pinned stays 1.0, not 2.0: held by a pin in /etc/apt/preferences")
	if plan.Download == 0 {
		t.Error("the plan does not say what is to be fetched")
	}
	d.has("hi appliance-held 1.0\nii appliance 1.0\nii appliance-kernel 1.0\nii appliance-lib 1.0\nii appliance-pinned 1.0")
	// The repository moves on, and is gone then: what is installed is what was planned.
	d.repository.Add(simple("appliance-kernel", "3.0", marker))
	d.repository.Break(realhost.Down)
	got := d.must("upgrade", 10)
	for _, want := range []string{"a reboot is required: appliance-kernel asked for it", "/etc/appliance.conf was kept as it was; the new one is beside it (/etc/appliance.conf.dpkg-dist)", `"progress":9`} {
		if !strings.Contains(got.text, want) {
			t.Errorf("it does not say %q:\n%s", want, got.text)
		}
	}
	d.has("hi appliance-held 1.0\nii appliance 2.0\nii appliance-kernel 2.0\nii appliance-lib 2.0\nii appliance-new 2.0\nii appliance-pinned 1.0")
	d.done()
	if got := d.Must("cat /etc/appliance.conf; apt-mark showauto 'appliance*'"); got != "setting=mine\nappliance-lib\nappliance-new\n" {
		t.Errorf("conffile and automatic packages are\n%s", got)
	}
	d.must("resume", 10)
	d.repository.Break(realhost.None)
	d.Must("rm /run/reboot-required*")
	wantPlan(t, d.prepare(), "appliance-kernel 2.0 → 3.0",
		"appliance-held stays 1.0, not 2.0: held by apt-mark", "appliance-pinned stays 1.0, not 2.0: held by a pin in /etc/apt/preferences")
	if got := d.must("versions", 0); !strings.Contains(got.text, `"appliance":"2.0"`) || !strings.Contains(got.text, `"os":"debian 12`) {
		t.Errorf("versions: %s", got.text)
	}
}
