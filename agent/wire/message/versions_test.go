package message

import (
	"strings"
	"testing"
)

// TestVersionsBody checks how large a report may be.
func TestVersionsBody(t *testing.T) {
	t.Parallel()
	const around = len(`{"kernel":""}`)
	for size, want := range map[int]string{
		MaxVersionsBody:     "",
		MaxVersionsBody + 1: "cannot read versions: 262145 bytes; at most 262144",
	} {
		body := EncodeVersions(map[string]string{"kernel": strings.Repeat("6", size-around)})
		if len(body) != size {
			t.Fatalf("the body has %d bytes, not %d", len(body), size)
		}
		_, err := DecodeVersions(body)
		if got := errorText(err); got != want {
			t.Errorf("%d bytes give the error %q, not %q", size, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
