package exec

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": `
		say() { echo "$2"; read x <"$WORK/go$1"; }
		say 0 'plain text'
		say 1 '{"progress": 25, "message": "a quarter"}'
		say 2 '{"message": "no number"}'
		say 3 '{"progress": 50.9}'
		say 4 '{"progress": 60, "eta": 5}'
		say 5 'more text'`})
	for line := range 6 {
		h.pipe("go" + strconv.Itoa(line))
	}
	type told struct {
		percent int
		message string
	}
	heard := make(chan told, 100)
	ended := begin(t.Context(), h.open().Upgrade, heeding(func(percent int, message string) { heard <- told{percent, message} }))
	for line, want := range []told{
		{-1, "plain text"},
		{25, "a quarter"},
		{25, "no number"},
		{50, "no number"},
		{50, `{"progress": 60, "eta": 5} (no progress: unknown key "eta"; use "progress", "message" and "class")`},
		{50, "more text"},
	} {
		if got := <-heard; got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
		h.say("go"+strconv.Itoa(line), "on")
	}
	if got := <-ended; got.err != nil {
		t.Fatal(got.err)
	}
}

// TestOutputOfAnAction checks that the end of what a script has printed is read, its
// standard error as well, and nothing of an action that has not run.
func TestOutputOfAnAction(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": "echo one; echo two >&2; echo three"})
	s := h.open()
	if _, err := s.Upgrade(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		run    uint64
		action string
		limit  int
		want   string
		cut    bool
	}{
		{job().Run, "upgrade", 100, "one\ntwo\nthree\n", false},
		{job().Run, "upgrade", 14, "one\ntwo\nthree\n", false},
		{job().Run, "upgrade", 6, "three\n", true},
		{job().Run, "verify", 100, "", false},
		{job().Run + 1, "upgrade", 100, "", false},
	} {
		printed, cut, err := s.Output(c.run, c.action, c.limit)
		if string(printed) != c.want || cut != c.cut || err != nil {
			t.Errorf("of %s of run %d at most %d bytes are %q, cut: %v, %v", c.action, c.run, c.limit, printed, cut, err)
		}
	}
}

func TestOutputOfASecondAttemptFollowsTheFirst(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": `echo x >>"$WORK/count"; [ $(wc -l <"$WORK/count") = 2 ] || echo first; exit 1`})
	s := h.open()
	_, err := s.Upgrade(t.Context(), job())
	wantError(t, err, "first: exit status 1")
	_, err = s.Upgrade(t.Context(), job())
	wantError(t, err, "upgrade failed and printed nothing: exit status 1")
	if got := h.read("state/output/41-upgrade.log"); got != "first\n" {
		t.Fatalf("the output is %q", got)
	}
}

func TestHostileOutput(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an endless line":        "head -c 100000000 /dev/zero",
		"lines without end":      "yes 'a line' | head -c 100000000",
		"binary":                 "head -c 3000000 /dev/urandom",
		"braces":                 "yes '{' | tr -d '\\n' | head -c 20000000",
		"almost progress":        `yes '{"progress": 101}' | head -c 1200000`,
		"carriage returns alone": "yes | tr '\\ny' '\\r' | head -c 20000000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, map[string]string{"upgrade": body + "; exit 3"})
			h.opts.OutputLimit = 1 << 20
			_, err := h.open().Upgrade(t.Context(), job())
			wantError(t, err, "exit status 3, output in ")
			if text, _, _ := strings.Cut(err.Error(), ": exit status"); len(text) > script.MaxText {
				t.Fatalf("the error has %d bytes", len(text))
			}
			output := h.read("state/output/41-upgrade.log")
			if int64(len(output)) > h.opts.OutputLimit || !strings.Contains(output, dropped) {
				t.Fatalf("%d bytes of output are kept", len(output))
			}
		})
	}
}

func TestHostileVersions(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"without end":            "yes 'a 1'",
		"more than 1 MiB":        "head -c 2000000 /dev/zero",
		"and ignores the signal": "trap '' TERM; yes 'a 1'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, map[string]string{"versions": script})
			fire := make(chan time.Time, 1)
			fire <- time.Time{}
			h.opts.Grace = 3
			h.opts.After = func(d time.Duration) <-chan time.Time {
				if d == 3 {
					return fire
				}
				return nil
			}
			_, err := h.open().Versions(t.Context())
			wantError(t, err, "versions printed more than 1048576 bytes")
		})
	}
}

func TestObsolete(t *testing.T) {
	t.Parallel()
	names := []string{"versions.log", "versions.out", "notes-1.log", "7-upgrade.txt"}
	for run := 100; run < 100+keptRuns; run++ {
		names = append(names, fmt.Sprintf("%d-upgrade.log", run), fmt.Sprintf("%d-verify.log", run))
	}
	if got, want := obsolete(names, 0), []string{"7-upgrade.txt"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := obsolete(names, 7); got != nil {
		t.Errorf("the current run goes: %v", got)
	}
	if got, want := obsolete(append(names, "99-prepare.log", "9-prepare.log"), 7), []string{"9-prepare.log", "99-prepare.log"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOldOutputIsRemoved(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": "echo x"})
	s := h.open()
	for run := range uint64(keptRuns + 3) {
		j := job()
		j.Run = run + 1
		if _, err := s.Upgrade(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(h.path("state/output"))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(entries); got != keptRuns+1 {
		t.Fatalf("%d files are kept, want %d", got, keptRuns+1)
	}
}

// TestTailIsTheSameHoweverOutputArrives cuts output into pieces at random.
func TestTailIsTheSameHoweverOutputArrives(t *testing.T) {
	t.Parallel()
	line := rapid.SampledFrom([]string{
		"", "text", "\x1b[1m", "more\r", strings.Repeat("x", script.MaxLine+5), `{"progress":7}`, `{"message":"m"}`, "\xff",
	})
	rapid.Check(t, func(rt *rapid.T) {
		printed := strings.Join(rapid.SliceOfN(line, 1, 20).Draw(rt, "lines"), "\n")
		whole, pieces := silentTail(), silentTail()
		feed(whole, printed)
		for rest := printed; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			feed(pieces, rest[:n])
			rest = rest[n:]
		}
		whole.finish()
		pieces.finish()
		if whole.last != pieces.last || whole.percent != pieces.percent {
			rt.Fatalf("whole: %d %q; in pieces: %d %q", whole.percent, whole.last, pieces.percent, pieces.last)
		}
	})
}

func feed(t *tail, printed string) { _, _ = t.lines.Write([]byte(printed)) }

func silentTail() *tail { return newTail(nil, 0, 0, func(int, string) {}) }
