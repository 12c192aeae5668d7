package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTheProviderContainsNoAgent holds design.md 3: who installs the provider
// does not get a server with it.
func TestTheProviderContainsNoAgent(t *testing.T) {
	t.Parallel()
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("cannot list the dependencies: %v", err)
	}
	const agent = "github.com/osupgrade/terraform-provider-osupgrade/agent/"
	forbidden := []string{
		"github.com/nats-io/", "github.com/hashicorp/terraform-plugin-sdk/", "github.com/hashicorp/terraform-plugin-testing/",
		agent + "controller", agent + "worker", agent + "store", agent + "natsd", agent + "log", agent + "api", agent + "run", agent + "message",
		agent + "client/fakeapi",
	}
	packages := strings.Fields(string(list))
	if !strings.Contains(string(list), agent+"client\n") {
		t.Fatal("the list does not even have the client; is it that of the provider?")
	}
	for _, name := range packages {
		for _, prefix := range forbidden {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("the provider contains %s", name)
			}
		}
	}
}
