package dnf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/program"
)

// recorded returns what a real dnf 4.14 printed, and its exit status: the first line of
// the file.
func recorded(t testing.TB, name string) (exit int, printed string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "recorded", name))
	if err != nil {
		t.Fatal(err)
	}
	first, printed, _ := strings.Cut(string(data), "\n")
	exit, err = strconv.Atoi(strings.TrimPrefix(first, "exit "))
	if err != nil {
		t.Fatalf("%s begins with %q, which is no exit status", name, first)
	}
	return exit, printed
}

func texts(changes []message.Change) []string {
	list := message.ChangeTexts(changes)
	slices.Sort(list)
	return list
}

const long = "with-a-very-long-name-that-wraps-the-table-of-dnf.noarch"

var before = database{
	"library.noarch": {"1.0-1"}, "locked.noarch": {"1.0-1"}, "tool.noarch": {"1.0-1"}, "old-name.noarch": {"1.0-1"}, long: {"3:1.0-1"}, "broken-dep.noarch": {"1.0-1"},
}

func TestChanges(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, "upgrade-nobest")
	would, err := parseResolved(printed)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"helper.noarch 1.0-1 (new)", "library.noarch 1.0-1 → 2.0-1", "locked.noarch 1.0-1 → 2.0-1", "new-name.noarch 2.0-1 (new)", "old-name.noarch 1.0-1 (removed)",
		"tool.noarch 1.0-1 → 2.0-1", "weak.noarch 1.0-1 (new)", long + " 3:1.0-1 → 3:2.0.20261122git1234567890abcdef-1",
	}
	if got := texts(changes(would, before)); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if len(would.skipped) != 1 || would.skipped[0] != (item{skips, "broken-dep.noarch", "2.0-1"}) {
		t.Errorf("skipped %v", would.skipped)
	}
}

const table = "\n====\n Package  Arch  Version  Repo  Size\n====\n%s\nTransaction Summary\n====\nOperation aborted.\n"

func TestParseResolved(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		rows, want, fail string
		now              database
	}{
		"a narrow terminal": {"Upgrading:\n a-long-name\n                noarch\n                       2.0-1   updates   6.0 k\n b  noarch  1-1 r 12  \n", "a-long-name.noarch 1-1 → 2.0-1; b.noarch 0-1 → 1-1", "", database{"a-long-name.noarch": {"1-1"}, "b.noarch": {"0-1"}}},
		"a kernel":          {"Installing:\n kernel-core x86_64 3-1 r 9 M\n", "kernel-core.x86_64 3-1 (new)", "", database{"kernel-core.x86_64": {"1-1", "2-1"}}},
		"the oldest kernel": {"Installing:\n kernel-core x86_64 3-1 r 9 M\nRemoving:\n kernel-core x86_64 1-1 @r 9 M\n", "kernel-core.x86_64 1-1 → 3-1", "", database{"kernel-core.x86_64": {"1-1", "2-1"}}},
		"an architecture":   {"Upgrading:\n a x86_64 2-1 r 9 M\n", "a.noarch 1-1 (removed); a.x86_64 2-1 (new)", "", database{"a.noarch": {"1-1"}}},
		"a downgrade":       {"Downgrading:\n a x86_64 1-1 r 9 M\n", "a.x86_64 2-1 → 1-1", "", database{"a.x86_64": {"2-1"}}},
		"conflicts":         {"Skipping packages with conflicts:\n(add '--best --allowerasing' to command line to force their upgrade):\n a x86_64 2-1 r 9 M\n", "", "", nil},
		"a module":          {"Enabling module streams:\n perl          5.26\n", "", "what no plan can name", nil},
		"no size":           {"Upgrading:\n a x86_64 1-1 r\n", "", "which is not a package", nil},
		"no release":        {"Upgrading:\n a x86_64 1 r 9 M\n", "", "which is not a package", nil},
		"no section":        {" a x86_64 1-1 r 9 M\n", "", "which is not a package", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			would, err := parseResolved(strings.Replace(table, "%s", row.rows, 1))
			if row.fail != "" {
				if err == nil || !strings.Contains(err.Error(), row.fail) {
					t.Errorf("got %v, want %q", err, row.fail)
				}
				return
			}
			if got := strings.Join(texts(changes(would, row.now)), "; "); err != nil || got != row.want {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
		})
	}
	_, printed := recorded(t, "nothing-to-do")
	if would, err := parseResolved(printed); err != nil || len(would.packages) > 0 {
		t.Errorf("nothing to do is %v, %v", would, err)
	}
	if _, err := parseResolved("Dependencies resolved.\n"); err == nil {
		t.Error("a dnf that was cut off has nothing to do")
	}
}

// TestMissing: a dnf that was killed leaves both versions, which is not done.
func TestMissing(t *testing.T) {
	t.Parallel()
	plan := []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}, {Name: "k.x86_64", To: "2-1"}, {Name: "old.noarch", From: "1-1"}}
	for name, row := range map[string]struct {
		now  database
		want int
	}{
		"before":        {database{"a.noarch": {"1-1"}, "k.x86_64": {"1-1"}, "old.noarch": {"1-1"}}, 3},
		"both versions": {database{"a.noarch": {"1-1", "2-1"}, "k.x86_64": {"1-1", "2-1"}}, 1},
		"done":          {database{"a.noarch": {"2-1"}, "k.x86_64": {"1-1", "2-1"}}, 0},
		"lost":          {database{}, 2},
	} {
		if got := row.now.missing(plan); len(got) != row.want {
			t.Errorf("%s: missing %v", name, got)
		}
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	plan := []message.Change{{Name: "a.noarch", From: "1-1", To: "1:2-1"}, {Name: "new.noarch", To: "2-1"}, {Name: "old.noarch", From: "1-1"}}
	reason := func(string) string { return "dependency" }
	for name, row := range map[string]struct {
		changes []message.Change
		now     database
		again   bool
		want    string
	}{
		"upgrade":       {plan, database{"a.noarch": {"1-1"}, "old.noarch": {"1-1"}}, false, "Upgrade a-1:2-1.noarch, Upgraded a-1-1.noarch, Install new-2-1.noarch, Removed old-1-1.noarch"},
		"way back":      {reversed(plan), database{"a.noarch": {"1:2-1"}, "new.noarch": {"2-1"}}, false, "Downgrade a-1-1.noarch, Downgraded a-1:2-1.noarch, Removed new-2-1.noarch, Install old-1-1.noarch"},
		"both versions": {plan, database{"a.noarch": {"1-1", "1:2-1"}, "new.noarch": {"2-1"}}, true, "Removed a-1-1.noarch, Reinstall a-1:2-1.noarch, Reinstalled a-1:2-1.noarch, Reinstall new-2-1.noarch, Reinstalled new-2-1.noarch"},
		"a part":        {plan, database{"a.noarch": {"1:2-1"}, "old.noarch": {"1-1"}}, true, "Reinstall a-1:2-1.noarch, Reinstalled a-1:2-1.noarch, Install new-2-1.noarch, Removed old-1-1.noarch"},
		"done":          {plan, database{"a.noarch": {"1:2-1"}, "new.noarch": {"2-1"}}, false, ""},
		"host changed":  {plan[:1], database{"a.noarch": {"1.5-1"}}, false, "Upgrade a-1:2-1.noarch, Upgraded a-1.5-1.noarch"},
	} {
		var got []string
		for _, is := range replay(row.changes, row.now, row.again, reason).RPMs {
			got = append(got, is.Action+" "+is.NEVRA)
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("%s: got %s", name, strings.Join(got, ", "))
		}
	}
}

func TestCompareEVR(t *testing.T) {
	t.Parallel()
	older := [][2]string{
		{"1.0-1", "1.0-2"},
		{"1.9-1", "1.10-1"},
		{"2.0-1", "1:1.0-1"},
		{"1.0~rc1-1", "1.0-1"},
		{"1.0-1", "1.0^git1-1"},
		{"1.0^git1-1", "1.0.1-1"},
		{"1.0a-1", "1.0.1-1"},
		{"1.0-1.el9", "1.0-1.el9_1"},
		{"1.0~~-1", "1.0~-1"},
		{"5.14.0-70.el9", "5.14.0-427.el9"},
	}
	for _, row := range older {
		if compareEVR(row[0], row[1]) != -1 || compareEVR(row[1], row[0]) != 1 {
			t.Errorf("%s is not older than %s", row[0], row[1])
		}
	}
	for _, row := range [][2]string{{"1.0-1", "1.0-1"}, {"1.00-1", "1.0-1"}, {"1_0-1", "1.0-1"}, {"0:1-1", "1-1"}} {
		if compareEVR(row[0], row[1]) != 0 {
			t.Errorf("%s is not equal to %s", row[0], row[1])
		}
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		printed string
		class   message.Class
		says    string
	}{
		"archives-lost": {"", message.Artifact, "cannot be downloaded due to"},
		"replay-extra":  {"", message.Install, "was pulled into the transaction."},
		"no key":        {"However, you do not have any GPG public keys installed. You need to\nProblem repository: [a]\n", message.Artifact, "Problem repository: [a]"},
		"not signed":    {"Package appliance-2.0-1.noarch.rpm is not signed\nError: GPG check FAILED\n", message.Artifact, "GPG check FAILED"},
		"down":          {"Errors during downloading metadata for repository 'a':\n  - Status code: 503 for http://x/repomd.xml (IP: 127.0.0.1)\nError: Failed to download metadata for repo 'a': Cannot download repomd.xml\n", message.Transient, "Cannot download repomd.xml"},
		"gone":          {"Errors during downloading metadata for repository 'a':\n  - Status code: 404 for http://x/repomd.xml (IP: 127.0.0.1)\nError: Failed to download metadata for repo 'a': Cannot download repomd.xml\n", message.Repository, "Cannot download repomd.xml"},
		"no cache":      {"Error: Cache-only enabled but no cache for 'a'\n", message.Repository, "no cache for 'a'"},
		"full":          {"Error: Transaction test error:\n  installing package a needs 5MB more space on the / filesystem\n", message.Space, "needs 5MB more space"},
		"a lock":        {"Error: Failed to obtain the transaction lock (logged in as: root).\n", message.Lock, "transaction lock"},
		"a script":      {"Error: Transaction failed\n", message.Install, "Transaction failed"},
		"old dnf":       {"Error: \nIncompatible major version \"1\", supported\n", message.Install, ""},
	} {
		if row.printed == "" {
			_, row.printed = recorded(t, name)
		}
		err := failure("dnf upgrade", program.Ended{Exit: 1, Printed: row.printed})
		if class, _ := causes.Find(row.printed); class != row.class || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: class %q, %v", name, class, err)
		}
	}
}

func TestEndless(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, "history-killed")
	if !endless(printed) {
		t.Error("a transaction that was killed has ended")
	}
	if endless(strings.NewReplacer(" **", "x", "Failure: 1", "Success").Replace(printed)) || endless("") {
		t.Error("a transaction that ended well was interrupted")
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, "check-duplicate")
	plan := []message.Change{{Name: "appliance.noarch", From: "1.0-1", To: "2.0-1"}}
	if mine, other := problems(printed, plan); len(mine) != 1 || len(other) != 0 {
		t.Errorf("got %q and %q", mine, other)
	}
	if mine, other := problems(printed, nil); len(mine) != 0 || len(other) != 1 {
		t.Errorf("of others: got %q and %q", mine, other)
	}
}

func TestNeedsRestarting(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]struct {
		why   string
		known bool
	}{
		"Core libraries or services have been updated since boot-up:\n  * glibc\n  * systemd\n\nReboot is required to fully utilize these updates.\n": {"glibc, systemd has changed since the start", true},
		"No core libraries or services have been updated since boot-up.\nReboot should not be necessary.\n":                                           {"", true},
		"No such command: needs-restarting. Please use /usr/bin/dnf --help\n":                                                                         {"", false},
	} {
		if why, known := needsRestarting(printed); known != want.known || (why == "") != (want.why == "") {
			t.Errorf("%q: got %q, %v", printed, why, known)
		}
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	h := heldBack{
		now:     database{"a.noarch": {"1-1"}, "b.noarch": {"1-1"}, "c.noarch": {"1-1"}, "d.noarch": {"1-1"}, "e.noarch": {"1-1"}},
		offered: offers{"c.noarch": "2-1", "d.noarch": "2-1", "e.noarch": "2-1"}, unlocked: offers{"b.noarch": "2-1", "c.noarch": "2-1", "d.noarch": "2-1", "e.noarch": "2-1"},
		all:     offers{"a.noarch": "2-1", "b.noarch": "2-1", "c.noarch": "2-1", "d.noarch": "2-1", "e.noarch": "2-1"},
		changes: []message.Change{{Name: "e.noarch", From: "1-1", To: "2-1"}}, skipped: []item{{skips, "c.noarch", "2-1"}}, rejected: message.Rejected{"d.noarch": {"2-1"}},
	}
	var got []string
	for _, is := range h.list() {
		got = append(got, is.Name+" "+is.Reason)
	}
	want := []string{
		"a.noarch excluded by excludepkgs in the configuration of dnf", "b.noarch locked to its version by dnf versionlock",
		"c.noarch its dependencies are not met now", "d.noarch it was rolled back on this host",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// FuzzParseResolved: whatever dnf prints, it is read as packages or refused, and the
// changes of it are a plan.
func FuzzParseResolved(f *testing.F) {
	for _, name := range []string{"upgrade-nobest", "nothing-to-do", "archives-lost"} {
		_, printed := recorded(f, name)
		f.Add(printed)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		would, err := parseResolved(printed)
		if err != nil {
			return
		}
		plan := message.Plan{Changes: changes(would, before)}.Sorted()
		for i, c := range plan.Changes {
			if c.From == "" && c.To == "" || i > 0 && plan.Changes[i-1].Name == c.Name {
				t.Errorf("%+v is no change", c)
			}
		}
		if _, err := json.Marshal(replay(plan.Changes, before, true, func(string) string { return "user" })); err != nil {
			t.Error(err)
		}
	})
}

// FuzzCompareEVR: the order of versions is one.
func FuzzCompareEVR(f *testing.F) {
	f.Add("1.0-1", "1.0~rc1-1", "1:0.9^git-2.el9")
	f.Add("a", "1", "~")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if compareEVR(a, a) != 0 || compareEVR(a, b) != -compareEVR(b, a) {
			t.Errorf("%q and %q: %d, %d", a, b, compareEVR(a, b), compareEVR(b, a))
		}
		if compareEVR(a, b) < 0 && compareEVR(b, c) < 0 && compareEVR(a, c) >= 0 {
			t.Errorf("%q, %q, %q", a, b, c)
		}
	})
}

// FuzzParseDatabase: each line is a package or refused.
func FuzzParseDatabase(f *testing.F) {
	f.Add("bash 0 5.1.8 9.el9 x86_64 100\ngpg-pubkey 0 1 2 (none) 0\n")
	f.Fuzz(func(t *testing.T, printed string) {
		now, _, err := parseDatabase(printed)
		for key, versions := range now {
			if err == nil && (len(versions) == 0 || !slices.IsSortedFunc(versions, compareEVR) || !strings.Contains(key, ".")) {
				t.Errorf("%q has %q", key, versions)
			}
		}
	})
}
