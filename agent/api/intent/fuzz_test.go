package intent

import (
	"errors"
	"testing"
)

// FuzzDecode checks that whatever is in a file of configuration, it is read or its problems
// are told.
func FuzzDecode(f *testing.F) {
	f.Add("a.yaml", []byte("configuration:\n  worker-applications: [{name: app}]\n---\ncalendars:\n  xmas: {kind: freeze}\n"))
	f.Add("a.json", []byte(`{"rollout":{"splay":"1h"},"calendars":{"x":null}}`))
	f.Add("-", []byte("{}"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		_, err := Decode(Source{Name: name, Text: text})
		if err == nil {
			return
		}
		if found, ok := errors.AsType[Problems](err); !ok || len(found) == 0 || found.Error() == "" {
			t.Fatalf("error without problems: %v", err)
		}
	})
}
