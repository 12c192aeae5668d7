package site

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/join"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
)

// TestIdentityOnDisk checks in which files a site keeps what lets somebody in. A later version
// looks for it there.
func TestIdentityOnDisk(t *testing.T) {
	t.Parallel()
	dir, now, allow := t.TempDir(), time.Now(), []access.Role{access.Viewer}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	identity, err := openIdentity(dir, nil)
	must(err)
	objects, err := openTenants(dir)
	must(err)
	var want []string
	kept := func(kind, name string) { want = append(want, filepath.Join(kind, name+".json")) }

	token, err := identity.Tokens.Add(principal.Token{Name: "ci", Tenant: "acme", Allow: allow})
	must(err)
	kept("credentials/tokens", principal.ID(token))
	_, err = identity.Logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: "ann", Allow: allow}, "correct horse", nil, now)
	must(err)
	kept("credentials/users", "acme.ann")
	role, err := identity.Logins.Approles.Write(principal.Approle{Tenant: access.AnyTenant, Name: "tf", Allow: allow}, nil, now)
	must(err)
	kept("credentials/approles", "_.tf")
	secret, err := identity.Logins.Approles.AddSecret(role, 0, 0, now)
	must(err)
	kept("credentials/secret-ids", principal.ID(secret))
	_, err = identity.Policies.Write(principal.Policy{Tenant: "acme", Name: "night"}, nil)
	must(err)
	kept("credentials/policies", "acme.night")
	_, id, err := identity.Joins.Add(join.Token{Tenant: "acme", Host: "*", Application: "appliance", Expires: now.Add(time.Hour)}, now)
	must(err)
	kept("credentials/join-tokens", id)
	_, err = identity.Hosts.Add(natsd.Identity{Tenant: "acme", Host: "h01"})
	must(err)
	keys, err := identity.Hosts.List()
	must(err)
	kept("credentials/hosts", keys[0].Public)
	_, err = objects.Put(tenant.Tenant{Name: "acme", Made: now}, nil)
	must(err)
	kept("tenants", "acme")
	_, err = identity.Tokens.Find(token, now)
	must(err)
	ended, stop := context.WithCancel(t.Context())
	stop()
	identity.Tokens.Run(ended, slog.New(slog.DiscardHandler)) // It writes the last uses in the end.
	kept("credentials", "tokens-used")

	for _, name := range want {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v", name, err)
		}
	}
	files := 0
	must(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files++
		}
		return err
	}))
	if files != len(want) {
		t.Errorf("there are %d files, not only\n%s", files, strings.Join(want, "\n"))
	}
	again, err := openIdentity(dir, nil)
	must(err)
	found, err := again.Tokens.List()
	if err != nil || len(found) != 1 || found[0].Value.Name != "ci" || found[0].Value.Used.IsZero() {
		t.Errorf("the tokens are %+v, %v", found, err)
	}
}
