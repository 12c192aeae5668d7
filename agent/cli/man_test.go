package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
)

// testManual is the manual of a version.
func testManual() shell.Manual {
	m := manual("1.2.3")
	m.Date = "2026-11-21"
	return m
}

// rendered returns what a reader of a man page sees, in ASCII and on very long lines.
func rendered(t *testing.T, page string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "groff", "-man", "-ww", "-Tascii", "-P-cbou", "-rLL=2000n")
	cmd.Stdin = strings.NewReader(page)
	var warnings strings.Builder
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || warnings.Len() > 0 {
		t.Fatalf("groff: %v: %s\n%s", err, warnings.String(), page)
	}
	return string(out)
}

// TestManPages checks that the program and each command have a page with the sections
// of man-pages(7), with each flag, its default and its variables, and with the examples.
func TestManPages(t *testing.T) {
	t.Parallel()
	root := model(t)
	nodes, pages := shell.Commands(root), testManual().Pages(root)
	if len(pages) != len(nodes) || len(nodes) <= len(examples) {
		t.Fatalf("there are %d pages of %d commands", len(pages), len(nodes))
	}
	for i, n := range nodes {
		page := pages[i]
		if want := strings.ReplaceAll(strings.TrimSpace("osupgrade-agent "+shell.Name(n)), " ", "-"); page.Name != want {
			t.Errorf("the page of %q is called %s, not %s", shell.Name(n), page.Name, want)
		}
		var sections []string
		for line := range strings.SplitSeq(page.Text, "\n") {
			if name, found := strings.CutPrefix(line, ".SH "); found {
				sections = append(sections, name)
			}
			if strings.TrimSpace(line) != line || strings.HasPrefix(line, "'") {
				t.Errorf("%s: a line begins or ends with white space, or is a request: %q", page.Name, line)
			}
		}
		if want := manSections(n); !slices.Equal(sections, want) {
			t.Errorf("%s has the sections %q, not %q", page.Name, sections, want)
		}
		_, options, _ := strings.Cut(page.Text, ".SH OPTIONS\n")
		for _, f := range shell.Flags(n) {
			_, entry, found := strings.Cut(options, `\fB\-\-`+shell.Roff(f.Name)+`\fP`)
			entry, _, _ = strings.Cut(entry, "\n.")
			want := f.Help
			if f.Default != "" {
				want += " Default: " + f.Default + "."
			}
			if len(f.Envs) > 0 {
				want += " Variable: " + f.Envs[0]
			}
			if !found || !strings.Contains(entry, "\n"+shell.Roff(want)) || f.Required != strings.HasSuffix(entry, " Required.") {
				t.Errorf("%s does not say all of --%s: %q", page.Name, f.Name, entry)
			}
		}
		for _, status := range exitStatuses {
			if !strings.Contains(page.Text, fmt.Sprintf(".TP\n\\fB%d\\fP\n%s\n", status.Code, shell.Roff(status.Meaning))) {
				t.Errorf("%s does not say what the exit code %d means", page.Name, status.Code)
			}
		}
		_, others, _ := strings.Cut(page.Text, ".SH SEE ALSO\n")
		for other := range strings.SplitSeq(strings.TrimSpace(others), ",\n") {
			if !slices.ContainsFunc(pages, func(p shell.Page) bool { return p.Name != page.Name && other == `\fB`+shell.Roff(p.Name)+`\fP(1)` }) {
				t.Errorf("%s refers to a page that does not exist: %q", page.Name, other)
			}
		}
	}
}

// manSections are the sections of a command's page, in their order.
func manSections(n *kong.Node) []string {
	sections := []string{"NAME", "SYNOPSIS", "DESCRIPTION"}
	if len(n.Children) > 0 {
		sections = append(sections, "COMMANDS")
	}
	if len(n.Positional) > 0 {
		sections = append(sections, "ARGUMENTS")
	}
	sections = append(sections, "OPTIONS")
	if n.Leaf() {
		sections = append(sections, "EXAMPLES")
	}
	return append(sections, "EXIT STATUS", "SEE ALSO")
}

// TestManPagesRendered checks with the real groff that a reader sees each example and
// the text of each command letter by letter, so that they can be copied, and without a
// warning.
func TestManPagesRendered(t *testing.T) {
	t.Parallel()
	needShell(t, "groff")
	root := model(t)
	for i, page := range testManual().Pages(root) {
		n, seen := shell.Commands(root)[i], "\n"+rendered(t, page.Text)
		for _, example := range examples[shell.Name(n)] {
			if !strings.Contains(seen, " "+example+"\n") {
				t.Errorf("%s does not show the example %s:\n%s", page.Name, example, seen)
			}
		}
		parts := []string{"osupgrade-agent 1.2.3 ", " 2026-11-21 ", "\n       " + page.Name + " - "}
		for _, f := range shell.Flags(n) {
			parts = append(parts, "--"+f.Name, f.Help)
		}
		for _, part := range parts {
			if !strings.Contains(seen, part) {
				t.Errorf("%s does not show %q:\n%s", page.Name, part, seen)
			}
		}
	}
}

// TestManLint has mandoc, the other reader of man pages, check them.
func TestManLint(t *testing.T) {
	t.Parallel()
	needShell(t, "mandoc")
	for _, page := range testManual().Pages(model(t)) {
		cmd := exec.CommandContext(t.Context(), "mandoc", "-man", "-Tlint", "-Wwarning")
		cmd.Stdin = strings.NewReader(page.Text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", page.Name, err, out)
		}
	}
}

// TestMan checks that the command writes the pages, anew too, and says why it cannot.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	want := manual("1.2.3").Pages(model(t))
	for range 2 {
		code, stdout, stderr := call(t, "man", "--out", dir)
		if code != exitOK || stdout != fmt.Sprintf("Wrote %d man pages to %s; the first is osupgrade-agent.1.\n", len(want), dir) {
			t.Fatalf("%d: %s%s", code, stdout, stderr)
		}
	}
	for _, page := range want {
		text, err := os.ReadFile(filepath.Join(dir, page.Name+".1"))
		if err != nil || string(text) != page.Text {
			t.Errorf("%s: %v, or another text:\n%s", page.Name, err, text)
		}
	}
	file := writeIn(t, t.TempDir())("file", "")
	try(t, map[string]use{
		"no folder": {[]string{"man"}, exitUsage, "missing flags: --out"},
		"a file":    {[]string{"man", "--out", file}, exitFailed, "cannot make the folder of the man pages: "},
		"no page":   {[]string{"man", "--out", "/proc/self/fdinfo"}, exitFailed, "cannot write a man page: "},
	})
}
