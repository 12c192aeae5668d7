package release

import (
	"strings"
	"testing"
)

func TestParseRef(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"":                     "",
		"nov " + digest:        "",
		"nov":                  "has no digest",
		"nov sha256:0a":        "sha256:0a",
		"No v " + digest:       "No",
		"nov  " + digest:       "digest",
		"nov " + digest + "\n": "digest",
	} {
		r, err := ParseRef(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, r, err, want)
		}
	}
}

// FuzzParseRef: a reference is read as what is written the same way, or refused.
func FuzzParseRef(f *testing.F) {
	f.Add("nov sha256:" + strings.Repeat("0a", 32))
	f.Add("")
	f.Add("nov")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := ParseRef(text); err == nil && r.String() != text {
			t.Errorf("%q is read as %q", text, r)
		}
	})
}
