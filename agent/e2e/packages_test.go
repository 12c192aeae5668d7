package e2e

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPackages builds the packages of .goreleaser.yaml and checks what is in them: the
// same in deb and rpm, and scripts that restart nothing.
func TestPackages(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"dpkg-deb", "rpm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("without %s the packages cannot be read", tool)
		}
	}
	out := t.TempDir()
	build := exec.CommandContext(t.Context(), "../../tools/packages.sh", out, "1.2.3", "amd64")
	build.Env = append(os.Environ(), "AGENT="+buildAgent(t), "WORKER="+buildAgent(t, "-tags", "worker"))
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the packages: %v\n%s", err, text)
	}
	deb, rpm := filepath.Join(out, "osupgrade-agent_1.2.3_amd64.deb"), filepath.Join(out, "osupgrade-agent-1.2.3-1.x86_64.rpm")
	tool := func(name string, args ...string) string {
		t.Helper()
		text, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, text)
		}
		return string(text)
	}
	tree := filepath.Join(out, "tree")
	tool("dpkg-deb", "-x", deb, tree)
	var ofDeb []string
	for line := range strings.Lines(tool("dpkg-deb", "-c", deb)) {
		fields := strings.Fields(line)
		if fields[1] != "root/root" {
			t.Errorf("a file belongs to somebody else: %s", line)
		}
		if path := strings.TrimPrefix(fields[5], "."); !strings.HasSuffix(path, "/") {
			ofDeb = append(ofDeb, path)
		}
	}
	ofRPM := strings.Fields(tool("rpm", "-qlp", "--nosignature", rpm))
	ofRPM = slices.DeleteFunc(ofRPM, func(path string) bool {
		info, err := os.Stat(tree + path)
		return err == nil && info.IsDir()
	})
	// The completion of zsh is where the shell of each family looks.
	const zshOfDeb, zshOfRPM = "/usr/share/zsh/vendor-completions/_osupgrade-agent", "/usr/share/zsh/site-functions/_osupgrade-agent"
	if at := slices.Index(ofRPM, zshOfRPM); at < 0 {
		t.Errorf("the rpm has no %s", zshOfRPM)
	} else {
		ofRPM[at] = zshOfDeb
	}
	slices.Sort(ofDeb)
	slices.Sort(ofRPM)
	if !slices.Equal(ofDeb, ofRPM) {
		t.Errorf("the deb has %q\nand the rpm %q", ofDeb, ofRPM)
	}
	for _, path := range []string{
		"/etc/osupgrade/serve.yaml", "/usr/bin/osupgrade-agent", "/usr/bin/osupgrade-worker", "/usr/lib/systemd/system/osupgrade-agent.service", "/usr/lib/systemd/system/osupgrade-worker.service",
		"/usr/lib/sysusers.d/osupgrade.conf", "/usr/lib/tmpfiles.d/osupgrade.conf", "/usr/share/man/man1/osupgrade-agent.1.gz", "/usr/share/man/man1/osupgrade-worker.1.gz",
		"/usr/share/man/man1/osupgrade-agent-worker-join.1.gz", "/usr/share/bash-completion/completions/osupgrade-agent",
		zshOfDeb, "/usr/share/fish/vendor_completions.d/osupgrade-agent.fish",
		"/usr/share/doc/osupgrade-agent/copyright", "/usr/share/doc/osupgrade-agent/examples/worker.yaml",
		"/usr/share/doc/osupgrade-agent/examples/monitoring/alerts.yml", "/usr/share/doc/osupgrade-agent/examples/monitoring/dashboard.json", "/usr/share/doc/osupgrade-agent/examples/news/mail",
	} {
		if !slices.Contains(ofDeb, path) {
			t.Errorf("%s is missing", path)
		}
	}
	if got := strings.TrimSpace(tool("dpkg-deb", "-I", deb, "conffiles")); got != "/etc/osupgrade/serve.yaml" {
		t.Errorf("the conffiles are %q", got)
	}
	if got := strings.TrimSpace(tool("rpm", "-qcp", "--nosignature", rpm)); got != "/etc/osupgrade/serve.yaml" {
		t.Errorf("the rpm's configuration is %q", got)
	}
	if got := tool("rpm", "-K", "--nosignature", rpm); !strings.Contains(got, "digests OK") {
		t.Errorf("the rpm is damaged: %s", got)
	}
	restarts := regexp.MustCompile(`systemctl.* (try-restart|restart|start|reload-or-restart)\b|deb-systemd-invoke`)
	scripts := tool("rpm", "-qp", "--scripts", "--nosignature", rpm)
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		scripts += tool("dpkg-deb", "-I", deb, script)
	}
	if found := restarts.FindString(scripts); found != "" {
		t.Errorf("a script of the package does %q", found)
	}
	checkUnits(t, tree)
	checkImage(t, tree+"/usr/bin/osupgrade-agent")
}

// checkUnits checks that the units start the program of the package, and how far they are
// closed.
func checkUnits(t *testing.T, tree string) {
	t.Helper()
	for program, most := range map[string]float64{"osupgrade-agent": 2.0, "osupgrade-worker": 9.5} {
		unit := program + ".service"
		path := filepath.Join(tree, "usr/lib/systemd/system", unit)
		if text := read(t, path); !strings.Contains(text, "\nExecStart=/usr/bin/"+program+" ") || !strings.Contains(text, "\nWatchdogSec=") {
			t.Errorf("%s is\n%s", unit, text)
		}
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			continue
		}
		text, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", path).CombinedOutput()
		found := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`).FindSubmatch(text)
		if found == nil {
			t.Errorf("systemd-analyze: %v\n%s", err, text)
			continue
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > most {
			t.Errorf("%s is exposed by %s, more than %.1f", unit, found[1], most)
		}
	}
}

// checkImage checks that the program needs nothing of an image but itself, and that its
// definition is made for that.
func checkImage(t *testing.T, program string) {
	t.Helper()
	static := exec.CommandContext(t.Context(), "go", "build", "-o", program+".static", "..")
	static.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := static.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	file, err := elf.Open(program + ".static")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a dynamic linker")
		}
	}
	var instructions []string
	for line := range strings.Lines(read(t, "../../packaging/Containerfile")) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word != "#" && word != "" {
			instructions = append(instructions, word)
		}
	}
	if got := strings.Join(instructions, " "); got != "FROM COPY USER VOLUME EXPOSE ENTRYPOINT CMD" {
		t.Errorf("the definition of the image is %s", got)
	}
}
