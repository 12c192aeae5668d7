// Command osupgrade-agent carries out OS upgrades over a fleet of hosts. Package
// cli has its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli"
)

// version is set at link time.
var version = "dev"

func main() {
	// The first signal ends the work in order, the second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
