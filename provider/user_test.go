package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// user is the user ann with this body.
func user(body string) string {
	return "resource \"osupgrade_user\" \"ann\" {\n name = \"ann\"\n" + body + "\n}\n"
}

// passwordOf is the password and its version.
func passwordOf(text string, version int) string {
	return fmt.Sprintf("\n password_wo = %q\n password_wo_version = %d\n", text, version)
}

const (
	firstPassword  = "a password of her own"
	secondPassword = "another of her own"
)

// logsIn checks whether ann of acme can log in with a password.
func logsIn(t *testing.T, server acctest.Server, password string, want bool) resource.TestCheckFunc {
	return func(*terraform.State) error {
		_, err := client.Login(t.Context(), client.Options{Endpoint: server.Endpoint}, v1.Login{Username: "ann", Password: password, Tenant: acctest.Tenant})
		if (err == nil) != want {
			t.Errorf("the login with %q ended with %v, want success: %t", password, err, want)
		}
		return nil
	}
}

// TestUser takes a user through its life at the real agent: only another version sends the
// password again.
func TestUser(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	const address = "osupgrade_user.ann"
	has := func(want v1.User) resource.TestCheckFunc {
		return func(*terraform.State) error {
			got, err := client.UserNamed("ann").Get(t.Context(), api, acctest.Tenant)
			if err == nil && !v1.SameUser(got.Value, want) {
				t.Errorf("the site has %+v, want %+v", got.Value, want)
			}
			return err
		}
	}
	const viewer = `token_policies = ["viewer"]`
	const long = "token_policies = [\"viewer\", \"operator\"]\n token_ttl = \"480m\"\n token_max_ttl = \"7d\""
	longUser := v1.User{TokenPolicies: []string{"operator", "viewer"}, TokenTTL: "8h", TokenMaxTTL: "7d"}
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all, err := api.Users(t.Context(), acctest.Tenant); err != nil || len(all) > 0 {
				t.Errorf("after destroy there are %v, %v", all, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(user(viewer)), PlanOnly: true, ExpectError: spoken("Attribute: password_wo Tenant: acme")},
			{Config: site.Config(user(viewer + passwordOf(firstPassword, 1))), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: logsIn(t, site.Server, firstPassword, true)},
			// Another password alone is no change.
			{Config: site.Config(user(viewer + passwordOf(secondPassword, 1))), ConfigPlanChecks: plans(address, plancheck.ResourceActionNoop)},
			{Config: site.Config(user(long + passwordOf(secondPassword, 1))), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: resource.ComposeTestCheckFunc(has(longUser), logsIn(t, site.Server, firstPassword, true))},
			{Config: site.Config(user(long + passwordOf(secondPassword, 2))), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: resource.ComposeTestCheckFunc(
				logsIn(t, site.Server, firstPassword, false), logsIn(t, site.Server, secondPassword, true))},
			// The form of a duration and the order of the roles are no changes.
			{Config: site.Config(user("token_policies = [\"operator\", \"viewer\"]\n token_ttl = \"8h\"\n token_max_ttl = \"168h\"" + passwordOf(secondPassword, 2))), ConfigPlanChecks: plans(address, plancheck.ResourceActionNoop)},
			{
				PreConfig: func() {
					if _, err := client.UserNamed("ann").Put(t.Context(), api, acctest.Tenant, client.Stored[v1.User]{}, v1.User{TokenPolicies: []string{"admin"}}, client.Precondition{}); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(user(long + passwordOf(secondPassword, 2))), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(longUser),
			},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/ann", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"password_wo_version", "token_ttl"}},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/Ann", ExpectError: spoken(`"acme/Ann" is not the name of a tenant (or * for all tenants) and the name of the user with a slash between them`)},
			{
				PreConfig: func() {
					if err := client.UserNamed("ann").Delete(t.Context(), api, acctest.Tenant, client.Precondition{}); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(user(long + passwordOf(firstPassword, 2))), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: logsIn(t, site.Server, firstPassword, true),
			},
		},
	})
}

// TestUser_refused: each mistake is refused at plan, at its attribute, without the password.
func TestUser_refused(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	viewer := `token_policies = ["viewer"]`
	good := passwordOf(firstPassword, 1)
	var steps []resource.TestStep
	for _, row := range []struct{ config, says string }{
		{user(`token_policies = ["night"]` + good), `"night" is neither a role nor a policy of the tenant`},
		{user(`token_policies = []` + good), `without a role nothing is allowed; give one at least`},
		{user(viewer + passwordOf("short", 1)), `it is too short or too long; use 8 characters at least`},
		{user(viewer + "\n password_wo = \"" + firstPassword + "\""), `Attribute "password_wo_version" must be specified when "password_wo" is specified`},
		{user(viewer + "\n password_wo_version = 1"), `Attribute "password_wo" must be specified when "password_wo_version" is specified`},
		{user(viewer + "\n token_ttl = \"1 day\"" + good), `token_ttl`},
		{strings.Replace(user(viewer+good), `name = "ann"`, `name = "Ann"`, 1), `"Ann" is not a name; use 1 to 63 of a-z`},
		{user(viewer + good + "tenant = \"Acme\""), `"Acme" is not a name`},
	} {
		steps = append(steps, resource.TestStep{Config: site.Config(row.config), PlanOnly: true, ExpectError: spoken(row.says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestUser_withItsPolicy: one apply creates a policy, and a user and an approle that name it.
func TestUser_withItsPolicy(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	const night = `token_policies = ["viewer", osupgrade_policy.night.name]`
	config := site.Config(policy(nightRules), user(night+passwordOf(firstPassword, 1)), approle(night))
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigPlanChecks: plans("osupgrade_user.ann", plancheck.ResourceActionCreate)},
		{Config: config, ConfigPlanChecks: plans("osupgrade_user.ann", plancheck.ResourceActionNoop)},
	}})
}

// TestUser_ofAllTenants: a user of all tenants has the tenant *.
func TestUser_ofAllTenants(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	config := site.Config(user("tenant = \"*\"\n token_policies = [\"viewer\"]" + passwordOf(firstPassword, 1)))
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, Check: func(*terraform.State) error {
			all, err := rest(t, site.Server).Users(t.Context(), client.OfAll)
			if len(all) != 1 || all[0].Name != "ann" {
				t.Errorf("the users of all tenants are %v", all)
			}
			return err
		}},
		{ResourceName: "osupgrade_user.ann", ImportState: true, ImportStateId: "*/ann", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"password_wo_version"}},
	}})
}

// TestUser_itself: the provider does not delete the user as which it is logged in, nor take its
// role admin, and deletes another one.
func TestUser_itself(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	ann := user(`token_policies = ["admin"]` + passwordOf(firstPassword, 1))
	bob := strings.NewReplacer(`"ann"`, `"bob"`, "admin", "viewer").Replace(ann)
	w.Write(t, "main.tf", acctest.Requirement+ann+bob)
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Env = append(w.Env, "OSUPGRADE_TOKEN=", "OSUPGRADE_USERNAME=ann", "OSUPGRADE_PASSWORD="+firstPassword)
	w.Write(t, "main.tf", acctest.Requirement+bob)
	if out := oneLine(w.Run(t, 1, "plan", "-no-color")); !strings.Contains(out, "The provider is logged in as user ann of tenant acme. After its deletion it could not undo what it did.") {
		t.Errorf("the plan says %s", out)
	}
	w.Write(t, "main.tf", acctest.Requirement+strings.Replace(ann, "admin", "viewer", 1)+bob)
	if out := oneLine(w.Run(t, 1, "plan", "-no-color")); !strings.Contains(out, "Without the role admin it could not undo what it did.") {
		t.Errorf("the plan says %s", out)
	}
	w.Write(t, "main.tf", acctest.Requirement+ann)
	if out := oneLine(w.Run(t, 0, "apply", "-auto-approve", "-no-color")); !strings.Contains(out, "1 destroyed") {
		t.Errorf("the apply says %s", out)
	}
}

// TestUser_lastAdmin: with a token that ends, the last admin of a tenant is not deleted, nor the
// last two at once.
func TestUser_lastAdmin(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	token, err := rest(t, site.Server).NewToken(t.Context(), acctest.Tenant, v1.NewToken{Name: "ci", Allow: []string{"admin"}, Valid: "1h"})
	if err != nil {
		t.Fatal(err)
	}
	w := acctest.NewWorkspace(t, append(site.Env(), "OSUPGRADE_TOKEN="+token.Token)...)
	ann := user(`token_policies = ["admin"]` + passwordOf(firstPassword, 1))
	w.Write(t, "main.tf", acctest.Requirement+ann+strings.ReplaceAll(ann, `"ann"`, `"bob"`))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color")); strings.Count(out, "This is the last admin of tenant acme") != 1 || !strings.Contains(out, "Make another admin first") {
		t.Errorf("the destroy says %s", out)
	}
	w.Write(t, "main.tf", acctest.Requirement+ann)
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	// An admin of all tenants can let others in again.
	w.Env = append(w.Env, "OSUPGRADE_TOKEN="+site.Token)
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
}

// TestUser_lostAnswers: the password of a write whose answer is lost is sent again, because
// nobody can see whether the server has it; and it is in no file.
func TestUser_lostAnswers(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, append(server.Env(), "OSUPGRADE_VALIDATE_AT_PLAN=false", "TF_LOG=TRACE", "TF_LOG_PATH=trace.log")...)
	main := acctest.Requirement + "variable \"password\" {\n ephemeral = true\n}\n" + user("token_policies = [\"viewer\"]\n password_wo = var.password\n password_wo_version = VERSION")
	w.Env = append(w.Env, "TF_VAR_password="+firstPassword)
	w.Write(t, "main.tf", strings.Replace(main, "VERSION", "1", 1))
	api.Inject(http.MethodPut, "/userpass/ann", fakeapi.CloseAfter())
	w.Run(t, 0, "plan", "-no-color", "-out=saved")
	w.Run(t, 0, "apply", "-no-color", "saved")
	if err := logsIn(t, server, firstPassword, true)(nil); err != nil {
		t.Error(err)
	}
	w.Env = append(w.Env, "TF_VAR_password="+secondPassword)
	w.Write(t, "main.tf", strings.Replace(main, "VERSION", "2", 1))
	api.ForgetRequests()
	api.Inject(http.MethodPut, "/userpass/ann", fakeapi.CloseBefore())
	w.Run(t, 0, "plan", "-no-color", "-out=saved")
	w.Run(t, 0, "apply", "-no-color", "saved")
	if err := logsIn(t, server, secondPassword, true)(nil); err != nil || api.Pending() > 0 {
		t.Error(err, api.Pending())
	}
	api.Inject(http.MethodPut, "/userpass/ann", fakeapi.Status(http.StatusBadRequest, "password "+firstPassword+" is not good"))
	w.Env = append(w.Env, "TF_VAR_password="+firstPassword)
	w.Write(t, "main.tf", strings.Replace(main, "VERSION", "3", 1))
	w.Run(t, 0, "plan", "-no-color", "-out=saved")
	if out := w.Run(t, 1, "apply", "-no-color", "saved"); strings.Contains(out, firstPassword) || !strings.Contains(out, "(secret)") {
		t.Errorf("the error has the password: %s", out)
	}
	keptNowhere(t, w, firstPassword, secondPassword)
}

// TestUser_unvalidated: the provider does not take its own role admin either if the plan is not
// validated, and waits for nothing else that the plan does not know.
func TestUser_unvalidated(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	const unknown = "resource \"terraform_data\" \"ttl\" {\n input = \"8h\"\n}\n"
	ann := user(`token_policies = ["admin"]` + passwordOf(firstPassword, 1))
	w.Write(t, "main.tf", acctest.Requirement+ann)
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Env = append(w.Env, "OSUPGRADE_TOKEN=", "OSUPGRADE_USERNAME=ann", "OSUPGRADE_PASSWORD="+firstPassword)
	refused := func(says string, args ...string) {
		t.Helper()
		if out := oneLine(w.Run(t, 1, append(args, "-no-color")...)); !strings.Contains(out, "The provider is logged in as user ann of tenant acme. "+says) {
			t.Errorf("%v says %s", args, out)
		}
	}
	refused("After its deletion", "plan", "-replace=osupgrade_user.ann")
	refused("After its deletion", "plan", "-replace=osupgrade_user.ann", "-refresh=false")
	w.Write(t, "main.tf", acctest.Requirement+unknown+user("token_policies = [\"viewer\"]\n token_ttl = terraform_data.ttl.output"+passwordOf(firstPassword, 1)))
	refused("Without the role admin", "plan")
	w.Write(t, "main.tf", acctest.Requirement+unknown+strings.Replace(ann, `name = "ann"`, "name = terraform_data.ttl.output", 1))
	refused("After its deletion", "plan")
	w.Env = append(w.Env, "OSUPGRADE_VALIDATE_AT_PLAN=false")
	w.Write(t, "main.tf", acctest.Requirement+strings.Replace(ann, "admin", "viewer", 1))
	refused("Without the role admin", "apply", "-auto-approve")
}

// TestUser_ownPassword: a plan that changes the password with which the provider is logged in
// warns that this ends its login.
func TestUser_ownPassword(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	const warning = "A new password ends the logins of user ann of tenant acme, also that of the provider"
	w.Write(t, "main.tf", acctest.Requirement+user(`token_policies = ["admin"]`+passwordOf(firstPassword, 1)))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Write(t, "main.tf", acctest.Requirement+user(`token_policies = ["admin"]`+passwordOf(secondPassword, 2)))
	if out := oneLine(w.Run(t, 0, "plan", "-no-color")); strings.Contains(out, warning) {
		t.Errorf("with the token of somebody else the plan says %s", out)
	}
	w.Env = append(w.Env, "OSUPGRADE_TOKEN=", "OSUPGRADE_USERNAME=ann", "OSUPGRADE_PASSWORD="+firstPassword)
	if out := oneLine(w.Run(t, 0, "plan", "-no-color")); !strings.Contains(out, warning) {
		t.Errorf("the plan says %s", out)
	}
}

// TestUser_adopted: a creation does not replace the password of a user that somebody else made,
// unless it may overwrite. A replacement needs no such permission.
func TestUser_adopted(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartSite(t, acctest.Tenant)
	made := v1.User{TokenPolicies: []string{"viewer"}, Password: firstPassword}
	if _, err := client.UserNamed("ann").Put(t.Context(), rest(t, site.Server), acctest.Tenant, client.Stored[v1.User]{}, made, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	w := acctest.NewWorkspace(t, site.Env()...)
	ann := `token_policies = ["viewer"]` + passwordOf(secondPassword, 1)
	w.Write(t, "main.tf", acctest.Requirement+user(ann))
	validating := w.Env
	for _, env := range []string{"OSUPGRADE_VALIDATE_AT_PLAN=true", "OSUPGRADE_VALIDATE_AT_PLAN=false"} {
		w.Env = append(slices.Clone(validating), env)
		if out := oneLine(w.Run(t, 1, "apply", "-auto-approve", "-no-color")); !strings.Contains(out, "User ann of tenant acme exists already, and its secret would be replaced by password_wo. Nothing was written.") {
			t.Errorf("%s: the apply says %s", env, out)
		}
	}
	w.Env = validating
	_ = logsIn(t, site.Server, firstPassword, true)(nil)
	w.Write(t, "main.tf", acctest.Requirement+user(ann+"overwrite_existing = true\n"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	_ = logsIn(t, site.Server, secondPassword, true)(nil)
	w.Write(t, "main.tf", acctest.Requirement+user(ann))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	for _, refresh := range []string{"-refresh=true", "-refresh=false"} {
		w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-replace=osupgrade_user.ann", refresh)
	}
	_ = logsIn(t, site.Server, secondPassword, true)(nil)
}
