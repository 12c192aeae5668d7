package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// TestClientCertificate: plan, apply and destroy on a real agent with the client certificate of
// a user, from files and from the environment, without a token and without a login. The key is
// kept nowhere, what the user may not do is refused, and so is all once the user was removed.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t, "users", time.Now())
	site := realagent.StartTLSSite(t, authority, "acme", "beta")
	allow := func(roles ...access.Role) {
		t.Helper()
		if _, err := site.Logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: "ann", Allow: roles}, aPassword, nil, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	pair := authority.User(t, "acme", "ann")
	secret := strings.Split(string(pair.Key), "\n")[1]
	before := site.Count(t)
	for name, row := range map[string]struct {
		settings []string
		provider string
	}{
		// A token of the environment does not count beside a certificate of the configuration.
		"files":       {[]string{"OSUPGRADE_TOKEN=osu_wrong"}, "provider \"osupgrade\" {\n  client_cert_file = \"ann.pem\"\n  client_key_file  = \"ann.key\"\n}\n"},
		"environment": {[]string{"OSUPGRADE_CLIENT_CERT_PEM=" + string(pair.Cert), "OSUPGRADE_CLIENT_KEY_PEM=" + string(pair.Key)}, ""},
	} {
		allow(access.Viewer, access.Writes)
		w := acctest.NewWorkspace(t, append(loggedIn(site.Server, row.settings...), "OSUPGRADE_CA_CERT_PEM="+string(site.CACertPEM), "TF_LOG=TRACE", "TF_LOG_PATH=trace.log")...)
		if row.provider != "" {
			w.Write(t, "ann.pem", string(pair.Cert))
		}
		main := acctest.Requirement + row.provider + "resource \"osupgrade_calendar\" \"one\" {\n  name = \"" + name + "\"\n  kind = \"freeze\"\n}\n"
		w.Write(t, "main.tf", main)
		if row.provider != "" {
			out := oneLine(w.Run(t, 1, "plan", "-no-color"))
			if !strings.Contains(out, "cannot read client_key_file: open ann.key: no such file or directory") {
				t.Errorf("without the key it says %s", out)
			}
			w.Write(t, "ann.key", string(pair.Key))
		}
		w.Run(t, 0, "plan", "-no-color", "-out=saved")
		w.Run(t, 0, "apply", "-no-color", "saved")
		allow(access.Viewer)
		if out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color")); !strings.Contains(out, `user "ann" (viewer) does not have the right to delete this`) {
			t.Errorf("%s: a viewer deletes: %s", name, out)
		}
		allow(access.Viewer, access.Writes)
		w.Write(t, "main.tf", strings.Replace(main, "  kind", "  tenant = \"beta\"\n  kind", 1))
		if out := oneLine(w.Run(t, 1, "apply", "-auto-approve", "-no-color")); !strings.Contains(out, `user "ann" is not valid for tenant "beta"`) {
			t.Errorf("%s: another tenant: %s", name, out)
		}
		w.Write(t, "main.tf", main)
		w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
		if err := site.Logins.RemoveUser(principal.KeyOf("acme", "ann"), nil); err != nil {
			t.Fatal(err)
		}
		if out := oneLine(w.Run(t, 1, "apply", "-auto-approve", "-no-color")); !strings.Contains(out, "and this site has no such user") {
			t.Errorf("%s: a removed user: %s", name, out)
		}
		if row.provider != "" {
			w.Write(t, "ann.key", "")
		}
		keptNowhere(t, w, secret)
	}
	if made := site.Count(t); made != before {
		t.Errorf("there were %d logins", made-before)
	}
}

// TestClientCertificate_itself: the provider does not delete the user of its client certificate.
func TestClientCertificate_itself(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	authority := certtest.NewAuthority(t, "users", time.Now())
	site := realagent.StartTLSSite(t, authority, "acme")
	for _, name := range []string{"ann", "bob"} {
		if _, err := site.Logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: name, Allow: []access.Role{access.Admin}}, aPassword, nil, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	pair := authority.User(t, "acme", "ann")
	w := acctest.NewWorkspace(t, append(loggedIn(site.Server, "OSUPGRADE_CLIENT_CERT_PEM="+string(pair.Cert), "OSUPGRADE_CLIENT_KEY_PEM="+string(pair.Key)), "OSUPGRADE_CA_CERT_PEM="+string(site.CACertPEM))...)
	w.Write(t, "main.tf", acctest.Requirement+user(`token_policies = ["admin"]`))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color")); !strings.Contains(out, "The provider is logged in as user ann of tenant acme. After its deletion it could not undo what it did.") {
		t.Errorf("the destroy says %s", out)
	}
}
