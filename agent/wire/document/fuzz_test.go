package document

import (
	"errors"
	"testing"
	"unicode/utf8"
)

func FuzzJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDocument(t, JSON, body) })
}

func FuzzYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDocument(t, YAML, body) })
}

// checkDocument reads what a fuzzer made, which must end in values or in
// problems that can be told.
func checkDocument(t *testing.T, contentType string, body []byte) {
	t.Helper()
	err := read(contentType, string(body))
	if err == nil {
		return
	}
	found, ok := errors.AsType[Problems](err)
	if !ok || len(found) == 0 || len(found) > maxProblems+1 {
		t.Fatalf("%d problems: %v", len(found), err)
	}
	fields := map[string]bool{}
	for _, p := range found {
		if p.Message == "" || !utf8.ValidString(p.String()+p.Value) || len(p.Value) > maxValue+3 {
			t.Fatalf("problem %+v", p)
		}
		if fields[p.Field] && p.Field != "" {
			t.Fatalf("two problems of %s: %v", p.Field, err)
		}
		fields[p.Field] = true
	}
}
