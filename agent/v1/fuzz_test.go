package v1

import (
	"errors"
	"reflect"
	"testing"
)

// checkDecoded requires that a body gives problems, or else a value that keeps
// its meaning in either format.
func checkDecoded[T any](t *testing.T, contentType string, body []byte, decode func(string, []byte) (T, error)) {
	t.Helper()
	value, err := decode(contentType, body)
	if err != nil {
		if found, ok := errors.AsType[Problems](err); !ok || len(found.Body().Errors) == 0 {
			t.Fatalf("error without problems: %v", err)
		}
		return
	}
	for _, accept := range []string{inJSON, inYAML} {
		as, encoded, err := Encode(accept, value)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decode(as, encoded); err != nil || !reflect.DeepEqual(again, value) {
			t.Fatalf("%+v written as\n%s\nread as %+v, %v", value, encoded, again, err)
		}
	}
}

func FuzzOSUpgradeJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeOSUpgrade) })
}

func FuzzOSUpgradeYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inYAML, body, DecodeOSUpgrade) })
}

func FuzzStartJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeStart) })
}

func FuzzStartYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inYAML, body, DecodeStart) })
}

func FuzzPreferred(f *testing.F) {
	f.Fuzz(func(t *testing.T, accept string) {
		if _, _, err := Encode(accept, Start{Reason: accept}); err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeStart(preferred(accept), []byte("{}")); err != nil {
			t.Fatalf("the content type for %q cannot be read: %v", accept, err)
		}
	})
}
