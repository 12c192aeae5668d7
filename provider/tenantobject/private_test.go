package tenantobject

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// memory is a private state that refuses values that are not JSON, as Terraform does.
type memory map[string][]byte

func (m memory) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) { return m[key], nil }

func (m memory) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	var diags diag.Diagnostics
	if !json.Valid(value) {
		diags.AddError("not JSON", string(value))
	}
	m[key] = value
	return diags
}

func TestBase(t *testing.T) {
	t.Parallel()
	for name, base := range map[string]snapshot{
		"strong": {ETag: `"17"`}, "weak": {ETag: `W/"17"`}, "with signs": {ETag: "\"<&\\\""}, "none": {},
		"with a body": {ETag: `"17"`, Body: json.RawMessage(`{"future-key":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			m := memory{}
			if got := baseOf(t.Context(), m, &diags); !reflect.DeepEqual(got, snapshot{}) {
				t.Errorf("got %+v before any was kept", got)
			}
			keepBase(t.Context(), m, base, &diags)
			if got := baseOf(t.Context(), m, &diags); !reflect.DeepEqual(got, base) || diags.HasError() {
				t.Errorf("got %+v, %v, want %+v", got, diags, base)
			}
		})
	}
}

func TestImported_isTakenOnce(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	m := memory{}
	if TakeImported(t.Context(), m, &diags) {
		t.Error("nothing was imported")
	}
	MarkImported(t.Context(), m, &diags)
	if !TakeImported(t.Context(), m, &diags) || TakeImported(t.Context(), m, &diags) || diags.HasError() {
		t.Errorf("want it once, %v", diags)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	m, otherwise := memory{}, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "a"}}}
	if got := contentOf(t.Context(), m, otherwise, &diags); !reflect.DeepEqual(got, otherwise) {
		t.Errorf("got %+v, want the other", got)
	}
	want := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{}}
	keepContent(t.Context(), m, want, &diags)
	if got := contentOf(t.Context(), m, otherwise, &diags); !reflect.DeepEqual(got, want) || diags.HasError() {
		t.Errorf("got %+v, %v, want %+v", got, diags, want)
	}
}

func TestGet_damaged(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	if baseOf(t.Context(), memory{"base": []byte(`{`)}, &diags); !diags.HasError() {
		t.Error("want an error")
	}
}
