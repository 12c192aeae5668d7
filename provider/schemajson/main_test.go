package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestSchemas: what the CLI prints of the schemas is what this program prints.
func TestSchemas(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t)
	t.Cleanup(func() {
		if err := acctest.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	w.Write(t, "main.tf", acctest.Requirement)
	mine, err := schemas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, got := read(t, []byte(w.Run(t, 0, "providers", "schema", "-json")), acctest.Source), read(t, mine, name)
	for kind := range want {
		// The pages have no identities.
		if kind != "resource_identity_schemas" && !reflect.DeepEqual(got[kind], want[kind]) {
			t.Errorf("%s: got %v, want %v", kind, got[kind], want[kind])
		}
	}
	if len(want) < 4 {
		t.Errorf("the CLI prints %d kinds of schemas", len(want))
	}
}

func read(t *testing.T, text []byte, provider string) map[string]any {
	t.Helper()
	var all struct {
		Schemas map[string]map[string]any `json:"provider_schemas"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all.Schemas[provider]
}
