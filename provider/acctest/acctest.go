// Package acctest runs the provider under a real Terraform or OpenTofu CLI,
// inside the test process, against a server of the test's own.
//
// It decides which CLI is used. It never asks a registry: the provider stands
// at an address that none serves.
package acctest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/provider"
)

// Host and Namespace are where the provider stands in tests: a host that never
// exists (RFC 6761 6.2), so that Terraform and OpenTofu behave alike.
const (
	Host      = "osupgrade.test"
	Namespace = "osupgrade"
)

// Source is the address of the provider in tests.
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

// Config is a whole configuration: the provider that speaks to the server, and
// what the test adds.
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

// Requirement says where the provider comes from.
const Requirement = `
terraform {
  required_providers {
    osupgrade = { source = "` + Source + `" }
  }
}
`

// Run runs the steps of a test case side by side with other tests. Without a
// CLI the test fails: one that was skipped would prove nothing.
func Run(t *testing.T, c resource.TestCase) {
	t.Helper()
	if _, err := CLI(); err != nil {
		t.Fatal(err)
	}
	c.IsUnitTest = true
	c.ProtoV6ProviderFactories = map[string]func() (tfprotov6.ProviderServer, error){
		"osupgrade": providerserver.NewProtocol6WithError(provider.New("test")()),
	}
	resource.Test(t, c)
}

// CLI is the path of terraform, or else of tofu, on PATH. TF_ACC_TERRAFORM_PATH
// stands above both. It also sets what the test harness reads from the
// environment.
var CLI = sync.OnceValues(func() (string, error) {
	path, err := find()
	if err != nil {
		return "", err
	}
	return path, prepare(path)
})

func find() (string, error) {
	if path := os.Getenv(resource.EnvTfAccProviderHost); path != "" && path != Host {
		return "", errors.New(resource.EnvTfAccProviderHost + " is set to " + path + "; unset it, the tests name the provider themselves")
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

// prepare keeps the tests apart from the user's own setting.
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
