package exec

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
)

func TestParseVersions(t *testing.T) {
	t.Parallel()
	two := map[string]string{"base-os": "1.0", "kernel": "6.1.0"}
	for name, printed := range map[string]string{
		"lines":                    "base-os 1.0\nkernel 6.1.0\n",
		"lines without an end":     "base-os 1.0\nkernel 6.1.0",
		"tabs, blanks, empty ones": "\n  base-os \t 1.0  \r\n\n\nkernel\t6.1.0\n\n",
		"an object":                `{"base-os":"1.0","kernel":"6.1.0"}`,
		"an object on many lines":  "\n{\n  \"base-os\": \"1.0\",\n  \"kernel\": \"6.1.0\"\n}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseVersions([]byte(printed))
			if err != nil || !maps.Equal(got, two) {
				t.Fatalf("got %v, %v", got, err)
			}
		})
	}
}

// many prints a number of packages.
func many(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "p%d 1\n", i)
	}
	return b.String()
}

func TestParseVersionsRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ printed, want string }{
		"nothing":                {"", `it names no package; it should be lines like "kernel 6.1.0"`},
		"empty lines":            {"\n \n", "it names no package"},
		"an empty object":        {"{}", "it names no package"},
		"a name alone":           {"a 1\nb\n", `line 2: "b" is not a package, blanks and its version`},
		"three words":            {"a 1 2", `line 1: "a 1 2" is not a package`},
		"a control character":    {"a 1\nb 1\x07", `line 2: package "b" has version "1\a"`},
		"twice in lines":         {"a 1\nb 1\na 1", `line 3: package "a" is repeated`},
		"twice in an object":     {"{\"a\":\"1\",\n\"a\":\"1\"}", `line 2: package "a" is repeated`},
		"nested":                 {"{\"a\":\"1\",\n\"b\":{\"c\":\"1\"}}", `line 2: the version of package "b" is not a string; use a flat object`},
		"a number":               {`{"a":1}`, `line 1: the version of package "a" is not a string`},
		"null":                   {`{"a":null}`, `the version of package "a" is not a string`},
		"an empty name":          {`{"":"1"}`, `line 1: package "" has version "1"; both should be text`},
		"an empty version":       {`{"a":""}`, `package "a" has version ""`},
		"a line end in a string": {`{"a":"1\n2"}`, `package "a" has version "1\n2"`},
		"cut after a name":       {"{\n\"a\"", "line 2: it is not JSON: unexpected EOF"},
		"cut after a version":    {`{"a":"1"`, "line 1: it is not JSON: "},
		"a comma too many":       {`{"a":"1",}`, "line 1: it is not JSON: "},
		"no comma":               {`{"a":"1" "b":"2"}`, "line 1: it is not JSON: "},
		"two objects":            {"{\"a\":\"1\"}\n{}", "line 2: there is more after the object"},
		"an object and text":     {`{"a":"1"} x`, "line 1: there is more after the object"},
		"an array":               {`["a"]`, `line 1: "[\"a\"]" is not a package`},
		"not UTF-8":              {"a 1\nb \xff", "line 2: it is not UTF-8"},
		"too many":               {many(maxPackages + 1), "line 10001: there are more than 10000 packages"},
		"too long":               {strings.Repeat("\n", maxVersionsSize+1), "it is more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseVersions([]byte(row.printed))
			if got != nil {
				t.Fatalf("got %d packages", len(got))
			}
			wantError(t, err, row.want)
		})
	}
}

func TestAsManyVersionsAsAllowed(t *testing.T) {
	t.Parallel()
	got, err := parseVersions([]byte(many(maxPackages)))
	if err != nil || len(got) != maxPackages {
		t.Fatalf("got %d packages, %v", len(got), err)
	}
}

func TestVersionsOfAScript(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"versions": "echo a word of warning >&2; echo kernel 6.1.0"})
	s := h.open()
	for range 2 {
		got, err := s.Versions(t.Context())
		if want := map[string]string{"kernel": "6.1.0"}; err != nil || !maps.Equal(got, want) {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	h.script("versions", "#!/bin/sh\necho kernel\n")
	_, err := s.Versions(t.Context())
	wantError(t, err, `cannot parse the output of versions: line 1: "kernel" is not a package`)
}

// FuzzParseVersions checks that an accepted table survives a round trip through its
// JSON form.
func FuzzParseVersions(f *testing.F) {
	f.Add([]byte("base-os 1.0\nkernel 6.1.0\n"))
	f.Add([]byte(`{"base-os":"1.0","kernel":"6.1.0"}`))
	f.Fuzz(func(t *testing.T, printed []byte) {
		got, err := parseVersions(printed)
		if err != nil {
			checkRefused(t, got, err)
			return
		}
		sent, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseVersions(sent)
		if err != nil || !maps.Equal(got, again) || len(got) == 0 {
			t.Fatalf("%q came back as %q: %v", got, again, err)
		}
	})
}

func checkRefused(t *testing.T, got map[string]string, err error) {
	t.Helper()
	if got != nil || !utf8.ValidString(err.Error()) || len(err.Error()) > script.MaxText {
		t.Fatalf("refused with %q and %v", err, got)
	}
}
