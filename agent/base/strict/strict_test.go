package strict_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/strict"
)

// TestJSON checks what is read and what is refused.
func TestJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name":"a"}`:               "",
		" {\"name\":\"a\"} \n":       "",
		``:                           "EOF",
		`{"name":"a"`:                "unexpected EOF",
		`{"name":1}`:                 "cannot unmarshal number",
		`{"name":"a","size":1}`:      `unknown field "size"`,
		`{"name":"a"}{"name":"b"}`:   "more follows",
		`{"name":"a"}` + "\x00\x00":  "more follows",
		`{"name":"a"} and then some`: "more follows",
	} {
		var value struct {
			Name string `json:"name"`
		}
		err := strict.JSON([]byte(text), &value)
		if want == "" && (err != nil || value.Name != "a") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q is read as %+v, %v; want an error with %q", text, value, err, want)
		}
	}
}
