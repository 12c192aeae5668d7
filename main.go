// The program terraform-provider-osupgrade serves the provider to Terraform and
// OpenTofu over the plugin protocol, version 6.
//
// It starts package provider and nothing else; it never contains the agent.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	tfaddr "github.com/hashicorp/terraform-registry-address"

	"github.com/osupgrade/terraform-provider-osupgrade/provider"
)

// version is set by the release with -ldflags "-X main.version=...".
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "keep running and print how a Terraform CLI can attach, for debuggers")
	flag.Parse()
	address := tfaddr.NewProvider(tfaddr.DefaultProviderRegistryHost, "osupgrade", "osupgrade")
	options := providerserver.ServeOpts{Address: address.String(), Debug: *debug}
	err := quiet(os.Environ(), os.Setenv)
	if err == nil {
		err = providerserver.Serve(context.Background(), provider.New(version), options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-osupgrade:", err)
		os.Exit(1)
	}
}
