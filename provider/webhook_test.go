package provider_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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

// hook is the webhook chat with this body.
func hook(body string) string {
	return "resource \"osupgrade_webhook\" \"chat\" {\n name = \"chat\"\n" + body + "\n}\n"
}

// hookSecret is a secret of a webhook, and its version.
func hookSecret(letter string, version int) (secret, attributes string) {
	secret = v1.WebhookSecretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
	return secret, fmt.Sprintf("\n secret_wo = %q\n secret_wo_version = %d\n", secret, version)
}

// receiver is a receiver of news that keeps the last one with its signature.
type receiver struct {
	*httptest.Server
	mu        sync.Mutex
	signed    string
	signature string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.signed = q.Header.Get("webhook-id") + "." + q.Header.Get("webhook-timestamp") + "." + string(body)
		r.signature = q.Header.Get("webhook-signature")
	}))
	t.Cleanup(r.Close)
	return r
}

// signedBy checks that a test of the webhook is signed with a secret.
func (r *receiver) signedBy(t *testing.T, api *client.Client, secret string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if test, err := api.TestWebhook(t.Context(), acctest.Tenant, "chat"); err != nil || !test.Delivered {
			return fmt.Errorf("the test ended with %+v: %w", test, err)
		}
		key, err := v1.WebhookKey(secret)
		r.mu.Lock()
		defer r.mu.Unlock()
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(r.signed))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err == nil && r.signature != want {
			t.Errorf("the signature is %q, want %q", r.signature, want)
		}
		return err
	}
}

// TestWebhook takes a webhook through its life at the real agent, which sends to a receiver.
func TestWebhook(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	site := realagent.StartLocalSite(t, acctest.Tenant)
	api, to := rest(t, site.Server), newReceiver(t)
	const address = "osupgrade_webhook.chat"
	url := fmt.Sprintf("url = %q", to.URL)
	first, firstSecret := hookSecret("a", 1)
	second, secondSecret := hookSecret("b", 2)
	all := url + "\n description = \"Chat.\"\n news = [\"run.finished\", \"run.blocked\"]"
	has := func(want v1.Webhook) resource.TestCheckFunc {
		return func(*terraform.State) error {
			got, err := api.Webhook(t.Context(), acctest.Tenant, "chat")
			if err == nil && !v1.SameWebhook(got, want) {
				t.Errorf("the site has %+v, want %+v", got, want)
			}
			return err
		}
	}
	allWebhook := v1.Webhook{URL: to.URL, Description: "Chat.", News: []string{"run.blocked", "run.finished"}}
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all, err := api.Webhooks(t.Context(), acctest.Tenant); err != nil || len(all) > 0 {
				t.Errorf("after destroy there are %v, %v", all, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(hook(url)), PlanOnly: true, ExpectError: spoken("Attribute: secret_wo Tenant: acme")},
			{Config: site.Config(hook(url + "\n secret_wo = \"whsec_short\"\n secret_wo_version = 1")), PlanOnly: true, ExpectError: spoken("the secret is not whsec_ and the base64 of 24 to 64 bytes")},
			{Config: site.Config(hook("url = \"http://hooks.example/\"" + firstSecret)), PlanOnly: true, ExpectError: spoken("is not https; use https, or http to a receiver on 127.0.0.1")},
			{Config: site.Config(hook(url + "\n news = [\"run.begun\"]" + firstSecret)), PlanOnly: true, ExpectError: spoken(`"run.begun"`)},
			{Config: site.Config(strings.Replace(hook(url+firstSecret), `"chat"`+"\n", "\"script-chat\"\n", 1)), PlanOnly: true, ExpectError: spoken("Attribute: name")},
			{Config: site.Config(hook(url + firstSecret)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: to.signedBy(t, api, first)},
			{Config: site.Config(hook(all + firstSecret)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: resource.ComposeTestCheckFunc(has(allWebhook), to.signedBy(t, api, first))},
			{Config: site.Config(hook(all + secondSecret)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: to.signedBy(t, api, second)},
			{
				PreConfig: func() {
					if err := api.PutWebhook(t.Context(), acctest.Tenant, "chat", v1.Webhook{URL: to.URL, Disabled: true}, client.Precondition{}); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(hook(all + secondSecret)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(allWebhook),
			},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/chat", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"secret_wo_version"}},
			{
				PreConfig: func() {
					if err := client.WebhookNamed("chat").Delete(t.Context(), api, acctest.Tenant, client.Precondition{}); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(hook(all + secondSecret)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: to.signedBy(t, api, second),
			},
		},
	})
}

// TestWebhook_lostAnswer: a secret whose write has no answer is sent again, and is in no file.
func TestWebhook_lostAnswer(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.WriteOnly)
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, append(server.Env(), "OSUPGRADE_VALIDATE_AT_PLAN=false", "TF_LOG=TRACE", "TF_LOG_PATH=trace.log")...)
	main := acctest.Requirement + "variable \"secret\" {\n ephemeral = true\n}\n" + hook("url = \"https://hooks.example\"\n secret_wo = var.secret\n secret_wo_version = VERSION")
	var secrets []string
	for version, fault := range []fakeapi.Fault{fakeapi.CloseAfter(), fakeapi.CloseBefore()} {
		secret, _ := hookSecret(string(rune('a'+version)), version)
		secrets = append(secrets, secret)
		w.Env = append(w.Env, "TF_VAR_secret="+secret)
		w.Write(t, "main.tf", strings.Replace(main, "VERSION", fmt.Sprint(version), 1))
		api.Inject(http.MethodPut, "/webhooks/chat", fault)
		w.Run(t, 0, "plan", "-no-color", "-out=saved")
		w.Run(t, 0, "apply", "-no-color", "saved")
		w.Run(t, 0, "plan", "-no-color", "-detailed-exitcode")
		if got := api.WebhookSecret(acctest.Tenant, "chat"); got != secret || api.Pending() > 0 {
			t.Errorf("the server has the secret %q, want %q", got, secret)
		}
	}
	keptNowhere(t, w, secrets...)
}
