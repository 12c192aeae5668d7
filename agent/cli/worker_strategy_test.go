package cli

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestStrategyCommand checks that the hidden command carries out an action of a strategy
// of this program, and ends as a script would.
func TestStrategyCommand(t *testing.T) { //nolint:paralleltest // it adds to natives
	natives["of-a-test"] = native{open: func(strategyOptions) (strategy.Strategy, error) { return fakeNative{}, nil }}
	t.Cleanup(func() { delete(natives, "of-a-test") })
	for name, row := range map[string]struct { //nolint:paralleltest // it adds to natives
		name, action, request string
		status                int
		out, err              string
	}{
		"a result":           {"of-a-test", "versions", `{"format":1,"action":"versions"}`, 0, `{"kernel":"6.1.0"}` + "\n", ""},
		"a reboot":           {"of-a-test", "upgrade", `{"format":1,"action":"upgrade"}`, 10, "", ""},
		"no plan":            {"of-a-test", "plan", `{"format":1,"action":"plan"}`, 11, "", ""},
		"a failure":          {"of-a-test", "verify", `{"format":1,"action":"verify"}`, 1, `{"message":"it is not well","class":"verify"}` + "\n", ""},
		"one that passes":    {"of-a-test", "resume", `{"format":1,"action":"resume"}`, 75, `{"message":"later","class":"transient"}` + "\n", ""},
		"no such strategy":   {"magic", "upgrade", `{"format":1,"action":"upgrade"}`, 1, `\"magic\" is not a strategy; use one of exec, apt`, ""},
		"options of another": {"of-a-test", "upgrade", `{"format":1,"action":"upgrade","options":[]}`, 1, "cannot read the options of of-a-test", ""},
		"no such action":     {"of-a-test", "explode", `{"format":1,"action":"explode"}`, 1, `\"explode\" is not an action`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			got := Run(t.Context(), "1.0", []string{"strategy", row.name, row.action}, strings.NewReader(row.request), &out, &errs)
			if got != row.status || !strings.Contains(out.String(), row.out) || errs.String() != row.err {
				t.Errorf("exit status %d with %q and %q, not %d with %q and %q", got, out.String(), errs.String(), row.status, row.out, row.err)
			}
		})
	}
}

// TestStrategyFlags checks that a worker is told what its strategy lacks, before it does
// anything.
func TestStrategyFlags(t *testing.T) { //nolint:paralleltest // it adds to natives
	natives["of-a-test"] = native{open: func(strategyOptions) (strategy.Strategy, error) { return fakeNative{}, nil }}
	t.Cleanup(func() { delete(natives, "of-a-test") })
	for name, row := range map[string]struct { //nolint:paralleltest // it adds to natives
		flags []string
		want  string
	}{
		"no scripts":       {[]string{"--strategy", "exec"}, "scripts: it is required for strategy exec"},
		"scripts too many": {[]string{"--strategy", "of-a-test", "--scripts", t.TempDir()}, "scripts: strategy of-a-test has no scripts; leave it out"},
		"no such strategy": {[]string{"--strategy", "magic"}, `strategy: "magic" is not a strategy; use auto, or one of exec, apt`},
		"wrong options":    {[]string{"--strategy", "apt", "--apt-snapshot", "mirror"}, "apt-snapshot: "},
		"http":             {[]string{"--strategy", "rauc", "--rauc-bundle", "http://updates.example.org/a.raucb"}, "without encryption; use https, or allow http (rauc-allow-http)"},
		"a version":        {[]string{"--strategy", "rauc", "--rauc-bundle", "https://updates.example.org/{version}.raucb"}, `rauc-bundle has "{version}.raucb"; it may have {compatible}, and the version to install is declared at the site, by a release`},
		"a wrong word":     {[]string{"--strategy", "apt", "--apt-conffiles", "ask"}, "--apt-conffiles must be one of"},
	} {
		t.Run(name, func(t *testing.T) {
			var errs strings.Builder
			args := append([]string{"worker", "--tenant", "acme", "--host", "h01", "--application", "app", "--key-file", "k", "--state", t.TempDir()}, row.flags...)
			if got := Run(t.Context(), "1.0", args, strings.NewReader(""), &strings.Builder{}, &errs); got != exitUsage || !strings.Contains(errs.String(), row.want) {
				t.Errorf("exit status %d with %q, not %q", got, errs.String(), row.want)
			}
		})
	}
}

// TestVariablesOfReleases checks that a worker does not start with a variable that once said what is
// installed: it would install something else.
func TestVariablesOfReleases(t *testing.T) { //nolint:paralleltest // it sets variables
	for name, want := range map[string]string{
		"OSUPGRADE_APT_SOURCES":       "use its packages.as-of, and set apt-snapshot",
		"OSUPGRADE_RAUC_VERSION":      "use its version and images",
		"OSUPGRADE_OSTREE_REF":        "use its images, whose url may be a branch",
		"OSUPGRADE_SYSUPDATE_VERSION": "use its version and images",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "2.4")
			var errs strings.Builder
			args := []string{"worker", "--tenant", "acme", "--host", "h01", "--application", "app", "--key-file", "k", "--state", t.TempDir(), "--strategy", "rauc"}
			want := "variable " + name + " has no effect any more; what is installed is declared at the site, by a release: " + want
			if got := Run(t.Context(), "1.0", args, strings.NewReader(""), &strings.Builder{}, &errs); got != exitUsage || !strings.Contains(errs.String(), want) {
				t.Errorf("exit status %d with %q, not %q", got, errs.String(), want)
			}
		})
	}
}

// TestDetectStrategy checks how the strategy of a host is found, and that the reason is
// told.
func TestDetectStrategy(t *testing.T) { //nolint:paralleltest // it adds to natives
	natives["of-an-image"] = native{signs: []string{"/etc/image.conf", "/run/image"}, image: true}
	natives["of-rpm"] = native{signs: []string{"/var/lib/rpm"}}
	t.Cleanup(func() { delete(natives, "of-an-image"); delete(natives, "of-rpm") })
	const dpkg, dnf = "/var/lib/dpkg/status", "/etc/dnf/dnf.conf"
	for name, row := range map[string]struct { //nolint:paralleltest // it adds to natives
		scripts         string
		has             []string
		want, why, fail string
	}{
		"a Debian":                  {"", []string{dpkg}, "apt", dpkg + " exists", ""},
		"a Fedora":                  {"", []string{dnf}, "dnf", dnf + " exists", ""},
		"a Debian with dnf":         {"", []string{dpkg, dnf}, "", "", "may be upgraded by apt or by dnf (" + dpkg + " exists, " + dnf + " exists); name the one to use"},
		"a Debian with scripts":     {"/etc/scripts", []string{dpkg}, "exec", "scripts is /etc/scripts", ""},
		"an image made from Debian": {"", []string{dpkg, "/run/image"}, "of-an-image", "/run/image exists", ""},
		"two kinds of packages":     {"", []string{dpkg, "/var/lib/rpm"}, "", "", "may be upgraded by apt or by of-rpm (" + dpkg + " exists, /var/lib/rpm exists); name the one to use"},
		"slots of RAUC":             {"", []string{dpkg, "/etc/rauc/system.conf"}, "rauc", "/etc/rauc/system.conf exists", ""},
		"started by OSTree":         {"", []string{dpkg, "/run/ostree-booted"}, "ostree", "/run/ostree-booted exists", ""},
		"Fedora Silverblue":         {"", []string{"/var/lib/rpm", "/run/ostree-booted", "/usr/bin/rpm-ostree"}, "rpm-ostree", "/usr/bin/rpm-ostree exists", ""},
		"rpm-ostree in packages":    {"", []string{"/var/lib/rpm", "/usr/bin/rpm-ostree"}, "of-rpm", "/var/lib/rpm exists", ""},
		"two managers":              {"", []string{"/run/ostree-booted", "/usr/bin/rpm-ostree", "/usr/bin/bootc"}, "", "", "may be upgraded by bootc or by rpm-ostree (/usr/bin/bootc exists, /usr/bin/rpm-ostree exists); name the one to use"},
		"updated by systemd":        {"", []string{dpkg, "/usr/lib/sysupdate.d/*.transfer"}, "sysupdate", "/usr/lib/sysupdate.d/*.transfer exists", ""},
		"an unknown system":         {"", nil, "", "", " /etc/image.conf or /run/image (of-an-image), "},
	} {
		t.Run(name, func(t *testing.T) {
			got, why, err := detectStrategy(row.scripts, func(path string) bool { return slices.Contains(row.has, path) })
			if got != row.want || why != row.why || (err == nil) != (row.fail == "") || err != nil && !strings.Contains(err.Error(), row.fail) {
				t.Errorf("got %q because %q, %v", got, why, err)
			}
		})
	}
}

// TestPackageGuides checks that the guides of the strategies for packages name each flag
// with each of its words.
func TestPackageGuides(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]reflect.Type{"apt": reflect.TypeFor[aptOptions](), "dnf": reflect.TypeFor[dnfOptions]()} {
		guide, err := os.ReadFile("../../docs/guides/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		flags := 0
		for field := range options.Fields() {
			flags++
			words := []string{name + "-" + strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(field.Name, "Party", "-party"), "Limit", "-limit"))}
			if enum := field.Tag.Get("enum"); enum != "" {
				words = append(words, strings.Split(enum, ",")...)
			}
			for _, word := range words {
				if !strings.Contains(string(guide), "`"+word+"`") {
					t.Errorf("the guide of %s does not name %s of %s", name, word, field.Name)
				}
			}
		}
		if flags == 0 {
			t.Errorf("strategy %s has no flags", name)
		}
	}
}

// TestScoped checks that the hidden command says so when there is no such program.
func TestScoped(t *testing.T) {
	t.Parallel()
	var errs strings.Builder
	if got := Run(t.Context(), "1.0", []string{"scoped", "/no/such/program", "--flag"}, strings.NewReader(""), &strings.Builder{}, &errs); got != exitFailed || !strings.Contains(errs.String(), "/no/such/program") {
		t.Errorf("exit status %d with %q", got, errs.String())
	}
}

// fakeNative is a strategy of this program.
type fakeNative struct{ strategy.Strategy }

func (fakeNative) Versions(context.Context) (map[string]string, error) {
	return map[string]string{"kernel": "6.1.0"}, nil
}

func (fakeNative) Plan(context.Context, strategy.Job) (message.ChangeSet, error) {
	return message.ChangeSet{}, strategy.ErrNoPlan
}

func (fakeNative) Upgrade(context.Context, strategy.Job) (strategy.Outcome, error) {
	return strategy.RebootRequired, nil
}

func (fakeNative) Resume(context.Context, strategy.Job) (strategy.Outcome, error) {
	return 0, strategy.Fail(message.Transient, errors.New("later"))
}

func (fakeNative) Verify(context.Context, strategy.Job) error {
	return strategy.Fail(message.Verify, errors.New("it is not well"))
}
