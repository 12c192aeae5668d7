package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user who follows CONTRIBUTING.md where the test runs as root.
const nobody = 65534

// TestContributing follows CONTRIBUTING.md to the letter: a user without root executes the
// commands of "Set up" in a clone of his own, with nothing built and no network. Then he
// changes something: make check finds what is wrong with it, and is content when it is put
// right.
func TestContributing(t *testing.T) {
	if testing.Short() {
		t.Skip("CONTRIBUTING.md IS NOT FOLLOWED: it builds the programs, which takes a minute; run without -short")
	}
	t.Parallel()
	c := newContributor(t)
	_, setUp, _ := strings.Cut(read(t, "../../CONTRIBUTING.md"), "\n## Set up\n")
	setUp, _, _ = strings.Cut(setUp, "\n## ")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(setUp, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of commands are found, want 2", len(blocks))
	}
	for _, block := range blocks {
		if out, err := c.run(block[1]); err != nil || !strings.Contains(out, "make check: nothing has changed since") {
			t.Fatalf("%s ends with %v:\n%s", block[1], err, out)
		}
	}
	if out, err := c.run(".cache/bin/osupgrade-agent --version"); err != nil {
		t.Errorf("make build has built no agent: %v\n%s", err, out)
	}

	const made = "agent/base/port/made_test.go"
	c.write(made, "package port\n\nimport \"testing\"\n\nfunc TestMade(t *testing.T) { t.Error(\"one and one is three\") }\n")
	out, err := c.run("make check")
	for _, part := range []string{"make check: 1 file since ", ", in agent/base/port\n", "one and one is three", "--- FAIL: TestMade", "NOT TESTED: golangci-lint is not built; make lint builds it"} {
		if err == nil || !strings.Contains(out, part) {
			t.Errorf("make check of a test that fails ends with %v, and lacks %q:\n%s", err, part, out)
		}
	}
	c.write(made, "package port\n\nimport \"testing\"\n\nfunc TestMade(t *testing.T) { t.Skip(\"it needs a moon\") }\n")
	out, err = c.run("make check")
	for _, part := range []string{"NOT TESTED: 1 test of agent/base/port: TestMade (it needs a moon)", "make check: all passed"} {
		if err != nil || !strings.Contains(out, part) {
			t.Errorf("make check ends with %v, and lacks %q:\n%s", err, part, out)
		}
	}
}

// contributor is a user with a clone of the repository as it is in this folder.
type contributor struct {
	t *testing.T
	// folder has his home, his clone and his caches.
	folder string
}

func newContributor(t *testing.T) *contributor {
	t.Helper()
	folder, err := os.MkdirTemp("", "contributor") //nolint:usetesting // only its own user can enter a folder of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Go makes the folders of modules read-only.
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", `chmod -R u+w "$1"; rm -rf "$1"`, "sh", folder).CombinedOutput(); err != nil {
			t.Errorf("cannot remove %s: %v\n%s", folder, err, out)
		}
	})
	c := &contributor{t, folder}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Otherwise he would download and compile the dependencies. He cannot change what is
	// linked: it stays the files of root.
	prepare := `
mkdir clone home
git -C "$REPOSITORY" ls-files --cached --others --exclude-standard -z | (cd "$REPOSITORY" && xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh) | tar -C "$REPOSITORY" --null -T - -c | tar -C clone -x
cd clone
git init -q -b main
git add -A
git -c user.name=x -c user.email=x@x.example commit -qm x
cd ..
if [ "$(id -u)" = 0 ]; then
	cp -al "$GOCACHE" cache
	cp -al "$GOMODCACHE" modules
	find cache modules -name '*lock' -type f -delete
	find cache modules -type d -exec chown "$NOBODY" {} +
	chown -R "$NOBODY" clone home
	chmod 755 .
fi`
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", prepare)
	command.Dir = folder
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	places := strings.Fields(string(caches))
	command.Env = append(os.Environ(), "REPOSITORY="+repository, "NOBODY=65534:65534", "GOCACHE="+places[0], "GOMODCACHE="+places[1])
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("cannot make a clone: %v\n%s", err, out)
	}
	return c
}

// run executes commands in the clone, without root, and returns what they print.
func (c *contributor) run(commands string) (string, error) {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), "bash", "-euc", commands)
	command.Dir = filepath.Join(c.folder, "clone")
	// Like this, make check takes from the cache what make build has compiled. Otherwise it
	// would compile all dependencies again, because they are in another folder here. Without
	// cgo it also shows that nobody needs a C compiler.
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(c.folder, "home"), "GOPROXY=off",
		"GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"), "CGO_ENABLED=0",
	}
	if os.Geteuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		command.Env = append(command.Env, "GOCACHE="+filepath.Join(c.folder, "cache"), "GOMODCACHE="+filepath.Join(c.folder, "modules"))
	}
	out, err := command.CombinedOutput()
	return string(out), err
}

// write writes a file of the clone, for its user.
func (c *contributor) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.folder, "clone", name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
		c.t.Fatal(err)
	}
}
