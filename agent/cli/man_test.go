package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

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
	nodes, pages := withCommands(root), manPages(root, "1.2.3", "2026-11-21")
	if len(pages) != len(nodes) || len(nodes) <= len(examples) {
		t.Fatalf("there are %d pages of %d commands", len(pages), len(nodes))
	}
	for i, n := range nodes {
		page := pages[i]
		if want := strings.ReplaceAll(strings.TrimSpace("osupgrade-agent "+commandName(n)), " ", "-"); page.name != want {
			t.Errorf("the page of %q is called %s, not %s", commandName(n), page.name, want)
		}
		var sections []string
		for line := range strings.SplitSeq(page.text, "\n") {
			if name, is := strings.CutPrefix(line, ".SH "); is {
				sections = append(sections, name)
			}
			if strings.TrimSpace(line) != line || strings.HasPrefix(line, "'") {
				t.Errorf("%s: a line begins or ends with white space, or is a request: %q", page.name, line)
			}
		}
		if want := manSections(n); !slices.Equal(sections, want) {
			t.Errorf("%s has the sections %q, not %q", page.name, sections, want)
		}
		_, options, _ := strings.Cut(page.text, ".SH OPTIONS\n")
		for _, f := range flagsOf(n) {
			_, entry, found := strings.Cut(options, `\fB\-\-`+roff(f.Name)+`\fP`)
			entry, _, _ = strings.Cut(entry, "\n.")
			want := f.Help
			if f.Default != "" {
				want += " Default: " + f.Default + "."
			}
			if len(f.Envs) > 0 {
				want += " Variable: " + f.Envs[0]
			}
			if !found || !strings.Contains(entry, "\n"+roff(want)) || f.Required != strings.HasSuffix(entry, " Required.") {
				t.Errorf("%s does not say all of --%s: %q", page.name, f.Name, entry)
			}
		}
		for _, status := range exitStatuses {
			if !strings.Contains(page.text, fmt.Sprintf(".TP\n\\fB%d\\fP\n%s\n", status.code, roff(status.meaning))) {
				t.Errorf("%s does not say what the exit code %d means", page.name, status.code)
			}
		}
		_, others, _ := strings.Cut(page.text, ".SH SEE ALSO\n")
		for other := range strings.SplitSeq(strings.TrimSpace(others), ",\n") {
			if !slices.ContainsFunc(pages, func(p manPage) bool { return p.name != page.name && other == `\fB`+roff(p.name)+`\fP(1)` }) {
				t.Errorf("%s refers to a page that does not exist: %q", page.name, other)
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
	for i, page := range manPages(root, "1.2.3", "2026-11-21") {
		n, seen := withCommands(root)[i], "\n"+rendered(t, page.text)
		for _, example := range examples[commandName(n)] {
			if !strings.Contains(seen, " "+example+"\n") {
				t.Errorf("%s does not show the example %s:\n%s", page.name, example, seen)
			}
		}
		parts := []string{"osupgrade-agent 1.2.3 ", " 2026-11-21 ", "\n       " + page.name + " - "}
		for _, f := range flagsOf(n) {
			parts = append(parts, "--"+f.Name, f.Help)
		}
		for _, part := range parts {
			if !strings.Contains(seen, part) {
				t.Errorf("%s does not show %q:\n%s", page.name, part, seen)
			}
		}
	}
	const hostile = ".SH dot\n'br quote\n\\fBbold\\fP -x --all 'a' `b` ^c ~d \"e\"\n. \\\" comment\n..x\n\\"
	seen := rendered(t, ".TH X 1 2026\n.SH NAME\n"+manParagraphs(hostile+"\n\n    .if\n      'if\n    \\n(.x")+".SH SEE ALSO\nman(1)\n")
	for _, part := range []string{strings.ReplaceAll(hostile, "\n", " "), "           .if\n             'if\n           \\n(.x\n"} {
		if !strings.Contains(seen, part) {
			t.Errorf("groff shows no %q:\n%s", part, seen)
		}
	}
}

// TestRoff checks what is escaped where this machine's groff would show the same without
// it: other readers of man pages, and paper, have typographic quotes and hyphens.
func TestRoff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                "",
		"plain, (text)":   "plain, (text)",
		".br":             `\&.br`,
		"a.b":             "a.b",
		`--out=a-b`:       `\-\-out=a\-b`,
		`'x' ` + "`y`":    `\(aqx\(aq \(gay\(ga`,
		`C:\n "x" ^y ~/z`: `C:\(rsn \(dqx\(dq \(hay \(ti/z`,
		"ü → x\t\x1b":     `\[u00FC] \[u2192] x\[u0009]\[u001B]`,
	} {
		if got := roff(text); got != want {
			t.Errorf("%q becomes %s, not %s", text, got, want)
		}
	}
}

// TestManLint has mandoc, the other reader of man pages, check them.
func TestManLint(t *testing.T) {
	t.Parallel()
	needShell(t, "mandoc")
	for _, page := range manPages(model(t), "1.2.3", "2026-11-21") {
		cmd := exec.CommandContext(t.Context(), "mandoc", "-man", "-Tlint", "-Wwarning")
		cmd.Stdin = strings.NewReader(page.text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", page.name, err, out)
		}
	}
}

// TestCommitDate checks that a page bears the date of the program, not that of today.
func TestCommitDate(t *testing.T) {
	t.Parallel()
	build := []debug.BuildSetting{{Key: "vcs.revision", Value: "4f2a"}, {Key: "vcs.time", Value: "2026-11-21T01:30:00Z"}}
	if got := commitDate(build); got != "2026-11-21" {
		t.Errorf("the date is %q", got)
	}
	if got := commitDate(build[:1]); got != "" {
		t.Errorf("the date of a build that does not know it is %q", got)
	}
}

// TestMan checks that the command writes the pages, anew too, and says why it cannot.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "share", "man1")
	var date string
	if info, ok := debug.ReadBuildInfo(); ok {
		date = commitDate(info.Settings)
	}
	want := manPages(model(t), "1.2.3", date)
	for range 2 {
		code, stdout, stderr := call(t, "man", "--out", dir)
		if code != exitOK || stdout != fmt.Sprintf("Wrote %d man pages to %s; the first is osupgrade-agent.1.\n", len(want), dir) {
			t.Fatalf("%d: %s%s", code, stdout, stderr)
		}
	}
	for _, page := range want {
		text, err := os.ReadFile(filepath.Join(dir, page.name+".1"))
		if err != nil || string(text) != page.text {
			t.Errorf("%s: %v, or another text:\n%s", page.name, err, text)
		}
	}
	file := writeIn(t, t.TempDir())("file", "")
	try(t, map[string]use{
		"no folder": {[]string{"man"}, exitUsage, "missing flags: --out"},
		"a file":    {[]string{"man", "--out", file}, exitFailed, "cannot make the folder of the man pages: "},
		"no page":   {[]string{"man", "--out", "/proc/self/fdinfo"}, exitFailed, "cannot write a man page: "},
	})
}
