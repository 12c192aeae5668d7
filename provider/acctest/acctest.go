// Package acctest runs the provider with a real Terraform or OpenTofu CLI against
// a server of the test.
//
// It decides which CLI is used. It never contacts a registry: no registry serves
// the provider's address in tests.
package acctest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/provider"
)

// Host and Namespace are the provider's address in tests. The host never exists
// (RFC 6761 6.2), so Terraform and OpenTofu behave alike.
const (
	Host      = "osupgrade.test"
	Namespace = "osupgrade"
)

// Source is the provider's source address in tests.
const Source = Host + "/" + Namespace + "/osupgrade"

// Server is a running API: a fake, or the agent itself.
type Server struct{ Endpoint, Token, Tenant string }

// Tenant is the provider's tenant in tests.
const Tenant = "acme"

// Fake starts a fake API for one test.
func Fake(t testing.TB) (*fakeapi.Server, Server) {
	t.Helper()
	api := fakeapi.New(t)
	return api, Server{Endpoint: api.URL, Token: api.Token, Tenant: Tenant}
}

// Config returns a configuration of the provider for the server, with the parts
// of a test.
func (s Server) Config(parts ...string) string {
	return Requirement + `
provider "osupgrade" {
  endpoint = "` + s.Endpoint + `"
  token    = "` + s.Token + `"
  tenant   = "` + s.Tenant + `"
  retries  = 1
}
` + strings.Join(parts, "\n")
}

// Requirement is the terraform block with the provider's source address.
const Requirement = `
terraform {
  required_providers {
    osupgrade = { source = "` + Source + `" }
  }
}
`

// Run runs a test case in parallel with other tests. It needs a CLI.
func Run(t *testing.T, c resource.TestCase) {
	t.Helper()
	CLI(t)
	c.IsUnitTest = true
	c.ProtoV6ProviderFactories = map[string]func() (tfprotov6.ProviderServer, error){
		"osupgrade": func() (tfprotov6.ProviderServer, error) { return provider.NewServer("test")(), nil },
	}
	resource.Test(t, c)
}

// off, as TF_ACC_TERRAFORM_PATH, leaves out the tests that need a CLI.
const off = "off"

// CLI returns the path in TF_ACC_TERRAFORM_PATH, or of terraform or tofu on PATH. It also
// sets the environment variables of the test harness. Without a CLI the test fails, because
// a skipped test proves nothing; make check leaves it out and names it.
func CLI(t testing.TB) string {
	t.Helper()
	if os.Getenv("TF_ACC_TERRAFORM_PATH") == off {
		t.Skip("it needs Terraform or OpenTofu")
	}
	path, err := located()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var located = sync.OnceValues(func() (string, error) {
	path, err := find()
	if err != nil {
		return "", err
	}
	return path, prepare(path)
})

func find() (string, error) {
	if path := os.Getenv(resource.EnvTfAccProviderHost); path != "" && path != Host {
		return "", errors.New(resource.EnvTfAccProviderHost + " is set to " + path + "; unset it, because the tests set the provider's address")
	}
	for _, name := range []string{os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform", "tofu"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("this test needs a Terraform or OpenTofu CLI, and there is neither terraform nor tofu on PATH; " +
		"install Terraform 1.11 or later (developer.hashicorp.com/terraform/install) or OpenTofu 1.10 or later (opentofu.org/docs/intro/install), " +
		"or set TF_ACC_TERRAFORM_PATH to one")
}

// prepare isolates the tests from the user's environment.
func prepare(path string) error {
	for name, value := range map[string]string{
		"TF_ACC_TERRAFORM_PATH":            path,
		resource.EnvTfAccProviderHost:      Host,
		resource.EnvTfAccProviderNamespace: Namespace,
		"TF_CLI_CONFIG_FILE":               os.DevNull,
		"CHECKPOINT_DISABLE":               "1",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "OSUPGRADE_") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Diagnostics returns the diagnostics in the CLI's JSON output, by the address of
// the resource.
func Diagnostics(t testing.TB, output string) map[string][]string {
	t.Helper()
	var report struct {
		Diagnostics []struct{ Address, Summary, Detail string }
	}
	if _, text, found := strings.Cut(output, "{"); !found || json.Unmarshal([]byte("{"+text), &report) != nil {
		t.Fatalf("the CLI printed no JSON: %s", output)
	}
	told := map[string][]string{}
	for _, d := range report.Diagnostics {
		told[d.Address] = append(told[d.Address], d.Summary+"\n"+d.Detail)
	}
	return told
}

// Do is a plan check that calls a function between plan and apply.
type Do func()

// CheckPlan calls the function.
func (d Do) CheckPlan(context.Context, plancheck.CheckPlanRequest, *plancheck.CheckPlanResponse) { d() }
