// The program terraform-provider-osupgrade serves the provider to Terraform and
// OpenTofu over the plugin protocol, version 6.
//
// It starts package provider and nothing else; it never contains the agent.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	tfaddr "github.com/hashicorp/terraform-registry-address"

	"github.com/osupgrade/terraform-provider-osupgrade/provider"
)

// version is set by the release with -ldflags "-X main.version=...".
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "keep running and print how a Terraform CLI can attach, for debuggers")
	flag.Parse()
	address := tfaddr.NewProvider(tfaddr.DefaultProviderRegistryHost, "osupgrade", "osupgrade")
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	err := quiet(os.Environ(), os.Setenv)
	if err == nil {
		err = tf6server.Serve(address.String(), provider.NewServer(version), options...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-osupgrade:", err)
		os.Exit(1)
	}
}
