package script

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// write creates a script. It holds syscall.ForkLock: a process forked meanwhile
// would inherit the file open for writing, and execve(2) would fail (ETXTBSY).
func write(t *testing.T, content string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs a shell script with a named pipe as $1.
func command(t *testing.T, body string) (cmd *exec.Cmd, pipe string) {
	t.Helper()
	path := write(t, "#!/bin/sh\n"+body+"\n")
	pipe = filepath.Join(filepath.Dir(path), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, pipe), pipe
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ body, said, want string }{
		"it does well":             {"echo one; echo two", "two", ""},
		"it says nothing":          {"exit 0", "", ""},
		"it fails":                 {"echo no room >&2; exit 3", "no room", "exit status 3"},
		"the last line lacks end":  {"echo one; printf two; exit 1", "two", "exit status 1"},
		"empty lines follow":       {"echo one; echo; printf '\\033[0m\\n'; exit 1", "one", "exit status 1"},
		"a signal":                 {"echo on it; kill -9 $$", "on it", "it was ended by signal 9 (killed)"},
		"more than it is to print": {"head -c 3000000 /dev/zero | tr '\\0' x; exit 1", strings.Repeat("x", MaxText-3) + "...", "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, _ := command(t, row.body)
			said, err := Run(t.Context(), cmd)
			if said != row.said {
				t.Errorf("it said %q, want %q", said, row.said)
			}
			if text := errorText(err); text != row.want {
				t.Errorf("got error %q, want %q", text, row.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ content, want string }{
		"no interpreter named":   {"echo hello\n", "a script's first line names its interpreter"},
		"interpreter is missing": {"#!/no/such/shell\n", "the interpreter that its first line names is missing"},
		"a folder for one":       {"#!/tmp\n", "the script, its interpreter or the mount (noexec) forbids it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Run(t.Context(), exec.Command(write(t, row.content)))
			wantError(t, err, row.want)
		})
	}
}

// family is a script with a child process. Both hold $1 open for writing.
const family = `exec 9>"$1"
( trap '' TERM HUP INT; while :; do sleep 1000; done ) &
echo started >&9
`

// untilGone reads until no process has the pipe open for writing.
func untilGone(t *testing.T, pipe *bufio.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(pipe); err != nil || len(rest) > 0 {
		t.Fatalf("read %q, %v", rest, err)
	}
}

func TestTheWholeGroupIsKilledWhenItsTimeEnds(t *testing.T) {
	t.Parallel()
	cmd, path := command(t, family+"echo waiting; wait")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	result := make(chan error, 1)
	go func() {
		_, err := Run(ctx, cmd)
		result <- err
	}()
	pipe := open(t, path)
	if line, err := pipe.ReadString('\n'); line != "started\n" || err != nil {
		t.Fatalf("read %q, %v", line, err)
	}
	stop()
	untilGone(t, pipe)
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}

// late is a context that ends once no process has the named pipe open: then the
// context and the program have both ended.
type late struct {
	context.Context
	t    *testing.T
	pipe string
	err  error
}

func (l *late) Done() <-chan struct{} {
	untilGone(l.t, open(l.t, l.pipe))
	l.err = context.DeadlineExceeded
	over := make(chan struct{})
	close(over)
	return over
}

func (l *late) Err() error { return l.err }

func TestExitCountsThoughItsTimeIsOver(t *testing.T) {
	t.Parallel()
	// select chooses among ready cases at random, so try often.
	for range 20 {
		for body, want := range map[string]string{"exit 0": "", "exit 3": "exit status 3"} {
			cmd, path := command(t, `exec 9>"$1"; echo done; `+body)
			said, err := Run(&late{Context: t.Context(), t: t, pipe: path}, cmd)
			if said != "done" || errorText(err) != want {
				t.Fatalf("%s: it said %q and ended with %v", body, said, err)
			}
		}
	}
}

func TestNoProcessOfTheGroupSurvives(t *testing.T) {
	t.Parallel()
	cmd, path := command(t, family+"echo done")
	type answer struct {
		said string
		err  error
	}
	result := make(chan answer, 1)
	go func() {
		said, err := Run(t.Context(), cmd)
		result <- answer{said, err}
	}()
	pipe := open(t, path)
	if line, err := pipe.ReadString('\n'); line != "started\n" || err != nil {
		t.Fatalf("read %q, %v", line, err)
	}
	untilGone(t, pipe)
	if got := <-result; got != (answer{"done", nil}) {
		t.Errorf("got %v", got)
	}
}

// open waits for a writer of a named pipe.
func open(t *testing.T, path string) *bufio.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return bufio.NewReader(f)
}

func TestNothingIsStartedWhenItsTimeHasEnded(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	cmd, _ := command(t, "")
	if _, err := Run(ctx, cmd); !errors.Is(err, context.Canceled) || cmd.Process != nil {
		t.Fatalf("got %v, %v", err, cmd.Process)
	}
}

func TestAPipeThatIsNeverClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		heard := readOutput(reader)
		if _, err := io.WriteString(writer, "one\ntwo"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if said := heard.await(reader); said != "two" {
			t.Errorf("it said %q", said)
		}
		if waited := time.Since(begin); waited != drainTime {
			t.Errorf("it was waited for %s, want %s", waited, drainTime)
		}
	})
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		own, extra map[string]string
		want       string
	}{
		"nothing is set": {nil, nil, "HOME=/ LANG=C.UTF-8 PATH=" + defaultPath},
		"ours":           {map[string]string{"PATH": "/bin", "HOME": "/root", "SECRET": "x"}, nil, "HOME=/root LANG=C.UTF-8 PATH=/bin"},
		"more":           {map[string]string{"PATH": "/bin"}, map[string]string{"A": "1", "PATH": "/opt"}, "A=1 HOME=/ LANG=C.UTF-8 PATH=/opt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Environment(func(name string) string { return row.own[name] }, row.extra)
			if text := strings.Join(got, " "); text != row.want {
				t.Errorf("got %s, want %s", text, row.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var got []string
	lines := NewLines(func(line []byte) { got = append(got, string(line)) })
	for _, part := range []string{"a", "b\nc\n\n", strings.Repeat("x", MaxLine), "more\nlost", ""} {
		if n, err := io.WriteString(lines, part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	lines.Drop()
	lines.End()
	if want := "ab|c||" + strings.Repeat("x", MaxLine) + "|"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}
