package dnf

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/rpmversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// generations are both, with the folder of what a real one of that version printed. What
// holds for one holds for the other, unless a test says otherwise.
var generations = map[*generation]string{&dnf4: "dnf-4.14", &dnf5: "dnf5-5.4.6"}

// recorded returns what a real dnf printed, and its exit status: the first line of the
// file.
func recorded(t testing.TB, g *generation, name string) (exit int, printed string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "recorded", generations[g], name))
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
	for g := range generations {
		_, printed := recorded(t, g, "upgrade-nobest")
		would, err := g.resolved(printed)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"helper.noarch 1.0-1 (new)", "library.noarch 1.0-1 → 2.0-1", "locked.noarch 1.0-1 → 2.0-1", "new-name.noarch 2.0-1 (new)", "old-name.noarch 1.0-1 (removed)",
			"tool.noarch 1.0-1 → 2.0-1", "weak.noarch 1.0-1 (new)", long + " 3:1.0-1 → 3:2.0.20261122git1234567890abcdef-1",
		}
		if got := texts(changes(would, before)); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s", g.name, strings.Join(got, "\n"))
		}
		if len(would.skipped) != 1 || would.skipped[0] != (item{skips, "broken-dep.noarch", "2.0-1"}) {
			t.Errorf("%s: skipped %v", g.name, would.skipped)
		}
	}
}

// TestNothingToDo: a dnf that has nothing to do says so; one that was cut off does not.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	for g := range generations {
		_, printed := recorded(t, g, "nothing-to-do")
		if would, err := g.resolved(printed); err != nil || len(would.packages) > 0 {
			t.Errorf("%s: nothing to do is %v, %v", g.name, would, err)
		}
		for _, cut := range []string{"", "Dependencies resolved.\n", "Package Arch Version Repository Size\nUpgrading:\n a noarch 0:2-1 r 1 KiB\n"} {
			if _, err := g.resolved(cut); err == nil {
				t.Errorf("%s: a dnf that was cut off after %q has nothing to do", g.name, cut)
			}
		}
	}
}

// tableRow is what the rows of a table say; fail is why they cannot be read.
type tableRow struct {
	rows, want, fail string
	now              database
}

func (row tableRow) check(t *testing.T, would resolved, err error) {
	t.Helper()
	if row.fail != "" {
		if err == nil || !strings.Contains(err.Error(), row.fail) {
			t.Errorf("got %v, want %q", err, row.fail)
		}
		return
	}
	if got := strings.Join(texts(changes(would, row.now)), "; "); err != nil || got != row.want {
		t.Errorf("got %q, %v, want %q", got, err, row.want)
	}
}

const table = "\n====\n Package  Arch  Version  Repo  Size\n====\n%s\nTransaction Summary\n====\nOperation aborted.\n"

func TestResolvedByDNF4(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]tableRow{
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
			would, err := resolvedByDNF4(strings.Replace(table, "%s", row.rows, 1))
			row.check(t, would, err)
		})
	}
}

const table5 = "Package Arch Version Repository Size\n%s\nTransaction Summary:\n Upgrading: 1 package\n\nOperation aborted by the user.\n"

func TestResolvedByDNF5(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]tableRow{
		"a kernel":              {"Installing:\n kernel-core x86_64 0:3-1 r 9.0 MiB\n", "kernel-core.x86_64 3-1 (new)", "", database{"kernel-core.x86_64": {"1-1", "2-1"}}},
		"the oldest kernel":     {"Removing:\n kernel-core x86_64 0:1-1 r 9.0 MiB\nInstalling:\n kernel-core x86_64 0:3-1 r 9.0 MiB\n", "kernel-core.x86_64 1-1 → 3-1", "", database{"kernel-core.x86_64": {"1-1", "2-1"}}},
		"an architecture":       {"Upgrading:\n a x86_64 0:2-1 r 9.0 MiB\n   replacing a noarch 0:1-1 r 9.0 MiB\n", "a.noarch 1-1 (removed); a.x86_64 2-1 (new)", "", database{"a.noarch": {"1-1"}}},
		"a downgrade":           {"Downgrading:\n a x86_64 0:1-1 r 9.0 MiB\n   replacing a x86_64 0:2-1 r 9.0 MiB\n", "a.x86_64 2-1 → 1-1", "", database{"a.x86_64": {"2-1"}}},
		"Fedora 41":             {"Upgrading:\n a x86_64 2-1 r 9.0 MiB\n   replacing a x86_64 1-1 r 9.0 MiB\n", "a.x86_64 1-1 → 2-1", "", database{"a.x86_64": {"1-1"}}},
		"an unknown repository": {"Removing unused dependencies:\n a x86_64 0:2-1 9.0 MiB\n", "a.x86_64 2-1 (removed)", "", database{"a.x86_64": {"2-1"}}},
		"conflicts":             {"Skipping packages with conflicts:\n a x86_64 2-1 r 9.0 MiB\n", "", "", nil},
		"a module":              {"Enabling module streams:\n perl          5.26\n", "", "what no plan can name", nil},
		"a reason":              {"Changing reason:\n a x86_64 0:2-1 r 9.0 MiB\n   Dependency -> User\n", "", "what no plan can name", nil},
		"no version":            {"Upgrading:\n a x86_64\n", "", "which is not a package", nil},
		"no release":            {"Upgrading:\n a x86_64 0:1 r 9.0 MiB\n", "", "which is not a package", nil},
		"no section":            {" a x86_64 0:1-1 r 9.0 MiB\n", "", "which is not a package", nil},
		"nothing that replaces": {"Upgrading:\n   replacing a x86_64 0:1-1 r 9.0 MiB\n", "", "which is not a package", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			would, err := resolvedByDNF5(strings.Replace(table5, "%s", row.rows, 1))
			row.check(t, would, err)
		})
	}
}

// TestGenerationOf: the command dnf decides, which is a link to dnf5 since Fedora 41.
func TestGenerationOf(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		links map[string]string
		want  *generation
	}{
		"Fedora 41":              {map[string]string{"dnf": "dnf5", "dnf5": "", "dnf-3": ""}, &dnf5},
		"Red Hat 9":              {map[string]string{"dnf": "dnf-3", "dnf-3": ""}, &dnf4},
		"Fedora 40 with dnf5":    {map[string]string{"dnf": "dnf-3", "dnf-3": "", "dnf5": ""}, &dnf4},
		"Debian with dnf5 alone": {map[string]string{"dnf5": ""}, &dnf5},
		"none":                   {nil, &dnf4},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "usr/bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, to := range row.links {
			path, err := filepath.Join(root, "usr/bin", file), error(nil)
			if to == "" {
				err = os.WriteFile(path, nil, 0o600)
			} else {
				err = os.Symlink(to, path)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := generationOf(hostfs.Root(root)); got != row.want {
			t.Errorf("%s: got %s", name, got.name)
		}
		s := &Strategy{host: hostfs.Root(root)}
		if err := s.Detect(t.Context()); (err == nil) || !strings.Contains(err.Error(), map[bool]string{true: "/usr/bin/dnf;", false: "/usr/bin/rpm;"}[row.links == nil]) {
			t.Errorf("%s: detect says %v", name, err)
		}
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
		"way back":      {strategy.Reversed(plan), database{"a.noarch": {"1:2-1"}, "new.noarch": {"2-1"}}, false, "Downgrade a-1-1.noarch, Downgraded a-1:2-1.noarch, Removed new-2-1.noarch, Install old-1-1.noarch"},
		"both versions": {plan, database{"a.noarch": {"1-1", "1:2-1"}, "new.noarch": {"2-1"}}, true, "Removed a-1-1.noarch, Reinstall a-1:2-1.noarch, Reinstalled a-1:2-1.noarch, Reinstall new-2-1.noarch, Reinstalled new-2-1.noarch"},
		"a part":        {plan, database{"a.noarch": {"1:2-1"}, "old.noarch": {"1-1"}}, true, "Reinstall a-1:2-1.noarch, Reinstalled a-1:2-1.noarch, Install new-2-1.noarch, Removed old-1-1.noarch"},
		"done":          {plan, database{"a.noarch": {"1:2-1"}, "new.noarch": {"2-1"}}, false, ""},
		"host changed":  {plan[:1], database{"a.noarch": {"1.5-1"}}, false, "Upgrade a-1:2-1.noarch, Upgraded a-1.5-1.noarch"},
	} {
		var got, got5 []string
		stored := replay(row.changes, row.now, row.again, reason)
		for _, pkg := range dnf4.spell(stored).RPMs {
			got = append(got, pkg.Action+" "+pkg.NEVRA)
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("%s: got %s", name, strings.Join(got, ", "))
		}
		for _, pkg := range dnf5.spell(stored).RPMs {
			got5 = append(got5, pkg.Action+" "+pkg.NEVRA)
		}
		// What is installed again has no version before for dnf5.
		want5 := regexp.MustCompile(`, Reinstalled [^,]*`).ReplaceAllString(row.want, "")
		want5 = strings.NewReplacer("Upgraded", "Replaced", "Downgraded", "Replaced", "Removed", "Remove").Replace(want5)
		if strings.Join(got5, ", ") != want5 {
			t.Errorf("%s: dnf5 got %s, want %s", name, strings.Join(got5, ", "), want5)
		}
	}
}

// TestSpell: each generation gets its own version of the format, and its own reasons.
func TestSpell(t *testing.T) {
	t.Parallel()
	all := storedTransaction{RPMs: []rpm{{Action: "Install", NEVRA: "a-1-1.noarch", Reason: "dependency"}, {Action: "Upgrade", NEVRA: "b-1-1.noarch", Reason: "unknown"}, {Action: "Install", NEVRA: "c-1-1.noarch", Reason: "Weak Dependency"}}}
	for g, want := range map[*generation]string{&dnf4: "0.0 [dependency unknown Weak Dependency]", &dnf5: "1.0 [Dependency None Weak Dependency]"} {
		var reasons []string
		spelled := g.spell(all)
		for _, pkg := range spelled.RPMs {
			reasons = append(reasons, pkg.Reason)
		}
		if got := fmt.Sprint(spelled.Version, " ", reasons); got != want {
			t.Errorf("%s: got %s, want %s", g.name, got, want)
		}
	}
	if all.RPMs[0].Reason != "dependency" {
		t.Error("to spell a transaction changes it")
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	type known struct {
		printed string
		class   message.Class
		says    string
	}
	for name, row := range map[string]known{
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
			_, row.printed = recorded(t, &dnf4, name)
		}
		err := dnf4.failure("dnf upgrade", program.Ended{Exit: 1, Printed: row.printed})
		if class, _ := causes.Find(row.printed); class != row.class || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: class %q, %v", name, class, err)
		}
	}
	for name, row := range map[string]known{
		"archives-lost":       {"", message.Artifact, `: Cannot download the "library-2.0-1.noarch" package, cacheonly option is activated. (exit status 1); prepare the host again`},
		"replay-extra":        {"", message.Install, "Extra package 'helper-1.0-1.noarch' (with action 'Install') which is not present in the stored transaction"},
		"replay-host-changed": {"", message.Install, "Cannot perform Remove action, no match for: library-1.5-1.noarch.; Extra package 'library-1.0-1.noarch'"},
		"replay-no-such":      {"", message.Repository, "Cannot perform Install action, no match for: library-3.0-1.noarch."},
		"not-there":           {"", message.Repository, "No match for argument: nonono-1.0"},
		"repository-503":      {"", message.Transient, `Status code: 503 for`},
		"repository-refuses":  {"", message.Transient, `Curl error (7): Could not connect to server`},
		"repository-404":      {"", message.Repository, `for repository "updates": Usable URL not found`},
		"no-cache":            {"", message.Repository, `Cache-only enabled but no cache for repository "updates"`},
		"no-repositories":     {"", message.Repository, "No matching repositories for *"},
		"not-signed":          {"", message.Artifact, `from repo "updates" has failed: The package is not signed.`},
		"wrong-key":           {"", message.Artifact, `from repo "appliance" has failed`},
		"disk-full":           {"", message.Space, "needs 56KB more space on the /usr/share/library filesystem"},
		"disk-full-cache":     {"", message.Space, "Failed writing received data to disk"},
		"a lock":              {"Transaction failed: Failed to obtain rpm transaction lock. Another transaction is in progress.\n", message.Lock, "Another transaction is in progress"},
		"Fedora 40's dnf5":    {"Unknown argument \"replay\" for command \"dnf5\". Add \"--help\" for more information about the arguments.\n", message.Install, "needs dnf 4.4 (Red Hat Enterprise Linux 8.4) or dnf5 5.2.5"},
	} {
		exit := 1
		if row.printed == "" {
			exit, row.printed = recorded(t, &dnf5, name)
		}
		err := dnf5.failure("dnf5 replay", program.Ended{Exit: exit, Printed: row.printed})
		if exit == 0 || strategy.ClassOf(err) != row.class || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: exit %d, class %q, %v", name, exit, strategy.ClassOf(err), err)
		}
		if strings.Contains(err.Error(), "--ignore") || strings.Contains(err.Error(), "100%") {
			t.Errorf("%s: the reason has what is none: %v", name, err)
		}
	}
}

// TestCut: a transaction that was killed has no end, or the status of one that runs.
func TestCut(t *testing.T) {
	t.Parallel()
	for g := range generations {
		_, printed := recorded(t, g, "history-killed")
		if !g.cut(printed) {
			t.Errorf("%s: a transaction that was killed has ended", g.name)
		}
		if g.cut(strings.NewReplacer(" **", "x", "Failure: 1", "Success", "Started", "Ok").Replace(printed)) || g.cut("") {
			t.Errorf("%s: a transaction that ended well was interrupted", g.name)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for g := range generations {
		exit, printed := recorded(t, g, "check-duplicate")
		all := g.problems(printed)
		plan := []message.Change{{Name: "appliance-0.noarch", From: "1.0-1", To: "2.0-1"}, {Name: "appliance.noarch", From: "1.0-1", To: "2.0-1"}}
		if mine, other := aboutPlan(all, plan); exit != 1 || len(mine) == 0 || len(other) != 0 {
			t.Errorf("%s: got %q and %q", g.name, mine, other)
		}
		if mine, other := aboutPlan(all, nil); len(mine) != 0 || len(other) != len(all) {
			t.Errorf("%s: of others: got %q and %q", g.name, mine, other)
		}
	}
}

// TestVersionlocks: dnf5 has its locks in a list, and a query does not heed them.
func TestVersionlocks(t *testing.T) {
	t.Parallel()
	_, printed := recorded(t, &dnf5, "versionlock-list")
	locks := parseVersionlocks(printed)
	for offered, want := range map[string]bool{
		"locked.noarch 1.0-1": false, "locked.noarch 2.0-1": true, "tool.noarch 2.0-1": true, "tool.noarch 3.0-1": false,
		"library.noarch 3.9-1": false, "library.noarch 4-1": true, "library.x86_64 3.9-1": true, "other.noarch 2.0-1": false,
	} {
		key, version, _ := strings.Cut(offered, " ")
		if got := locksOut(locks, key, version); got != want {
			t.Errorf("%s is locked out: %v", offered, got)
		}
	}
	for condition, want := range map[[3]string]bool{
		{"evr", "=", "2.0"}: true, {"evr", "=", "2.*"}: true, {"evr", "<=", "2.0-2"}: true, {"evr", ">=", "1:1.0"}: false, {"evr", ">", "1.9"}: true,
		{"evr", "!=", "2.0-1"}: false, {"epoch", "=", "0"}: true, {"epoch", ">", "0"}: false, {"arch", "!=", "x86_64"}: true, {"evr", "~", "1"}: false,
	} {
		if got := holds(condition, "noarch", "2.0-1"); got != want {
			t.Errorf("%v holds for 2.0-1: %v", condition, got)
		}
	}
}

// TestRows: a reason of dnf5 has two words, and a row that is cut off is none.
func TestRows(t *testing.T) {
	t.Parallel()
	rows, err := parseRows("weak.noarch\tWeak Dependency\n\ntool.noarch\tUser\n", 2)
	if err != nil || fmt.Sprint(rows) != "[[weak.noarch Weak Dependency] [tool.noarch User]]" {
		t.Errorf("got %v, %v", rows, err)
	}
	for _, printed := range []string{"weak.noarch\n", "weak.noarch\t\n", "a\tb\tc\n", "Last metadata expiration check\n"} {
		if rows, err := parseRows(printed, 2); err == nil {
			t.Errorf("%q is %v", printed, rows)
		}
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
	_, printed := recorded(t, &dnf5, "needs-restarting")
	if why, known := needsRestarting(printed); !known || why != "" {
		t.Errorf("dnf5: got %q, %v", why, known)
	}
	_, printed = recorded(t, &dnf5, "needs-restarting-required")
	if why, known := needsRestarting(printed); !known || why != "linux-firmware has changed since the start" {
		t.Errorf("dnf5: got %q, %v", why, known)
	}
}

// FuzzNeedsRestarting: a reboot is asked for with a reason, and only by an answer.
func FuzzNeedsRestarting(f *testing.F) {
	for _, name := range []string{"needs-restarting", "needs-restarting-required"} {
		_, printed := recorded(f, &dnf5, name)
		f.Add(printed)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		if why, known := needsRestarting(printed); why != "" && (!known || message.CleanText(why) != why) {
			t.Errorf("got %q, %v", why, known)
		}
	})
}

func TestHeld(t *testing.T) {
	t.Parallel()
	h := heldBack{
		now:     database{"a.noarch": {"1-1"}, "b.noarch": {"1-1"}, "c.noarch": {"1-1"}, "d.noarch": {"1-1"}, "e.noarch": {"1-1"}},
		offered: available{"c.noarch": "2-1", "d.noarch": "2-1", "e.noarch": "2-1"}, unlocked: available{"b.noarch": "2-1", "c.noarch": "2-1", "d.noarch": "2-1", "e.noarch": "2-1"},
		all:     available{"a.noarch": "2-1", "b.noarch": "2-1", "c.noarch": "2-1", "d.noarch": "2-1", "e.noarch": "2-1"},
		changes: []message.Change{{Name: "e.noarch", From: "1-1", To: "2-1"}}, skipped: []item{{skips, "c.noarch", "2-1"}}, rejected: message.Rejected{"d.noarch": {"2-1"}},
	}
	var got []string
	for _, kept := range h.list() {
		got = append(got, kept.Name+" "+kept.Reason)
	}
	want := []string{
		"a.noarch excluded by excludepkgs in the configuration of dnf", "b.noarch locked to its version by dnf versionlock",
		"c.noarch its dependencies are not met now", "d.noarch it was rolled back on this host",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestHeldByVersionlock: what is locked and what is excluded are told apart, whether the
// query heeded the lock or not.
func TestHeldByVersionlock(t *testing.T) {
	t.Parallel()
	for _, heeded := range []bool{true, false} {
		h := heldBack{
			now: database{"a.noarch": {"1-1"}, "b.noarch": {"1-1"}}, offered: available{"a.noarch": "2-1"}, unlocked: available{"a.noarch": "2-1"},
			all: available{"a.noarch": "2-1", "b.noarch": "2-1"},
		}
		if heeded {
			h.offered, h.unlocked = available{}, available{}
		}
		h.lock([]versionlock{{"a", [][3]string{{"evr", "=", "1-1"}}}})
		var got []string
		for _, kept := range h.list() {
			got = append(got, kept.Name+" "+kept.Reason)
		}
		if want := []string{"a.noarch locked to its version by dnf versionlock", "b.noarch excluded by excludepkgs in the configuration of dnf"}; !slices.Equal(got, want) {
			t.Errorf("heeded %v: got %q", heeded, got)
		}
	}
}

// FuzzResolved: whatever a dnf prints, it is read as packages or refused, and the
// changes of it are a plan that the same dnf can be told.
func FuzzResolved(f *testing.F) {
	for g := range generations {
		for _, name := range []string{"upgrade-nobest", "nothing-to-do", "archives-lost"} {
			_, printed := recorded(f, g, name)
			f.Add(printed)
		}
	}
	f.Fuzz(func(t *testing.T, printed string) {
		for g := range generations {
			would, err := g.resolved(printed)
			if err != nil {
				continue
			}
			plan := message.ChangeSet{Changes: changes(would, before)}.Sorted()
			for i, c := range plan.Changes {
				if c.From == "" && c.To == "" || i > 0 && plan.Changes[i-1].Name == c.Name {
					t.Errorf("%s: %+v is no change", g.name, c)
				}
			}
			if _, err := json.Marshal(g.spell(replay(plan.Changes, before, true, func(string) string { return "user" }))); err != nil {
				t.Errorf("%s: %v", g.name, err)
			}
		}
	})
}

// FuzzProblems: whatever dnf check prints, each problem has a text and a package, and is
// told once.
func FuzzProblems(f *testing.F) {
	for g := range generations {
		_, printed := recorded(f, g, "check-duplicate")
		f.Add(printed)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		for g := range generations {
			all := g.problems(printed)
			for _, p := range all {
				if p.text == "" || len(p.packages) == 0 {
					t.Errorf("%s: %+v is no problem", g.name, p)
				}
			}
			if mine, other := aboutPlan(all, []message.Change{{Name: "appliance.noarch", From: "1.0-1", To: "2.0-1"}}); len(mine)+len(other) != len(all) {
				t.Errorf("%s: %q and %q of %d", g.name, mine, other, len(all))
			}
		}
	})
}

// FuzzHistory: whatever dnf history info prints, it was cut off or it was not; what has no
// status was not.
func FuzzHistory(f *testing.F) {
	for g := range generations {
		_, printed := recorded(f, g, "history-killed")
		f.Add(printed)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		if !strings.Contains(printed, ":") && (dnf4.cut(printed) || dnf5.cut(printed)) {
			t.Errorf("%q has no status", printed)
		}
	})
}

// FuzzVersionlocks: no list of locks locks out a package that it does not name.
func FuzzVersionlocks(f *testing.F) {
	_, printed := recorded(f, &dnf5, "versionlock-list")
	f.Add(printed, "locked.noarch", "2.0-1")
	f.Fuzz(func(t *testing.T, printed, key, version string) {
		if locks := parseVersionlocks(printed); len(locks) == 0 && locksOut(locks, key, version) {
			t.Errorf("%q locks out %q %q", printed, key, version)
		}
	})
}

// FuzzRows: each row of a query has all its fields, or the answer is refused.
func FuzzRows(f *testing.F) {
	f.Add("weak.noarch\tWeak Dependency\n", 2)
	f.Add("tool.noarch\t0\t2.0\t1\n", 4)
	f.Fuzz(func(t *testing.T, printed string, width int) {
		rows, err := parseRows(printed, width)
		for _, row := range rows {
			if err == nil && (len(row) != width || slices.Contains(row, "")) {
				t.Errorf("%q has the row %q", printed, row)
			}
		}
	})
}

// FuzzSaid: whatever a failed dnf prints, the reason is a few lines that a terminal can
// show.
func FuzzSaid(f *testing.F) {
	for g := range generations {
		for _, name := range []string{"archives-lost", "replay-extra"} {
			_, printed := recorded(f, g, name)
			f.Add(printed)
		}
	}
	f.Fuzz(func(t *testing.T, printed string) {
		for g := range generations {
			said := g.said(printed)
			for _, line := range said {
				if line == "" || message.CleanText(line) != line {
					t.Errorf("%s says %q", g.name, line)
				}
			}
			if len(said) > 5 {
				t.Errorf("%s says %d lines", g.name, len(said))
			}
		}
	})
}

// FuzzParseDatabase: each line is a package or refused.
func FuzzParseDatabase(f *testing.F) {
	f.Add("bash 0 5.1.8 9.el9 x86_64 100\ngpg-pubkey 0 1 2 (none) 0\n")
	f.Fuzz(func(t *testing.T, printed string) {
		now, _, err := parseDatabase(printed)
		for key, versions := range now {
			if err == nil && (len(versions) == 0 || !slices.IsSortedFunc(versions, rpmversion.Compare) || !strings.Contains(key, ".")) {
				t.Errorf("%q has %q", key, versions)
			}
		}
	})
}
