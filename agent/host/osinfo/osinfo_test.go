package osinfo

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree makes a root folder of files; a name that ends with "/" is a folder, and a
// text that begins with "->" makes a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch target, isLink := strings.CutPrefix(text, "->"); {
		case isLink:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const bookworm = `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
VERSION_CODENAME=bookworm
ID=debian
`

func TestRead(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		files map[string]string
		want  map[string]string
	}{
		"a Debian with a newer kernel": {
			map[string]string{
				"usr/lib/os-release": bookworm, "etc/os-release": "->../usr/lib/os-release", "etc/debian_version": "12.9\n",
				"proc/sys/kernel/osrelease": "6.1.0-18-amd64\n", "lib": "->usr/lib",
				"usr/lib/modules/6.1.0-9-amd64/": "", "usr/lib/modules/6.1.0-18-amd64/": "", "usr/lib/modules/6.1.0-30-amd64/": "",
				"boot/vmlinuz-6.1.0-18-amd64": "", "boot/vmlinuz-6.1.0-30-amd64": "",
			},
			map[string]string{"os": "debian 12.9", "kernel": "6.1.0-18-amd64", "kernel-installed": "6.1.0-30-amd64"},
		},
		"a container": {
			map[string]string{"etc/os-release": "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\nVERSION=\"24.04.1 LTS (Noble Numbat)\"\n", "proc/sys/kernel/osrelease": "6.8.0-31-generic\n"},
			map[string]string{"os": "ubuntu 24.04.1", "kernel": "6.8.0-31-generic"},
		},
		"a Fedora": {
			map[string]string{
				"etc/os-release": "ID=fedora\nVERSION_ID=41\nVERSION=\"41 (Server Edition)\"\n", "proc/sys/kernel/osrelease": "6.11.4-301.fc41.x86_64",
				"usr/lib/modules/6.11.4-301.fc41.x86_64/vmlinuz": "", "usr/lib/modules/6.9.9-200.fc41.x86_64/vmlinuz": "",
			},
			map[string]string{"os": "fedora 41", "kernel": "6.11.4-301.fc41.x86_64", "kernel-installed": "6.11.4-301.fc41.x86_64"},
		},
		"an image": {
			map[string]string{"usr/lib/os-release": "ID=appliance\nVERSION_ID=2.1\nIMAGE_ID=edge\nIMAGE_VERSION=2.1.7\n"},
			map[string]string{"os": "appliance 2.1", "os-image": "edge 2.1.7"},
		},
		"Debian testing": {
			map[string]string{"etc/os-release": "ID=debian\nVERSION_CODENAME=forky\n", "etc/debian_version": "forky/sid\n"},
			map[string]string{"os": "debian forky"},
		},
		"no file at all": {map[string]string{}, map[string]string{"os": "linux"}},
		"control characters": {
			map[string]string{"etc/os-release": "ID=\"a\x1b[31mb\"\nVERSION_ID='1\t2'\n\xff\xfe=1\n"},
			map[string]string{"os": "a[31mb 1 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(tree(t, row.files))
			if err != nil || !maps.Equal(got, row.want) {
				t.Errorf("it reads %v, %v; want %v", got, err, row.want)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a huge file":       {map[string]string{"etc/os-release": strings.Repeat("A=1\n", maxFile)}, "os-release has more than 65536 bytes; it should be a short text"},
		"a folder":          {map[string]string{"etc/os-release/": ""}, "os-release is not a regular file"},
		"modules as a file": {map[string]string{"usr/lib/modules": "x"}, "cannot read the installed kernels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(tree(t, row.files))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("it reads %v, %v; want an error with %q", got, err, row.want)
			}
		})
	}
}

// TestThisMachine reads the machine that the test runs on.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	got, err := Read("/")
	if err != nil || got[OS] == "" || got[Kernel] == "" {
		t.Errorf("it reads %v, %v", got, err)
	}
}

func TestUnquote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		`plain`: "plain", `"a b"`: "a b", `'a "b" \'`: `a "b" \`, `"a \"b\" \$c"`: `a "b" $c`, `a\ b`: "a b", `"open`: "open", `end\`: `end\`, ``: "",
	} {
		if got := unquote(word); got != want {
			t.Errorf("%s is %q, want %q", word, got, want)
		}
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	ubuntu := ParseRelease("ID=ubuntu\nID_LIKE=\"debian linux\"\n", "")
	if !ubuntu.Is("debian") || !ubuntu.Is("ubuntu") || ubuntu.Is("fedora") {
		t.Errorf("wrong for %+v", ubuntu)
	}
}

func TestCompareKernels(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"", "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.18.1.el9_4.x86_64", "6.1.0-9-amd64", "6.1.0-18-amd64", "6.1.10", "6.9.0-rc2-generic", "6.9.0-rc10-generic",
		"6.9.0-31-generic", "6.10.0~rc1", "6.10.0", "6.10.0-1",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := CompareKernels(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("comparing %q to %q returns %d", a, b, got)
			}
		}
	}
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		running   string
		installed []string
		newest    string
		want      bool
	}{
		"the newest runs":              {"6.1.0-18-amd64", []string{"6.1.0-9-amd64", "6.1.0-18-amd64"}, "6.1.0-18-amd64", false},
		"a newer one waits":            {"6.1.0-9-amd64", []string{"6.1.0-9-amd64", "6.1.0-18-amd64"}, "6.1.0-18-amd64", true},
		"a newer one of other flavour": {"6.1.0-9-cloud-amd64", []string{"6.1.0-18-amd64", "6.1.0-9-cloud-amd64"}, "6.1.0-9-cloud-amd64", false},
		"the other models of a Pi":     {"6.6.31+rpt-rpi-2712", []string{"6.6.31+rpt-rpi-2712", "6.6.31+rpt-rpi-v8"}, "6.6.31+rpt-rpi-2712", false},
		"a realtime kernel beside":     {"5.14.0-427.el9.x86_64", []string{"5.14.0-427.el9.x86_64", "5.14.0-427.el9.x86_64+rt"}, "5.14.0-427.el9.x86_64", false},
		"of 32 bits":                   {"6.1.0-9-686-pae", []string{"6.1.0-9-686-pae", "6.1.0-18-686", "6.1.0-10-686-pae"}, "6.1.0-10-686-pae", true},
		"Arch":                         {"6.9.1-arch1-1", []string{"6.9.2-arch1-1"}, "6.9.2-arch1-1", true},
		"no kernel installed":          {"6.1.0-9-amd64", nil, "", false},
		"the machine's own, unrelated": {"4.4.0-fly", []string{"6.1.0-18-amd64"}, "6.1.0-18-amd64", false},
	} {
		slices.SortFunc(row.installed, CompareKernels)
		kernels := Kernels{Running: row.running, Installed: row.installed}
		if got, newest := kernels.Outdated(), kernels.Newest(); got != row.want || newest != row.newest {
			t.Errorf("%s: outdated is %v and the newest %q; want %v, %q", name, got, newest, row.want, row.newest)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"lib/modules/6.1/": ""})
	want := []string{root + "/etc/os-release", root + "/usr/lib/os-release", root + "/etc/debian_version", root + "/lib/modules"}
	if got := Paths(root); !slices.Equal(got, want) {
		t.Errorf("the paths are %q, want %q", got, want)
	}
}

func FuzzParseRelease(f *testing.F) {
	f.Add(bookworm, "12.9")
	f.Add("ID='\\", "\xff")
	f.Fuzz(func(t *testing.T, text, point string) {
		release := ParseRelease(text, point)
		for _, word := range []string{release.version(), release.image(), release.Name} {
			if strings.ContainsAny(word, "\n\x00\x1b") || len(word) > 3*maxWord {
				t.Errorf("%q has control characters or is too long", word)
			}
		}
	})
}
