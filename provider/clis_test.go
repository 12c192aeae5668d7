package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCLIs: tools/clis.sh tests with each version once, fails if one of them does, and
// names the versions that are not there.
func TestCLIs(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for name, text := range map[string]string{
		"terraform":                    "echo Terraform v1.11.4",
		"terraform-1.11":               "echo Terraform v1.11.9",
		"terraform-1.15":               "echo Terraform v1.15.9",
		"tofu":                         "echo OpenTofu v1.12.6",
		"terraform-docs":               "echo terraform-docs version v0.20.0",
		"terraform-provider-osupgrade": "exec sleep 600",
		"go":                           `echo "tested with ${TF_ACC_TERRAFORM_PATH##*/}"; [[ $TF_ACC_TERRAFORM_PATH != *tofu ]]`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/usr/bin/env bash\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	check := func(wantFailure bool, wants ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "tools/clis.sh", "all")
		command.Dir, command.Env = "..", append(os.Environ(), "PATH="+bin+":/usr/bin:/bin")
		out, err := command.CombinedOutput()
		if (err != nil) != wantFailure {
			t.Errorf("it ended with %v:\n%s", err, out)
		}
		for _, want := range wants {
			if strings.Count(string(out), want) != 1 {
				t.Errorf("%q is not once in:\n%s", want, out)
			}
		}
	}
	tested := []string{"tested with terraform\n", "tested with terraform-1.15\n", "tested with tofu\n"}
	check(true, append(tested, "NOT TESTED, because it is not on PATH: OpenTofu 1.10\n", "NOT TESTED", "FAILED: OpenTofu 1.12\n", "FAILED")...)

	for name, text := range map[string]string{"tofu1.10": "echo OpenTofu v1.10.10", "go": `echo "tested with ${TF_ACC_TERRAFORM_PATH##*/}"`} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/usr/bin/env bash\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	check(false, append(tested, "tested with tofu1.10\n")...)
}
