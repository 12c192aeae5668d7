// Package cli is the command line of osupgrade-agent: a site with its
// controllers and REST API (serve), the worker of a host (worker), both in one
// process with simulated hosts (dev), and the commands of an operator, which
// call the REST API. It parses what was typed, calls other packages, and turns
// what they return into text and an exit code; it decides nothing about runs.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/exec"
)

// version is the version of the program.
type version string

// Exit codes of every command.
const (
	exitOK = 0
	// exitFailed: the command failed.
	exitFailed = 1
	// exitUsage: the arguments are wrong.
	exitUsage = 2
	// exitNotCompleted: the run that the command waited for ended with another
	// result than completed.
	exitNotCompleted = 3
	// exitInterrupted: a signal ended the command; shells use this code for Ctrl-C.
	exitInterrupted = 130
)

// errNotCompleted makes a command end with exitNotCompleted. The command has
// printed why.
var errNotCompleted = errors.New("the run was not completed")

// exitStatuses are the exit codes and their meanings, as help and the man pages have
// them.
var exitStatuses = []struct {
	code    int
	meaning string
}{
	{exitOK, "success"},
	{exitFailed, "failure"},
	{exitUsage, "wrong usage"},
	{exitNotCompleted, "the run that the command waited for was not completed"},
	{exitInterrupted, "interrupted"},
}

// summary is what the program is for.
const summary = "Fleet OS upgrades as code."

// description heads the help of the program.
func description() string {
	codes := make([]string, len(exitStatuses))
	for i, status := range exitStatuses {
		codes[i] = fmt.Sprint(status.code, " ", status.meaning)
	}
	return summary + "\n\nExit codes: " + strings.Join(codes, ", ") + "."
}

// commands are all commands of the program.
type commands struct {
	LogLevel string           `help:"How much to log to standard error: debug, info, warn or error." default:"info" enum:"debug,info,warn,error" env:"OSUPGRADE_LOG_LEVEL"`
	Version  kong.VersionFlag `help:"Print the version and exit."`

	Site siteCommands `embed:""`

	Worker     workerCommands       `cmd:"" help:"Upgrade this host when the controller commands it; join a site."`
	Busy       busyCommand          `cmd:"" help:"Say on a host that it is not to be upgraded now, for a while or while a command runs."`
	Login      loginCommand         `cmd:"" help:"Log in as a user, and print a token for the other commands."`
	Password   passwordCommand      `cmd:"" help:"Change the password of the user who is logged in."`
	Unseal     unsealCommand        `cmd:"" help:"Open the strongbox of a sealed site with its passphrase."`
	Status     statusCommand        `cmd:"" help:"Show the state of a tenant and its newest run."`
	Windows    windowsCommand       `cmd:"" help:"Show when runs may be under way, as a table or a picture."`
	Hosts      hostsCommand         `cmd:"" help:"List the hosts, or show one with its versions and reports."`
	Start      startCommand         `cmd:"" help:"Start a run by hand."`
	Watch      watchCommand         `cmd:"" help:"Follow a run until it ends."`
	Runs       runsCommand          `cmd:"" help:"List the runs, or show one run with its events."`
	Pause      pauseCommand         `cmd:"" help:"Pause the run under way: no further host starts."`
	Resume     resumeCommand        `cmd:"" help:"Resume a paused run."`
	Abort      abortCommand         `cmd:"" help:"Abort the run under way."`
	Approve    approveCommand       `cmd:"" help:"Approve a stage that waits for approval."`
	Release    releaseCommand       `cmd:"" help:"Free the slot of a host by force."`
	Retry      retryCommand         `cmd:"" help:"Start a run of the hosts that an earlier run did not upgrade."`
	Forget     forgetCommand        `cmd:"" help:"Delete a host that no longer exists."`
	Audit      auditCommand         `cmd:"" help:"Show or export who did what: the audit log."`
	History    historyCommand       `cmd:"" help:"Show who changed an object, when, and what."`
	Apply      applyCommand         `cmd:"" help:"Write the configuration, rollout and calendars of a file."`
	Get        getCommand           `cmd:"" help:"Print the configuration, rollout and calendars as apply reads them."`
	Edit       editCommand          `cmd:"" help:"Edit the configuration, rollout and calendars in an editor."`
	Validate   validateCommand      `cmd:"" help:"Check a file for apply without writing anything."`
	Check      strategyCheckCommand `cmd:"" name:"strategy-check" help:"Check scripts for upgrades: play them through what a worker asks, kill them, and say what to mend."`
	Webhook    webhookCommand       `cmd:"" help:"Declare who is told of news, and see what could not be delivered."`
	Tenant     tenantCommand        `cmd:"" help:"Make and remove the tenants of a site."`
	Policy     policyCommand        `cmd:"" help:"Write the policies of a tenant: what its users, approles and tokens may do."`
	Completion completionCommand    `cmd:"" help:"Print a script that completes the command line in bash, zsh or fish."`
	Man        manCommand           `cmd:"" help:"Write the man pages of the program and its commands."`

	// What the worker starts.
	Strategy strategyCommand `cmd:"" hidden:"" help:"Carry out one action of a strategy."`
	Scoped   scopedCommand   `cmd:"" hidden:"" help:"Run a program in a scope of its own."`
}

// Run does what the arguments say, until ctx ends, and returns the exit code.
func Run(ctx context.Context, program string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(ctx, program, args, stdin, stdout, stderr, nil)
}

// execute is Run with another way to the API than the network, for tests; nil is the
// network.
func execute(ctx context.Context, program string, args []string, stdin io.Reader, stdout, stderr io.Writer, dial dialer) int {
	var c commands
	code := -1
	parser, err := newParser(&c, program, kong.Bind(dial),
		kong.Writers(stdout, stderr), kong.Exit(func(status int) { code = status }),
		kong.Bind(&console{in: stdin, err: stderr}), kong.Bind(exec.Streams{In: stdin, Out: stdout, Err: stderr}), kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(stdout, (*io.Writer)(nil)), kong.BindTo(stdin, (*io.Reader)(nil)),
	)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "osupgrade-agent:", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if code >= 0 {
		return code
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "osupgrade-agent: %s\nSee osupgrade-agent --help.\n", explainUse(err))
		return exitUsage
	}
	err = parsed.Run(newLog(stderr, c.LogLevel))
	if _, ends := errors.AsType[exitStatus](err); err != nil && !ends && ctx.Err() != nil {
		// The end by a signal needs no message, an error after it does.
		if !errors.Is(err, context.Canceled) {
			_, _ = fmt.Fprintln(stderr, "osupgrade-agent:", explain(err))
		}
		return exitInterrupted
	}
	return report(stderr, err)
}

// newParser makes the parser of the command line.
func newParser(c *commands, program string, more ...kong.Option) (*kong.Kong, error) {
	files := &configFiles{}
	return kong.New(c, append([]kong.Option{
		kong.Name("osupgrade-agent"), kong.Description(description()), kong.UsageOnError(),
		kong.Configuration(files.load),
		kong.Vars{"version": program, "strategies": strings.Join(strategyNames(), ", ")},
		kong.Bind(version(program), files, dialer(nil)),
		kong.NamedMapper("path", kong.MapperFunc(pathMapper)), kong.PostBuild(addExamples), kong.PostBuild(withoutEmptyPaths),
	}, more...)...)
}

func report(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNotCompleted):
		return exitNotCompleted
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	_, _ = fmt.Fprintln(stderr, "osupgrade-agent:", explain(err))
	if _, ok := errors.AsType[misuse](err); ok {
		return exitUsage
	}
	return exitFailed
}
