package principal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// TestPolicyFormat checks that a stored policy is read back, and that one that is not as it
// was written, or is another's, allows nothing.
func TestPolicyFormat(t *testing.T) {
	t.Parallel()
	stored := &credentialtest.Memory{}
	policies := NewPolicies(stored)
	night := Policy{Tenant: "acme", Name: "night", Rules: []PolicyRule{
		{Path: "/v1/*/os-upgrade/**", Description: "the night shift", Operations: map[string]string{"all": "reject", "read": "allow"}},
	}}
	if _, err := policies.Write(night, credential.IfNew); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.Write(night, credential.IfNew); !errors.Is(err, credential.ErrExists) {
		t.Errorf("it is made twice: %v", err)
	}
	if _, err := policies.Write(night, credential.IfRevision(1)); !errors.Is(err, credential.ErrChanged) {
		t.Errorf("it is written on another revision: %v", err)
	}
	written, err := stored.Get("acme.night")
	if err != nil {
		t.Fatal(err)
	}
	body := formattest.Golden(t, "testdata/format1/policy.json", written)
	for name, row := range map[string]struct {
		file string
		body []byte
		want error
	}{
		"as it was written":  {"acme.night", body, nil},
		"of another tenant":  {"beta.night", body, ErrDamagedPolicy},
		"of another name":    {"acme.day", body, ErrDamagedPolicy},
		"with another word":  {"acme.night", bytes.Replace(body, []byte(`"reject"`), []byte(`"allow"`), 1), ErrDamagedPolicy},
		"cut short":          {"acme.night", body[:len(body)/2], ErrDamagedPolicy},
		"of a newer version": {"acme.night", bytes.Replace(body, []byte(`"format":1`), []byte(`"format":2`), 1), &format.UnsupportedError{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := &credentialtest.Memory{}
			if err := credential.Put(stored, row.file, row.body); err != nil {
				t.Fatal(err)
			}
			policies := NewPolicies(stored)
			tenant, role := row.file[:4], row.file[5:]
			rules, err := policies.Of(tenant, []access.Role{role, access.Viewer, "none"})
			allowed := access.Decide(access.Principal{Tenant: tenant, Roles: []access.Role{role}, Policies: rules}, "GET", "/v1/state/os-upgrade") == nil
			if allowed != (row.want == nil) {
				t.Errorf("it allows to read: %t", allowed)
			}
			if _, newer := row.want.(*format.UnsupportedError); newer != format.IsUnsupported(err) || !newer && err != nil { //nolint:errorlint // a table
				t.Errorf("its rules: %v, %v", rules, err)
			}
			if _, err := policies.Get(tenant, role); !format.IsUnsupported(err) && !errors.Is(err, row.want) {
				t.Errorf("it is read with %v", err)
			}
		})
	}
}
