package conversion

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestText(t *testing.T) {
	t.Parallel()
	if got := Text("x"); !got.Equal(types.StringValue("x")) {
		t.Errorf("got %s", got)
	}
	if got := Text(""); !got.IsNull() {
		t.Errorf("got %s, want null", got)
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 1, 2, 3, 500_000_000, time.FixedZone("", 3600))
	if got := Time(&at); !got.Equal(types.StringValue("2026-11-27T00:02:03.5Z")) {
		t.Errorf("got %s", got)
	}
	if got := Time(nil); !got.IsNull() {
		t.Errorf("got %s, want null", got)
	}
	if got := Time(&time.Time{}); !got.IsNull() {
		t.Errorf("got %s, want null", got)
	}
}
