package dnf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// both runs a test for each generation, on a host with nothing but what the test says.
func both(t *testing.T, name string, test func(t *testing.T, s *Strategy)) {
	t.Helper()
	for g := range generations {
		t.Run(strings.TrimSpace(name+" "+g.name), func(t *testing.T) {
			t.Parallel()
			s, err := New(Options{StateDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			s.generation, s.host = g, hostfs.Root(t.TempDir())
			s.sync, s.locked = func(context.Context, func(string)) error { return nil }, func() (string, error) { return "", nil }
			test(t, s)
		})
	}
}

// checkedByDNF5 is a line of dnf 4 check, whose words dnf5 has on two lines.
var checkedByDNF5 = regexp.MustCompile(`(?m)^(\w+)-(\S+) has missing requires of (\w+)\n`)

// TestDoneIsNoExitStatus: a dnf that ends with 0 and has done nothing, or half of it, is
// not done.
func TestDoneIsNoExitStatus(t *testing.T) {
	t.Parallel()
	const one, two = "a 0 1 1 noarch 9\n", "a 0 2 1 noarch 9\n"
	for name, row := range map[string]struct {
		before, after, check string
		want                 string
	}{
		"nothing happened":     {one, one, "", "not there though dnf has ended"},
		"both versions":        {one, one + two, "", "not there though dnf has ended"},
		"a problem is left":    {one, two, "a-2-1.noarch has missing requires of b\n", "dnf check: a-2-1.noarch has"},
		"a problem of another": {one, two, "other-2-1.noarch has missing requires of b\n", ""},
		"the plan":             {one, two, "", ""},
	} {
		both(t, name, func(t *testing.T, s *Strategy) {
			replayed, check := false, row.check
			if s.generation == &dnf5 {
				check = checkedByDNF5.ReplaceAllString(check, "$1-0:$2\n missing require \"$3\"\n")
			}
			s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
				switch {
				case c.Name == "rpm" && replayed:
					return program.Ended{Stdout: row.after}, nil
				case c.Name == "rpm":
					return program.Ended{Stdout: row.before}, nil
				case slices.Contains(c.Args, "replay"):
					replayed = true
				case slices.Contains(c.Args, "check") && check != "":
					return program.Ended{Exit: 1, Stdout: check, Printed: check}, nil
				}
				return program.Ended{}, nil
			}
			job := strategy.Job{Plan: message.ChangeSet{Changes: []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}}}, Progress: func(int, string) {}, NotAfter: time.Now().Add(time.Hour)}
			outcome, err := s.Upgrade(t.Context(), job)
			if row.want == "" && (err != nil || outcome != strategy.Done) {
				t.Errorf("got %v, %v", outcome, err)
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || strategy.ClassOf(err) != message.Install) {
				t.Errorf("got %v, %v, want %q", outcome, err, row.want)
			}
		})
	}
}

// TestResumeBeforeAnyHistory: a host that dnf has never changed has no last transaction,
// and an empty plan is done.
func TestResumeBeforeAnyHistory(t *testing.T) {
	t.Parallel()
	both(t, "", func(t *testing.T, s *Strategy) {
		s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
			if slices.Contains(c.Args, "history") {
				return program.Ended{Exit: 1, Printed: "Error: No transactions\n"}, nil
			}
			return program.Ended{}, nil
		}
		if outcome, err := s.Resume(t.Context(), strategy.Job{Progress: func(int, string) {}}); err != nil || outcome != strategy.Done {
			t.Errorf("got %v, %v", outcome, err)
		}
	})
}

// TestDamagedDatabase: a package database that rpm cannot read is rebuilt, and one that it
// can read is not.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	for _, damaged := range []bool{false, true} {
		both(t, map[bool]string{true: "damaged", false: "sound"}[damaged], func(t *testing.T, s *Strategy) {
			rebuilt := false
			s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
				switch {
				case slices.Contains(c.Args, "--rebuilddb"):
					rebuilt = true
				case c.Name == "rpm" && damaged && !rebuilt:
					return program.Ended{Exit: 1, Printed: "error: rpmdb: damaged header\n"}, nil
				case c.Name == "rpm":
					return program.Ended{Stdout: "a 0 2 1 noarch 9\n"}, nil
				}
				return program.Ended{}, nil
			}
			job := strategy.Job{Plan: message.ChangeSet{Changes: []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}}}, Progress: func(int, string) {}}
			if outcome, err := s.Resume(t.Context(), job); err != nil || outcome != strategy.Done || rebuilt != damaged {
				t.Errorf("rebuilt %v, got %v, %v", rebuilt, outcome, err)
			}
		})
	}
}

// TestResumeBelievesNoRecord: a package that is recorded in the planned version is installed
// again when its files are others, also when the last transaction has an end.
func TestResumeBelievesNoRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		printed  string
		repaired bool
	}{
		"whole":                {"", false},
		"other files":          {"S.5......    /usr/bin/a\n", true},
		"a file is missing":    {"missing     /usr/bin/a\n", true},
		"documentation":        {"..5......  d /usr/share/doc/a\n", true},
		"a configuration file": {"S.5......  c /etc/a.conf\nmissing   c /etc/b.conf\n", false},
		"a file of a program":  {"missing   g /var/lib/a/state\n", false},
	} {
		both(t, name, func(t *testing.T, s *Strategy) {
			var verified []string
			replayed := false
			s.run = func(_ context.Context, run program.Command) (program.Ended, error) {
				switch {
				case slices.Contains(run.Args, "--verify"):
					verified = append(verified, run.Args[len(run.Args)-1])
					return program.Ended{Exit: min(len(c.printed), 1), Stdout: c.printed}, nil
				case run.Name == "rpm":
					return program.Ended{Stdout: "a 1 2 1 noarch 9\nb 0 1 1 noarch 9\n"}, nil
				case slices.Contains(run.Args, "replay"):
					replayed = true
				}
				return program.Ended{}, nil
			}
			job := strategy.Job{Plan: message.ChangeSet{Changes: []message.Change{{Name: "a.noarch", From: "1-1", To: "1:2-1"}}}, Progress: func(int, string) {}}
			outcome, err := s.Resume(t.Context(), job)
			if err != nil || outcome != strategy.Done || replayed != c.repaired || !slices.Equal(verified, []string{"a-2-1.noarch"}) {
				t.Errorf("got %v, %v; verified is %q, and repaired %t", outcome, err, verified, replayed)
			}
		})
	}
}

// TestRollbackLeavesOthers: a version that somebody else has installed stays, and is no reason
// that there is no way back.
func TestRollbackLeavesOthers(t *testing.T) {
	t.Parallel()
	both(t, "", func(t *testing.T, s *Strategy) {
		now, stored := "a 0 2 1 noarch 9\nb 0 3 1 noarch 9\n", ""
		s.run = func(_ context.Context, run program.Command) (program.Ended, error) {
			switch {
			case run.Name == "rpm":
				return program.Ended{Stdout: now}, nil
			case slices.Contains(run.Args, "repoquery"):
				if slices.ContainsFunc(run.Args, func(arg string) bool { return strings.HasPrefix(arg, "b-") }) {
					t.Errorf("it asks for a version before of what somebody else has installed: %q", run.Args)
				}
				return program.Ended{Stdout: strings.Join([]string{"a.noarch", "0", "1", "1", "9", "9"}, "\t") + "\n"}, nil
			case slices.Contains(run.Args, "replay"):
				text, err := os.ReadFile(filepath.Join(s.StateDir, storedName))
				stored, now = string(text), "a 0 1 1 noarch 9\nb 0 3 1 noarch 9\n"
				return program.Ended{}, err
			}
			return program.Ended{}, nil
		}
		job := strategy.Job{Progress: func(int, string) {}}
		job.Plan.Changes = []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}, {Name: "b.noarch", From: "1-1", To: "2-1"}}
		if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done || !strings.Contains(stored, "a-1-1.noarch") || strings.Contains(stored, "b-") {
			t.Errorf("got %v, %v, by the transaction %s", outcome, err, stored)
		}
	})
}

// TestPrepareDowngradesNoHost: what an upgrade has begun that nobody resumed is forgotten once
// nothing is broken, and otherwise only what is broken goes back: the host may have been in
// service with the rest.
func TestPrepareDowngradesNoHost(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		both(t, map[bool]string{true: "two versions", false: "nothing is broken"}[broken], func(t *testing.T, s *Strategy) {
			changes := []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}, {Name: "b.noarch", From: "1-1", To: "2-1"}}
			if err := begun.Write(s.StateDir, changes); err != nil {
				t.Fatal(err)
			}
			now := "a 0 2 1 noarch 9\nb 0 2 1 noarch 9\n"
			if broken {
				now = "a 0 1 1 noarch 9\n" + now
			}
			var stored []string
			s.run = func(_ context.Context, run program.Command) (program.Ended, error) {
				switch {
				case run.Name == "rpm":
					return program.Ended{Stdout: now}, nil
				case slices.Contains(run.Args, "repoquery") && slices.Contains(run.Args, "--duplicates"):
					return program.Ended{Stdout: strings.Repeat("a.noarch\n", map[bool]int{true: 2}[broken])}, nil
				case slices.Contains(run.Args, "repoquery"):
					return program.Ended{Stdout: strings.Join([]string{"a.noarch", "0", "1", "1", "9", "9"}, "\t") + "\n"}, nil
				case slices.Contains(run.Args, "replay"):
					text, err := os.ReadFile(filepath.Join(s.StateDir, storedName))
					stored = append(stored, string(text))
					if now = "a 0 2 1 noarch 9\nb 0 2 1 noarch 9\n"; len(stored) > 1 {
						now = "a 0 1 1 noarch 9\nb 0 2 1 noarch 9\n"
					}
					return program.Ended{}, err
				}
				return program.Ended{}, nil
			}
			call, err := s.call(t.Context(), strategy.Job{Progress: func(int, string) {}})
			if err == nil {
				err = call.sound(t.Context())
			}
			if err != nil || begun.Read(s.StateDir) != nil || strings.Contains(strings.Join(stored, ""), "b-") {
				t.Errorf("it ends with %v, keeps %v, and has made %q", err, begun.Read(s.StateDir), stored)
			}
			if back := len(stored) > 0 && strings.Contains(stored[len(stored)-1], "a-1-1.noarch"); back != broken {
				t.Errorf("it has made %q", stored)
			}
		})
	}
}

// TestNoPlan: a host that somebody else changes has no plan, and nobody waits for one.
func TestNoPlan(t *testing.T) {
	t.Parallel()
	both(t, "", func(t *testing.T, s *Strategy) {
		s.locked = func() (string, error) { return "process 7 (dnf) holds a lock", nil }
		s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
			t.Errorf("it runs %s", c.Describe())
			return program.Ended{}, nil
		}
		if _, err := s.Plan(t.Context(), strategy.Job{Progress: func(int, string) {}}); !errors.Is(err, strategy.ErrNoPlan) || !strings.Contains(err.Error(), "process 7 (dnf)") {
			t.Errorf("got %v", err)
		}
	})
}

// TestCommands: what each generation is told in an upgrade.
func TestCommands(t *testing.T) {
	t.Parallel()
	want := map[*generation][]string{
		&dnf4: {"dnf --refresh makecache", "dnf upgrade --nobest", "dnf --downloadonly history replay /transaction.json", "dnf --cacheonly history replay /transaction.json"},
		&dnf5: {"dnf5 --refresh makecache", "dnf5 upgrade --no-best", "dnf5 --setopt=tsflags=test replay ", "dnf5 --cacheonly replay "},
	}
	both(t, "", func(t *testing.T, s *Strategy) {
		var got []string
		_, resolved := recorded(t, s.generation, "upgrade-nobest")
		s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
			line := strings.TrimPrefix(strings.Join(c.Args, " "), strings.Join(s.options, " ")+" ")
			said := c.Name + " " + strings.ReplaceAll(strings.TrimPrefix(line, "--cacheonly --assumeno "), s.StateDir, "")
			switch {
			case c.Name == "rpm":
				return program.Ended{Stdout: "library 0 1.0 1 noarch 9\n"}, nil
			case strings.Contains(line, "--assumeno"):
				got = append(got, said)
				return program.Ended{Exit: 1, Printed: resolved}, nil
			case strings.Contains(line, "repoquery"), strings.Contains(line, "versionlock"), strings.Contains(line, "needs-restarting"), strings.Contains(line, "check "):
				return program.Ended{}, nil
			}
			got = append(got, said)
			return program.Ended{}, nil
		}
		s.space = func(string) (hostfs.Filesystem, error) { return hostfs.Filesystem{Free: 1 << 40}, nil }
		job := strategy.Job{Progress: func(int, string) {}}
		plan, err := s.Prepare(t.Context(), job)
		if err != nil || len(plan.Changes) == 0 {
			t.Fatalf("got %v, %v", plan, err)
		}
		job.Plan = plan
		if _, err := s.Upgrade(t.Context(), job); err == nil {
			t.Error("an upgrade that changed nothing is done")
		}
		if !slices.Equal(got, want[s.generation]) {
			t.Errorf("got %q\nwant %q", got, want[s.generation])
		}
		text, err := os.ReadFile(filepath.Join(s.StateDir, "transaction.json"))
		if err != nil || !strings.Contains(string(text), `"version": "`+s.format+`"`) {
			t.Errorf("the stored transaction is %s, %v", text, err)
		}
	})
}
