package v1

import (
	"slices"
	"strings"
	"testing"
)

// TestWarnings checks that what is written into headers is read back, also if a proxy has
// joined them, and that warnings of others are left out.
func TestWarnings(t *testing.T) {
	t.Parallel()
	want := []IntentWarning{
		{RolloutObject, "stages[0].match.roles[1]", `"gät\way, \no known host has role "x"; did you mean gateway?`},
		{RolloutObject, `stages[0].match.labels["a/b"]`, "no known host has label a/b"},
		{RolloutObject, "", "10 further parts match no known host"},
	}
	var values []string
	for _, w := range want {
		values = append(values, w.Header())
	}
	foreign := []string{`110 - "Response is Stale"`, `299 - "never closed`, "299 -", `299 - ""`}
	if got := ParseWarnings(RolloutObject, append(foreign, values...)); !slices.Equal(got, want) {
		t.Errorf("read as %q", got)
	}
	if got := ParseWarnings(RolloutObject, []string{strings.Join(values, ", ")}); !slices.Equal(got, want) {
		t.Errorf("joined, read as %q", got)
	}
}

func FuzzParseWarnings(f *testing.F) {
	f.Add(IntentWarning{Field: "a.b", Text: `"c"\`}.Header())
	f.Fuzz(func(t *testing.T, value string) {
		for _, w := range ParseWarnings(ConfigObject, []string{value}) {
			if again := ParseWarnings(ConfigObject, []string{w.Header()}); !slices.Equal(again, []IntentWarning{w}) {
				t.Errorf("%q is read as %q, and that again as %q", value, w, again)
			}
		}
	})
}
