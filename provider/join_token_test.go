package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/join"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// joinTokensOf lists the join tokens of a site.
func joinTokensOf(t *testing.T, site acctest.Server) []v1.JoinToken {
	t.Helper()
	all, err := rest(t, site).JoinTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestJoinToken: the token is there until the ephemeral resource is closed, with what was asked
// for, and what is kept until then does not have it.
func TestJoinToken(t *testing.T) {
	t.Parallel()
	const name = "osupgrade_join_token"
	site := realagent.StartSite(t, "acme")
	p := configured(t, site.Server)
	opened, private, told := p.open(t, name, values{"host": text("web-*"), "application": text("appliance"), "valid": text("2h"), "replace": boolean(true)})
	if len(told.errors) > 0 {
		t.Fatal(told)
	}
	var token string
	if err := opened["token"].As(&token); err != nil {
		t.Fatal(err)
	}
	if _, _, err := join.Parse(token); err != nil || strings.Contains(string(private), token) {
		t.Errorf("the token is %q, %v, and what is kept %s", token, err, private)
	}
	if made := joinTokensOf(t, site.Server); len(made) != 1 || made[0].Host != "web-*" || made[0].Application != "appliance" || !made[0].Replace || made[0].State != "open" || !opened["id"].Equal(text(made[0].ID)) {
		t.Errorf("the join tokens are %+v", made)
	}
	for range 2 { // The second time there is nothing to withdraw.
		if told := p.close(t, name, private); len(told.errors)+len(told.warnings) > 0 {
			t.Error(told)
		}
	}
	if left := joinTokensOf(t, site.Server); len(left) > 0 {
		t.Errorf("there are join tokens left: %+v", left)
	}
}

// TestJoinToken_refused: mistakes are refused with what would be right, and a token that cannot
// be withdrawn ends by itself.
func TestJoinToken_refused(t *testing.T) {
	t.Parallel()
	const name = "osupgrade_join_token"
	site := realagent.StartSite(t, "acme")
	good := func(attribute string, value tftypes.Value) values {
		all := values{"host": text("web-1"), "application": text("appliance")}
		all[attribute] = value
		return all
	}
	for attribute, row := range map[string]struct {
		value tftypes.Value
		says  string
	}{
		"host":        {text("web 1"), "neither the name of a host nor a pattern"},
		"application": {text("Appliance"), `"Appliance" is not a name`},
		"valid":       {text("8d"), "8d"},
	} {
		told := configured(t, site.Server).validates(t, name, good(attribute, row.value))
		says(t, told.errors, attribute+".*"+row.says)
	}
	lesser := site.Server
	lesser.Token = site.TokenOf(t, "acme", access.Viewer)
	_, _, told := configured(t, lesser).open(t, name, good("replace", boolean(false)))
	says(t, told.errors, "Unable to make osupgrade_join_token.*403 Forbidden.*does not permit")
	_, private, _ := configured(t, site.Server).open(t, name, good("replace", boolean(false)))
	warned := configured(t, lesser).close(t, name, private)
	if len(warned.errors) > 0 {
		t.Error(warned)
	}
	says(t, warned.warnings, "Unable to withdraw osupgrade_join_token\nThe token with the id .* is good until its end.*credentials join-token remove.*403")
}

// TestJoinToken_many: a token for several hosts has what was asked for, and what the attributes say
// together is checked in the plan.
func TestJoinToken_many(t *testing.T) {
	t.Parallel()
	const name = "osupgrade_join_token"
	site := realagent.StartSite(t, "acme")
	p := configured(t, site.Server)
	labels := tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"shop": text("basel")})
	number := func(n int) tftypes.Value { return tftypes.NewValue(tftypes.Number, n) }
	_, private, told := p.open(t, name, values{"host": text("shop-*"), "application": text("appliance"), "max_hosts": number(40), "labels": labels, "approve": boolean(true)})
	if len(told.errors) > 0 {
		t.Fatal(told)
	}
	if made := joinTokensOf(t, site.Server); len(made) != 1 || made[0].MaxHosts != 40 || made[0].Labels["shop"] != "basel" || !made[0].Approve {
		t.Errorf("the join tokens are %+v", made)
	}
	if told := p.close(t, name, private); len(told.errors) > 0 {
		t.Error(told)
	}
	blank := tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"shop name": text("basel")})
	for want, all := range map[string]values{
		"host.*fits every name":                {"host": text("*"), "max_hosts": number(2)},
		"max_hosts.*use a pattern such as h-*": {"host": text("h"), "max_hosts": number(2)},
		"max_hosts.*1001":                      {"host": text("h-*"), "max_hosts": number(1001)},
		"labels.*shop name":                    {"host": text("h"), "labels": blank},
	} {
		all["application"] = text("appliance")
		says(t, configured(t, site.Server).validates(t, name, all).errors, want)
	}
}

// TestJoinTokenCLI applies the example: a host gets the token, which is in no state, no plan and
// no log, and none is left.
func TestJoinTokenCLI(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Ephemeral)
	site := realagent.StartSite(t, "acme")
	w := acctest.NewWorkspace(t, append(site.Env(), "TF_LOG=TRACE", "TF_LOG_PATH=trace.log")...)
	const ssh = "ssh root@web-1 osupgrade-agent worker join --site https://site.example:4646 --token-file -"
	main := example(t, "ephemeral-resources/osupgrade_join_token/ephemeral-resource.tf")
	w.Write(t, "main.tf", acctest.Requirement+strings.Replace(main, ssh, "cat >joined", 1))
	w.Run(t, 0, "plan", "-no-color", "-out=saved")
	w.Run(t, 0, "apply", "-no-color", "saved")
	token, err := os.ReadFile(filepath.Join(w.Dir, "joined"))
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err := join.Parse(strings.TrimSpace(string(token)))
	if err != nil {
		t.Fatal(err)
	}
	w.Write(t, "terraform.tfstate.backup", "none yet") // keptNowhere wants one.
	keptNowhere(t, w, secret)
	if left := joinTokensOf(t, site.Server); len(left) > 0 {
		t.Errorf("there are join tokens left: %+v", left)
	}
}
