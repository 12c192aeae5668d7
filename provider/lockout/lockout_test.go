package lockout

import (
	"cmp"
	"strings"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TestVerdict: what is refused depends on who else may let others in, and on who asks.
func TestVerdict(t *testing.T) {
	t.Parallel()
	end := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	credential := func(kind, tenant, owner string, allow ...string) v1.Credential {
		return v1.Credential{ID: kind + " " + owner, Kind: kind, Tenant: tenant, Owner: owner, Allow: allow}
	}
	ann, bob := credential("user", "acme", "ann", "admin"), credential("user", "acme", "bob", "admin", "viewer")
	eve := credential("user", "acme", "eve", "viewer")
	deploy, build := credential("approle", "acme", "deploy", "admin"), credential("approle", "acme", "build", "admin")
	ci := credential("token", "acme", "ci", "admin")
	short, session := ci, credential("token", "acme", "ann", "admin")
	short.Expires, session.Expires, session.Login = &end, &end, "user"
	program := session
	program.ID, program.Login = "token of a program", "approle"
	for name, row := range map[string]struct {
		login      Login
		all, taken []v1.Credential
		own        identity
		says       string
	}{
		"another admin is left":           {all: []v1.Credential{ann, bob, short}, own: identity{token: short.ID}},
		"a token without an end is left":  {all: []v1.Credential{ann, ci}, own: identity{token: ci.ID}},
		"only a token with an end":        {all: []v1.Credential{ann, short}, own: identity{token: short.ID}, says: "the last admin of tenant acme"},
		"only a session of an admin":      {all: []v1.Credential{ann, program}, own: identity{token: program.ID}, says: "the last admin of tenant acme"},
		"the other one goes too":          {all: []v1.Credential{ann, bob, short}, taken: []v1.Credential{bob}, own: identity{token: short.ID}, says: "the last admin of tenant acme"},
		"one of all tenants asks":         {all: []v1.Credential{ann}, own: identity{token: "a token of all tenants"}},
		"the socket of the site asks":     {all: []v1.Credential{ann}},
		"its own certificate asks":        {all: []v1.Credential{ann, bob}, own: identity{tenant: "acme", user: "ann"}, says: "logged in as this user"},
		"another certificate asks":        {all: []v1.Credential{ann, eve}, own: identity{tenant: "acme", user: "eve"}, says: "the last admin of tenant acme"},
		"a certificate of all tenants":    {all: []v1.Credential{ann}, own: identity{tenant: "*", user: "ann"}},
		"only an approle is left":         {all: []v1.Credential{ann, deploy, program}, own: identity{token: program.ID}, says: "the last admin of tenant acme"},
		"another approle is left":         {login: Login{Kind: v1.ApproleCredential, At: tenantobject.Key{Tenant: "acme", Name: "build"}}, all: []v1.Credential{deploy, build, short}, own: identity{token: short.ID}},
		"it asks itself":                  {all: []v1.Credential{ann, bob, session}, own: identity{token: session.ID}, says: "logged in as this user"},
		"a program of its name asks":      {all: []v1.Credential{ann, bob, program}, own: identity{token: program.ID}},
		"no admin is deleted":             {login: Login{Had: []string{"viewer"}}, all: []v1.Credential{short}, own: identity{token: short.ID}},
		"the last one of all tenants":     {login: Login{At: tenantobject.Key{Tenant: "*", Name: "ann"}}, all: []v1.Credential{bob, credential("user", "*", "ann", "admin")}, own: identity{token: "x"}, says: "the last admin of all tenants"},
		"the admin of a tenant is no one": {login: Login{At: tenantobject.Key{Tenant: "*", Name: "ann"}}, all: []v1.Credential{credential("user", "*", "eve", "admin")}, own: identity{token: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			login := row.login
			login.Kind, login.Deletion = cmp.Or(login.Kind, v1.UserCredential), true
			if login.At.Name == "" {
				login.At = tenantobject.Key{Tenant: "acme", Name: "ann"}
			}
			if login.Had == nil {
				login.Had = []string{"admin"}
			}
			summary, detail := login.verdict(row.all, append(row.taken, login.credential()), row.own)
			if (row.says == "") != (summary == "") || !strings.Contains(summary, row.says) || summary != "" && !strings.Contains(detail, "Nothing is changed.") {
				t.Errorf("the verdict is %q, %q, want %q", summary, detail, row.says)
			}
		})
	}
}
