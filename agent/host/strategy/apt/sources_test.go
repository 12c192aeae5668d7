package apt

import (
	"strings"
	"testing"
)

// ofDebian takes the sources of one address for those of the distribution.
func ofDebian(e sourceEntry) bool { return strings.Contains(e.uri, "repository.example/debian") }

func TestRewriteSources(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ file, text, want string }{
		"one line": {
			"sources.list", "deb http://repository.example/debian bookworm main contrib\n",
			"deb http://repository.example/debian trixie main contrib\n",
		},
		"updates, security, backports": {
			"sources.list", "deb http://repository.example/debian bookworm-updates main\ndeb http://repository.example/debian-security bookworm-security main\ndeb-src http://repository.example/debian bookworm-backports main\n",
			"deb http://repository.example/debian trixie-updates main\ndeb http://repository.example/debian-security trixie-security main\ndeb-src http://repository.example/debian trixie-backports main\n",
		},
		"the old form of security": {"a.list", "deb http://repository.example/debian-security bookworm/updates main\n", "deb http://repository.example/debian-security trixie-security main\n"},
		"options, blanks and a comment": {
			"a.list", "# bookworm\n\n  deb  [arch=amd64 signed-by=/usr/share/bookworm.gpg]\thttp://repository.example/debian   bookworm\tmain # bookworm\n",
			"# bookworm\n\n  deb  [arch=amd64 signed-by=/usr/share/bookworm.gpg]\thttp://repository.example/debian   trixie\tmain # bookworm\n",
		},
		"a suite that only begins so": {"a.list", "deb http://repository.example/debian bookwormish main\n", "deb http://repository.example/debian bookwormish main\n"},
		"no end of line":              {"a.list", "deb http://repository.example/debian bookworm main", "deb http://repository.example/debian trixie main"},
		"that of others": {
			"a.list", "deb https://other.example/apt bookworm stable\n",
			"# disabled by osupgrade for the release upgrade: deb https://other.example/apt bookworm stable\n",
		},
		"deb822": {
			"debian.sources", "Types: deb\nURIs: http://repository.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/bookworm.gpg\n\nTypes: deb\nURIs: http://repository.example/debian-security\nSuites:\n bookworm-security\nComponents: main\n",
			"Types: deb\nURIs: http://repository.example/debian\nSuites: trixie trixie-updates\nComponents: main\nSigned-By: /usr/share/keyrings/bookworm.gpg\n\nTypes: deb\nURIs: http://repository.example/debian-security\nSuites:\n trixie-security\nComponents: main\n",
		},
		"deb822 of others": {
			"other.sources", "# theirs\nTypes: deb\nURIs: https://other.example/apt\nSuites: bookworm\nComponents: stable\nEnabled: yes\n",
			"# disabled by osupgrade for the release upgrade\nEnabled: no\n# theirs\nTypes: deb\nURIs: https://other.example/apt\nSuites: bookworm\nComponents: stable\n",
		},
		"deb822 that is disabled": {
			"other.sources", "Enabled: no\nTypes: deb\nURIs: https://other.example/apt\nSuites: bookworm\n",
			"Enabled: no\nTypes: deb\nURIs: https://other.example/apt\nSuites: bookworm\n",
		},
		"nothing": {"a.sources", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rewriting{from: "bookworm", to: "trixie", own: ofDebian, disable: true}
			got, err := r.file(row.file, row.text)
			if err != nil || got.text != row.want {
				t.Fatalf("got %v\n%s\nwant\n%s", err, got.text, row.want)
			}
			again, err := r.file(row.file, got.text)
			if err != nil || again.text != got.text {
				t.Errorf("rewritten twice it is %v\n%s", err, again.text)
			}
		})
	}
}

func TestRewriteKeepsSourcesOfOthers(t *testing.T) {
	t.Parallel()
	const theirs = "deb https://other.example/apt bookworm stable\n"
	got, err := rewriting{from: "bookworm", to: "trixie", own: ofDebian}.file("a.list", theirs)
	if err != nil || got.text != theirs || len(got.foreign) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRewriteRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ file, text, want string }{
		"not a source":        {"a.list", "hello\n", "is not a source"},
		"an open bracket":     {"a.list", "deb [arch=amd64 http://x y\n", "without a closing bracket"},
		"no suite":            {"a.list", "deb http://x\n", "has no address or no suite"},
		"deb822 without URIs": {"a.sources", "Types: deb\nSuites: bookworm\n", "has no URIs or no Suites"},
	} {
		if got, err := (rewriting{from: "bookworm", to: "trixie", own: ofDebian}).file(row.file, row.text); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %+v, %v; want %q", name, got, err, row.want)
		}
	}
}

func TestOwnSources(t *testing.T) {
	t.Parallel()
	own := ownSources("http://x/debian/\tbookworm\tDebian\nhttp://x/debian\tbookworm-backports\tDebian Backports\nhttps://y/\t./\tAppliance\ndamaged\n", "debian")
	for entry, want := range map[sourceEntry]bool{
		{"http://x/debian", "bookworm"}: true, {"http://x/debian/", "bookworm-backports"}: true,
		{"https://y", "./"}: false, {"http://x/debian", "sid"}: false,
	} {
		if own(entry) != want {
			t.Errorf("%v is %t", entry, !want)
		}
	}
}

// FuzzRewriteSources holds that a rewriting changes suites alone, and that rewriting
// twice is as good as once.
func FuzzRewriteSources(f *testing.F) {
	f.Add(false, "deb [a=b] http://repository.example/debian bookworm main # x\n# y\n")
	f.Add(true, "Types: deb\nURIs: http://repository.example/debian\nSuites: bookworm\n bookworm-updates\n\n\nTypes: deb\nURIs: http://o\nSuites: a\n")
	f.Fuzz(func(t *testing.T, stanzas bool, text string) {
		name := map[bool]string{false: "a.list", true: "a.sources"}[stanzas]
		r := rewriting{from: "bookworm", to: "trixie", own: ofDebian}
		once, err := r.file(name, text)
		if err != nil {
			return
		}
		twice, err := r.file(name, once.text)
		if err != nil || twice.text != once.text {
			t.Fatalf("%q is %q, and then %q, %v", text, once.text, twice.text, err)
		}
		if strings.Count(once.text, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q is %q", text, once.text)
		}
		if len(once.moved) == 0 && once.text != text {
			t.Fatalf("%q is %q though nothing was moved", text, once.text)
		}
	})
}
