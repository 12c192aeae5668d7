package acctest

import (
	"strings"
	"testing"
)

func TestFeature(t *testing.T) {
	t.Parallel()
	for version, lacking := range map[string]string{
		"Terraform v1.9.8":            "ephemeral resources, actions",
		"Terraform v1.11.4":           "actions",
		"Terraform v1.14.0-rc1":       "",
		"Terraform v1.15.9":           "",
		"OpenTofu v1.10.10":           "ephemeral resources, actions",
		"OpenTofu v1.14.0":            "actions",
		"Terraform v2.0.0":            "ephemeral resources, actions",
		"zsh: command not found: tf ": "ephemeral resources, actions",
	} {
		var found []string
		for _, f := range []Feature{Ephemeral, Actions} {
			if f.missingIn(version) != "" {
				found = append(found, f.Name)
			}
		}
		if got := strings.Join(found, ", "); got != lacking {
			t.Errorf("%s lacks %q, want %q", version, got, lacking)
		}
	}
	if says := Actions.missingIn("Terraform v1.11.4"); says != "it needs actions, which Terraform 1.14 has; the CLI is Terraform v1.11.4; set TF_ACC_TERRAFORM_PATH to another" {
		t.Error(says)
	}
}
