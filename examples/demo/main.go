// Command demo shows the way from terraform apply to upgraded hosts on this
// machine. make demo builds and runs it. With --shops it plays six shops, whose runs
// go side by side, and with --platform the upgrade of a platform of two controllers, step
// by step: go run ./examples/demo --platform, after make build.
//
// It works in a temporary folder. At the end, also after Ctrl-C, it removes the
// folder and stops every process that it started.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// limit bounds the demo, which takes less than half of it.
const limit = 90 * time.Second

func main() {
	os.Exit(run())
}

func run() int {
	bin := flag.String("bin", ".cache/bin", "folder with terraform-provider-osupgrade and osupgrade-agent")
	cli := flag.String("cli", cmp.Or(os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform"), "Terraform or OpenTofu CLI")
	source := flag.String("example", "examples/demo", "folder with the Terraform configuration")
	shops := flag.Bool("shops", false, "play six shops in three time zones, one of them with a dead host and one with a hung host")
	platform := flag.Bool("platform", false, "play the upgrade of a platform of two controllers, in which a step fails and is taken again")
	flag.Parse()
	// SIGPIPE and SIGHUP mean that the reader is gone. The demo still cleans up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	play, folder := (*demo).play, "."
	switch {
	case *shops:
		play, folder = (*demo).playShops, "shops"
	case *platform:
		play, folder = (*demo).playPlatform, "platform"
	}
	err := show(ctx, *bin, *cli, *source, folder, play)
	switch {
	case err == nil:
		say("Done in %s. The agent has been stopped and its folder removed.", time.Since(begun).Round(time.Second))
		return 0
	case errors.Is(context.Cause(ctx), context.Canceled):
		say("Interrupted. The agent has been stopped and its folder removed.")
		return 130
	case ctx.Err() != nil:
		err = fmt.Errorf("it took longer than %s: %w", limit, err)
	}
	fmt.Fprintln(os.Stderr, "demo:", err)
	return 1
}

// show plays the demo whose configuration is in a folder of source, in a temporary folder.
func show(ctx context.Context, bin, cli, source, folder string, play func(*demo) error) (err error) {
	dir, err := os.MkdirTemp("", "osupgrade-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	d := &demo{ctx: ctx, dir: dir, bin: bin, cli: cli, source: filepath.Join(source, folder)}
	defer func() { err = errors.Join(err, d.stopAgent()) }()
	if err := d.install(filepath.Join(source, "..", "modules")); err != nil {
		return err
	}
	return play(d)
}

// say prints what comes next, in bold on a terminal.
func say(format string, args ...any) {
	text := fmt.Sprintf("==> "+format, args...)
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		text = "\033[1m" + text + "\033[0m"
	}
	fmt.Print("\n" + text + "\n")
}
