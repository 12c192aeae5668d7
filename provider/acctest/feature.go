package acctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Feature is what not every CLI that the provider works with has.
type Feature struct {
	Name string
	// Terraform and OpenTofu are the second numbers of the first versions 1.N that have it; 0
	// is none.
	Terraform, OpenTofu int
}

// The features of which the provider has something.
var (
	Ephemeral = Feature{"ephemeral resources", 10, 11}
	WriteOnly = Feature{"write-only attributes", 11, 11}
	Actions   = Feature{"actions", 14, 0}
	Query     = Feature{"query", 14, 0}
)

// skippedTests is the file that tools/clis.sh skipped prints at the end of make test. Without
// it, as in a test by hand, nothing is noted.
const skippedTests = ".cache/cli/skipped"

// Need skips the test, and notes that for the end of make test, if the CLI lacks a feature. A
// test that needs no CLI must show the same at the protocol.
func Need(t testing.TB, f Feature) {
	t.Helper()
	CLI(t)
	version, err := cliVersion()
	if err != nil {
		t.Fatal(err)
	}
	lacks := f.missingIn(version)
	if lacks == "" {
		return
	}
	note(t, t.Name()+": "+lacks)
	t.Skip(lacks)
}

// missingIn says that a version, such as "Terraform v1.11.4", lacks the feature; empty if it
// has it.
func (f Feature) missingIn(version string) string {
	match := regexp.MustCompile(`^(Terraform|OpenTofu) v1\.(\d+)\.`).FindStringSubmatch(version)
	if match == nil {
		return fmt.Sprintf("%q is no version of Terraform or OpenTofu that is known", version)
	}
	first := map[string]int{"Terraform": f.Terraform, "OpenTofu": f.OpenTofu}[match[1]]
	if second, err := strconv.Atoi(match[2]); err == nil && first != 0 && second >= first {
		return ""
	}
	needs := fmt.Sprintf("Terraform 1.%d", f.Terraform)
	if f.OpenTofu != 0 {
		needs += fmt.Sprintf(" or OpenTofu 1.%d", f.OpenTofu)
	}
	return fmt.Sprintf("it needs %s, which %s has; the CLI is %s; set TF_ACC_TERRAFORM_PATH to another", f.Name, needs, version)
}

// cliVersion is the first line of what the CLI says of itself.
var cliVersion = sync.OnceValues(func() (string, error) {
	cli, err := located()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(cli, "version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return line, err
})

// note appends a line to the file of skipped tests, if there is one. Several processes append
// at once; each line is one write.
func note(t testing.TB, line string) {
	t.Helper()
	top, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(strings.TrimSpace(string(top)), filepath.FromSlash(skippedTests)), os.O_WRONLY|os.O_APPEND, 0)
	if os.IsNotExist(err) {
		return
	}
	if err == nil {
		_, err = file.WriteString(line + "\n")
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
