package provider_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// named are resources of objects with a name, besides those of objects.
var named = map[string]string{
	"approle": "resource \"osupgrade_approle\" \"a\" {\n name = \"a\"\n token_policies = [\"read\"]\n}",
	"policy":  "resource \"osupgrade_policy\" \"a\" {\n name = \"a\"\n rest_api = { rules = [{ path = \"/v1/state/**\", operations = { read = \"allow\" } }] }\n}",
	"user":    "resource \"osupgrade_user\" \"a\" {\n name = \"a\"\n token_policies = [\"read\"]\n password_wo = \"correct horse\"\n password_wo_version = 1\n}",
	"webhook": "resource \"osupgrade_webhook\" \"a\" {\n name = \"a\"\n url = \"https://receiver.example/\"\n secret_wo = \"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\"\n secret_wo_version = 1\n}",
}

// secrets are those of them with a secret.
var secrets = map[string]bool{"user": true, "webhook": true}

// TestReplaced_createBeforeDestroy: with create_before_destroy the creation meets the object that
// is replaced. It is there after the apply, and the state has it.
func TestReplaced_createBeforeDestroy(t *testing.T) {
	t.Parallel()
	all := maps.Clone(named)
	for name, configurations := range objects {
		all[name] = configurations[0]
	}
	for name, resource := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			address := strings.ReplaceAll(strings.Fields(resource)[1], `"`, "") + ".a"
			body := strings.TrimSuffix(strings.Replace(resource, "{", "{\n", 1), "}")
			declare := func(more string) {
				w.Write(t, "main.tf", acctest.Requirement+body+more+"\n lifecycle { create_before_destroy = true }\n}\n")
			}
			declare("")
			w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
			if secrets[name] { // The creation would replace the secret of an object that it does not know.
				out := words(w.Run(t, 1, "apply", "-auto-approve", "-input=false", "-no-color", "-replace="+address))
				if !strings.Contains(out, "as a replacement under the same name with create_before_destroy does, set overwrite_existing = true") {
					t.Errorf("the apply says: %s", out)
				}
				declare("\n overwrite_existing = true")
				w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
			}
			out := words(w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color", "-replace="+address))
			if kept := strings.Contains(out, "replace it without create_before_destroy"); kept != (name == "approle") {
				t.Errorf("the apply says: %s", out)
			}
			w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
			w.Run(t, 0, "destroy", "-auto-approve", "-input=false", "-no-color")
			if _, _, there := api.Calendar(acctest.Tenant, "x"); there {
				t.Error("the destroy has left the calendar")
			}
		})
	}
}

// TestReplaced_otherAddress: a resource gets another address without a moved block. One is
// deleted and another one created at the same time, and the object is there after it.
func TestReplaced_otherAddress(t *testing.T) {
	t.Parallel()
	for name, resource := range map[string]string{
		"freeze": objects["freeze"][0], "rollout": objects["rollout"][0], "config": objects["config"][0], "maintenance window": objects["maintenance window"][0],
		"approle": named["approle"], "policy": named["policy"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+resource)
			w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
			w.Write(t, "main.tf", acctest.Requirement+strings.Replace(resource, `"a"`, `"b"`, 1))
			w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
			w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
		})
	}
}
