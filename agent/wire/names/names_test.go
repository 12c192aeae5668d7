package names

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValid(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		valid      bool
	}{
		{"letters", "acme", true},
		{"one letter", "a", true},
		{"digits and hyphens", "0-a--9", true},
		{"longest", strings.Repeat("a", 63), true},
		{"too long", strings.Repeat("a", 64), false},
		{"empty", "", false},
		{"upper case", "Acme", false},
		{"hyphen first", "-a", false},
		{"hyphen last", "a-", false},
		{"dot", "a.b", false},
		{"blank", "a b", false},
		{"line end", "a\n", false},
		{"other letters", "é", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if Valid(row.text) != row.valid {
				t.Fatalf("Valid(%q) is %v", row.text, !row.valid)
			}
		})
	}
}

func TestValidHost(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"h01": true, "udc1-001.example.com": true, "A_b": true, "7": true, strings.Repeat("a", 253): true,
		"": false, "-a": false, "a-": false, ".a": false, "a b": false, "a/b": false, "a*": false, "ä": false, strings.Repeat("a", 254): false,
	} {
		if ValidHost(name) != want {
			t.Errorf("ValidHost(%q) is %v", name, !want)
		}
	}
}

// TestPatterns holds that the loops mean what regular expressions say.
func TestPatterns(t *testing.T) {
	t.Parallel()
	pattern, host := regexp.MustCompile(Pattern), regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	label := regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-a-zA-Z0-9._/ \n]{0,4}`), rapid.StringMatching(`[a-z.]{60,66}`), rapid.StringMatching(`[a-z.]{250,256}`)).Draw(t, "text")
		if want := len(text) <= 63 && pattern.MatchString(text); Valid(text) != want {
			t.Errorf("Valid(%q) is %v", text, !want)
		}
		if want := len(text) <= 253 && host.MatchString(text); ValidHost(text) != want {
			t.Errorf("ValidHost(%q) is %v", text, !want)
		}
		if want := len(text) <= 63 && label.MatchString(text); ValidLabel(text) != want {
			t.Errorf("ValidLabel(%q) is %v", text, !want)
		}
	})
}
