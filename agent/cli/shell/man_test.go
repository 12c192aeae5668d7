package shell

import (
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

// TestHostileText checks with the real groff that no line of a text is a request.
func TestHostileText(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("NOT TESTED: this machine has no groff; install it to try what is made for it")
	}
	const hostile = ".SH dot\n'br quote\n\\fBbold\\fP -x --all 'a' `b` ^c ~d \"e\"\n. \\\" comment\n..x\n\\"
	cmd := exec.CommandContext(t.Context(), "groff", "-man", "-ww", "-Tascii", "-P-cbou", "-rLL=2000n")
	cmd.Stdin = strings.NewReader(".TH X 1 2026\n.SH NAME\n" + manParagraphs(hostile+"\n\n    .if\n      'if\n    \\n(.x") + ".SH SEE ALSO\nman(1)\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("groff: %v: %s", err, out)
	}
	seen := string(out)
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
		if got := Roff(text); got != want {
			t.Errorf("%q becomes %s, not %s", text, got, want)
		}
	}
}

// TestCommitDate checks that a page bears the date of the program, not that of today.
func TestCommitDate(t *testing.T) {
	t.Parallel()
	build := []debug.BuildSetting{{Key: "vcs.revision", Value: "4f2a"}, {Key: "vcs.time", Value: "2026-11-21T01:30:00Z"}}
	if got := CommitDate(build); got != "2026-11-21" {
		t.Errorf("the date is %q", got)
	}
	if got := CommitDate(build[:1]); got != "" {
		t.Errorf("the date of a build that does not know it is %q", got)
	}
}
