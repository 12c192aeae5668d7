package tenant

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// TestTenants checks that an entry is written once, on the revision that was read, and read
// back; and that a damaged one is told from one that is not there.
func TestTenants(t *testing.T) {
	t.Parallel()
	stored := &credentialtest.Memory{}
	all := New(stored)
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	made, err := all.Put(Tenant{Name: "acme", DescriptiveName: "Acme Ltd", Made: noon}, credential.IfNew)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.Put(made, credential.IfNew); !errors.Is(err, credential.ErrExists) {
		t.Errorf("it is made twice: %v", err)
	}
	later := noon.Add(time.Hour)
	removed := made
	removed.Removed = &later
	if removed, err = all.Put(removed, credential.IfRevision(made.Revision)); err != nil || removed.Revision == made.Revision {
		t.Errorf("it is removed with revision %d, %v", removed.Revision, err)
	}
	if _, err := all.Put(made, credential.IfRevision(made.Revision)); !errors.Is(err, credential.ErrChanged) {
		t.Errorf("it is written on an old revision: %v", err)
	}
	written, err := stored.Get("acme")
	if err != nil {
		t.Fatal(err)
	}
	body := formattest.Golden(t, "testdata/format1/tenant.json", written)
	if list, err := all.List(); err != nil || len(list) != 1 || list[0].DescriptiveName != "Acme Ltd" || !list[0].Removed.Equal(later) || list[0].Revision != removed.Revision {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if _, err := all.Get("beta"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := all.Get("../acme"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path: %v", err)
	}
	for name, row := range map[string]struct {
		name string
		body []byte
	}{
		"of another name":    {"beta", body},
		"edited":             {"acme", bytes.Replace(body, []byte("Ltd"), []byte("Inc"), 1)},
		"cut short":          {"acme", body[:len(body)/2]},
		"of a newer version": {"acme", bytes.Replace(body, []byte(`"format":1`), []byte(`"format":2`), 1)},
	} {
		got, err := decode(row.name, row.body)
		if newer := name == "of a newer version"; newer != format.IsUnsupported(err) || !newer && (!errors.Is(err, ErrDamaged) || got.Revision == 0) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if err := credential.Put(stored, "beta", body); err != nil {
		t.Fatal(err)
	}
	if list, err := all.List(); !errors.Is(err, ErrDamaged) {
		t.Errorf("with a damaged one the list is %+v, %v", list, err)
	}
}
