package join

import (
	"strings"
	"testing"
)

// FuzzParse checks that a text is a join token only if it is one as it stands, and that an
// error does not repeat it.
func FuzzParse(f *testing.F) {
	f.Add(prefix + strings.Repeat("0a", secretBytes) + "_" + strings.Repeat("0f", 32))
	f.Add(" " + prefix + strings.Repeat("0a", secretBytes) + "\n")
	f.Add(prefix + "_")
	f.Fuzz(func(t *testing.T, text string) {
		secret, fingerprint, err := Parse(text)
		if err != nil {
			if len(text) > 2*len(prefix) && strings.Contains(err.Error(), text) && strings.HasPrefix(text, prefix) { // The error names the prefix.
				t.Errorf("the error repeats %q", text)
			}
			return
		}
		whole := secret
		if fingerprint != "" {
			whole += "_" + fingerprint
		}
		if whole != strings.TrimSpace(text) {
			t.Errorf("%q is read as %q", text, whole)
		}
	})
}
