package labels

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/smallfile"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

const self = 1000

func fileOf(name, body string) smallfile.File {
	return smallfile.File{Name: name, Owner: self, Size: int64(len(body)), Body: []byte(body)}
}

// TestMerged checks which labels are in force, and that each line without effect is told with its file
// and what would be right, and leaves all others in force.
func TestMerged(t *testing.T) {
	t.Parallel()
	link, foreign, huge, broken := fileOf("f", "a=1"), fileOf("f", "a=1"), fileOf("f", ""), fileOf("f", "")
	link.Mode, foreign.Owner, huge.Size, broken.Err = fs.ModeSymlink, 7, 1<<40, errors.New("input/output error")
	for name, c := range map[string]struct {
		given    string
		files    []smallfile.File
		want     string
		problems []string
	}{
		"nothing":                       {},
		"the given ones":                {given: "ring=0", want: "ring=0"},
		"a file":                        {given: "ring=0", files: []smallfile.File{fileOf("f", "active=true\n")}, want: "active=true ring=0"},
		"comments, blanks and lines":    {files: []smallfile.File{fileOf("f", "# standby\n\n \t\r\n active = true \r\nrack=r1\nempty=")}, want: "active=true empty= rack=r1"},
		"the last line of a key":        {files: []smallfile.File{fileOf("f", "active=true\nactive=false\n")}, want: "active=false"},
		"the last file of a key":        {files: []smallfile.File{fileOf("10-a", "active=true"), fileOf("20-b", "active=false")}, want: "active=false"},
		"a given one wins":              {given: "ring=0", files: []smallfile.File{fileOf("f", "ring=1\nactive=true")}, want: "active=true ring=0", problems: []string{`line 1 of file f does not count: label ring is "0" by the worker's --label, which wins; remove one of them`}},
		"the same as given":             {given: "ring=0", files: []smallfile.File{fileOf("f", "ring=0")}, want: "ring=0"},
		"a line that is none":           {files: []smallfile.File{fileOf("f", "a=1\nactive\nb=2")}, want: "a=1 b=2", problems: []string{`line 2 of file f does not count: "active" is invalid; use KEY=VALUE, each at most 63 of letters`}},
		"a key that is none":            {files: []smallfile.File{fileOf("f", "a b=1\nb=2")}, want: "b=2", problems: []string{`line 1 of file f does not count: "a b=1" is invalid`}},
		"a value that is none":          {files: []smallfile.File{fileOf("f", "a=x=y")}, problems: []string{`"a=x=y" is invalid`}},
		"a wrong line after a good one": {files: []smallfile.File{fileOf("f", "a=1\na=\"2\"")}, want: "a=1", problems: []string{`line 2 of file f`}},
		"a link":                        {files: []smallfile.File{link, fileOf("g", "b=2")}, want: "b=2", problems: []string{"the labels of file f do not count: it is no regular file"}},
		"somebody else's":               {files: []smallfile.File{foreign, fileOf("g", "b=2")}, want: "b=2", problems: []string{"it belongs to user 7; it should belong to root or to the worker's user 1000"}},
		"huge":                          {files: []smallfile.File{huge, fileOf("g", "b=2")}, want: "b=2", problems: []string{"it has 1099511627776 bytes; use at most 16384"}},
		"on a broken disk":              {files: []smallfile.File{broken, fileOf("g", "b=2")}, want: "b=2", problems: []string{"the labels of file f do not count: input/output error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := map[string]string{}
			for _, one := range strings.Fields(c.given) {
				key, value, _ := strings.Cut(one, "=")
				given[key] = value
			}
			before := maps.Clone(given)
			got, problems := merged(given, c.files, self)
			if text := textOf(got); text != c.want || !maps.Equal(given, before) {
				t.Errorf("the labels are %s, want %s", text, c.want)
			}
			if len(problems) != len(c.problems) {
				t.Fatalf("the problems are %v", problems)
			}
			for i, problem := range problems {
				if !strings.Contains(problem.Error(), c.problems[i]) {
					t.Errorf("the problem is %v, want %s", problem, c.problems[i])
				}
			}
		})
	}
}

// textOf returns labels in the order of their keys.
func textOf(labels map[string]string) string {
	var all []string
	for key, value := range labels {
		all = append(all, key+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestTooMany checks that the given labels have room first, that a key which is there already needs
// none, and that files beyond the limit are named.
func TestTooMany(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range names.MaxLabels {
		fmt.Fprintf(&body, "k%02d=1\n", i)
	}
	got, problems := merged(map[string]string{"ring": "0"}, []smallfile.File{fileOf("f", body.String()+"k00=2")}, self)
	if len(got) != names.MaxLabels || got["ring"] != "0" || got["k00"] != "2" || len(problems) != 1 || !strings.Contains(problems[0].Error(), "line 50 of file f does not count: label k49 is one too many; a host may have 50") {
		t.Errorf("%d labels, %v", len(got), problems)
	}
	files := make([]smallfile.File, maxFiles+1)
	for i := range files {
		files[i] = fileOf(fmt.Sprintf("f%03d", i), fmt.Sprintf("a=%d", i))
	}
	if got, problems := merged(nil, files, self); got["a"] != "99" || len(problems) != 1 || !strings.Contains(problems[0].Error(), "file f100 and of those after it do not count") {
		t.Errorf("%v, %v", got, problems)
	}
}

// TestFolder checks what is read of a folder: hidden files are not, each problem is logged once, and a
// folder that cannot be read leaves the labels as they were.
func TestFolder(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	f := &Folder{Dir: filepath.Join(t.TempDir(), "labels.d"), Given: map[string]string{"ring": "0"}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	want := func(when, labels string) {
		t.Helper()
		if got := textOf(f.Labels()); got != labels {
			t.Errorf("%s the labels are %s, want %s", when, got, labels)
		}
	}
	want("without a folder", "ring=0")
	write := func(name, body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(f.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(".active.tmp", "active=false")
	write("active", "active=true\nwrong\n")
	write("rack", "rack=r1\n")
	for range 2 {
		want("with two files", "active=true rack=r1 ring=0")
	}
	if n := strings.Count(log.String(), "line 2 of file active does not count"); n != 1 {
		t.Errorf("the problem is logged %d times:\n%s", n, log.String())
	}
	if err := errors.Join(os.RemoveAll(f.Dir), os.WriteFile(f.Dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	want("while the folder cannot be read", "active=true rack=r1 ring=0")
	if !strings.Contains(log.String(), "cannot read the labels, which stay as they are") {
		t.Errorf("the log has no word of it:\n%s", log.String())
	}
	if err := os.Remove(f.Dir); err != nil {
		t.Fatal(err)
	}
	want("without the folder", "ring=0")
}

// TestWatch checks that each change is told without anybody asking, also where the folder appears,
// disappears and appears again, and that a file which is written in place is not read half.
func TestWatch(t *testing.T) {
	t.Parallel()
	f := &Folder{Dir: filepath.Join(t.TempDir(), "labels.d"), Log: slog.New(slog.DiscardHandler)}
	changed := make(chan string, 100)
	go func() { _ = f.Watch(t.Context(), func() { changed <- textOf(f.Labels()) }) }()
	until := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-changed:
				if got == want {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("nobody says that the labels are %q", want)
			}
		}
	}
	until("")
	active := filepath.Join(f.Dir, "active")
	for range 2 {
		if err := errors.Join(os.Mkdir(f.Dir, 0o700), os.WriteFile(active, []byte("active=true"), 0o600)); err != nil {
			t.Fatal(err)
		}
		until("active=true")
		file, err := os.OpenFile(active, os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // a file of this test
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle / 4) // Time enough to see that it is empty.
		if _, err := file.WriteString("active=false"); err != nil || file.Close() != nil {
			t.Fatal(err)
		}
		select {
		case got := <-changed:
			if got != "active=false" && got != "active=true" {
				t.Errorf("a file that is half written is read as %q", got)
			}
			if got != "active=false" {
				until("active=false")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nobody tells the change")
		}
		if err := os.RemoveAll(f.Dir); err != nil {
			t.Fatal(err)
		}
		until("")
	}
}

// FuzzParse checks that any file yields labels which a heartbeat may carry, and that each line is
// either a label or a problem.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"active=true\n", "# x\r\na = b\n=\nx\n", "a=\xff", strings.Repeat("k=v\n", 100)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, l := range parse(body) {
			if (l.problem == nil) != (names.ValidLabel(l.key) && (l.value == "" || names.ValidLabel(l.value))) {
				t.Errorf("line %d is %+v", l.number, l)
			}
		}
		if got, _ := merged(nil, []smallfile.File{fileOf("f", string(body))}, self); len(got) > names.MaxLabels {
			t.Errorf("%d labels", len(got))
		}
	})
}
