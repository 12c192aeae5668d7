// Package cli is the command line of osupgrade-agent: a site with its
// controllers and REST API (serve), the worker of a host (worker), both in one
// process with simulated hosts (dev), and the commands of an operator, which
// call the REST API. It parses what was typed, calls other packages, and turns
// what they return into text and an exit code; it decides nothing about runs.
//
// To find your way: a command is a field of commands (cli.go) or, if it needs the
// server, of siteCommands (site.go), with its examples in examples.go. The files by
// the headings of --help (groups.go):
//
//   - See: status.go with advice.go (To do now) and certificates.go, windows.go with
//     month.go (the picture), hosts.go with inventory.go and plan.go, watch.go, runs.go,
//     audit.go (also history).
//   - Run: start.go (also retry), rollback.go with preflight.go (--dry-run), health.go, operations.go (pause,
//     resume, abort, approve, release) with confirm.go, hosts.go (forget), move.go, skip.go
//     (windows that are skipped).
//   - Declare: apply.go (also get, validate) with kinds.go (the table of kinds) and
//     declared.go (the files), edit.go, delete.go, withdraw.go, createrelease.go, calendar.go, webhook.go.
//   - Let in: login.go, context.go with package contexts (the sites of a person),
//     password.go, waitinghosts.go, credentials.go with the files of each kind: logins.go,
//     jointokens.go, usercertificate.go, stored.go.
//   - Site: serve.go, dev.go, init.go, backup.go (also restore, recover), seal.go,
//     unseal.go, tenant.go. The program of a host has site_off.go instead.
//   - Host: worker.go with connection.go (to the log), computer.go (reboots),
//     supervise.go (systemd), worker_strategy.go and a file for each strategy; join.go
//     (also rotate-key), accept.go, busy.go, strategycheck.go, stepcheck.go.
//   - Shell completion and man pages: completion.go, man.go.
//
// What they share: operator.go (the flags of the REST API; text or JSON), flags.go and
// config.go (reading flags and files), usage.go (arguments that cannot be parsed),
// explain.go (errors of the API as advice), terminal.go (colour, tables), times.go,
// secret.go, log.go. Package shell has what knows no command by name: completion and man
// pages.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/contexts"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/exec"
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
var exitStatuses = []shell.ExitStatus{
	{Code: exitOK, Meaning: "success"},
	{Code: exitFailed, Meaning: "failure"},
	{Code: exitUsage, Meaning: "wrong usage"},
	{Code: exitNotCompleted, Meaning: "the run that the command waited for was not completed"},
	{Code: exitInterrupted, Meaning: "interrupted"},
}

// programName is what is typed.
const programName = "osupgrade-agent"

// summary is what the program is for.
const summary = "Fleet OS upgrades as code."

// description heads the help of the program.
func description() string {
	codes := make([]string, len(exitStatuses))
	for i, status := range exitStatuses {
		codes[i] = fmt.Sprint(status.Code, " ", status.Meaning)
	}
	return summary + "\n\nExit codes: " + strings.Join(codes, ", ") + "."
}

// commands are all commands of the program.
type commands struct {
	LogLevel string           `help:"How much to log to standard error: debug, info, warn or error." default:"info" enum:"debug,info,warn,error" env:"OSUPGRADE_LOG_LEVEL"`
	Version  kong.VersionFlag `help:"Print the version and exit."`

	Status  statusCommand  `cmd:"" help:"Show the state of a tenant and its newest run." group:"see"`
	Windows windowsCommand `cmd:"" help:"Show when runs may take place, as a table or a picture." group:"see"`
	Hosts   hostsCommand   `cmd:"" help:"List the hosts, or show one with its versions and reports." group:"see"`
	Watch   watchCommand   `cmd:"" help:"Follow a run until it ends." group:"see"`
	Runs    runsCommand    `cmd:"" help:"List the runs, or show one run with its events." group:"see"`
	Audit   auditCommand   `cmd:"" help:"Show or export the audit log: who did what." group:"see"`
	History historyCommand `cmd:"" help:"Show who changed an object, when, and what." group:"see"`

	Health   healthCommand   `cmd:"" help:"Ask what a run would ask before it prepares any host." group:"run"`
	Start    startCommand    `cmd:"" help:"Start a run by hand." group:"run"`
	Pause    pauseCommand    `cmd:"" help:"Pause the current run: no further host starts." group:"run"`
	Resume   resumeCommand   `cmd:"" help:"Resume a paused run." group:"run"`
	Abort    abortCommand    `cmd:"" help:"Abort the current run." group:"run"`
	Approve  approveCommand  `cmd:"" help:"Approve a stage that waits for approval." group:"run"`
	Release  releaseCommand  `cmd:"" help:"Stop waiting for a host: free its slot by force." group:"run"`
	Retry    retryCommand    `cmd:"" help:"Try again what an earlier run left: hosts, and steps that failed." group:"run"`
	Rollback rollbackCommand `cmd:"" help:"Roll back a run: each host goes back to what it had before." group:"run"`
	Forget   forgetCommand   `cmd:"" help:"Delete a host that no longer exists." group:"run"`
	Move     moveCommand     `cmd:"" help:"Move a host into an environment." group:"run"`

	SkipWindow   skipWindowCommand   `cmd:"" name:"skip-window" help:"Skip the next window." group:"run"`
	UnskipWindow unskipWindowCommand `cmd:"" name:"unskip-window" help:"Let a skipped window open its run." group:"run"`

	Apply         applyCommand         `cmd:"" help:"Write what a file declares: configuration, rollout, calendars, environments, budgets, releases, webhooks, and who may do what." group:"declare"`
	Get           getCommand           `cmd:"" help:"List or print what is declared, in the form that apply reads." group:"declare"`
	Edit          editCommand          `cmd:"" help:"Edit what is declared in an editor." group:"declare"`
	Delete        deleteCommand        `cmd:"" help:"Delete a calendar, environment, budget, release, policy, user, approle or webhook, the rollout or the configuration." group:"declare"`
	Validate      validateCommand      `cmd:"" help:"Check a file without writing anything." group:"declare"`
	CreateRelease createReleaseCommand `cmd:"" name:"create-release" help:"Make a release of what a run has installed." group:"declare"`
	Withdraw      withdrawCommand      `cmd:"" help:"Withdraw a release, so that no run installs it any more." group:"declare"`
	Calendar      calendarCommand      `cmd:"" help:"Fetch a calendar from its URL now." group:"declare"`
	Webhook       webhookCommand       `cmd:"" help:"Declare who is notified, and see what could not be delivered." group:"declare"`

	Login    loginCommand    `cmd:"" help:"Log in as a user." group:"let-in"`
	Context  contextCommand  `cmd:"" help:"Name the sites that you work with, and switch between them." group:"let-in"`
	Password passwordCommand `cmd:"" help:"Change your password." group:"let-in"`

	ApproveHost approveHostCommand `cmd:"" name:"approve-host" help:"Let in a host that waits for approval." group:"let-in"`
	RefuseHost  refuseHostCommand  `cmd:"" name:"refuse-host" help:"Refuse a host that waits for approval." group:"let-in"`

	// The commands of a site, and credentials, which let in.
	Site siteCommands `embed:""`

	Unseal unsealCommand `cmd:"" help:"Give a sealed site the passphrase of its strongbox." group:"site"`
	Tenant tenantCommand `cmd:"" help:"Create and remove the tenants of a site." group:"site"`

	Worker     workerCommands       `cmd:"" help:"Run the worker that upgrades this host, or join a site." group:"host"`
	Busy       busyCommand          `cmd:"" help:"Keep this host from being upgraded for a while, or while a command runs." group:"host"`
	Check      strategyCheckCommand `cmd:"" name:"strategy-check" help:"Check upgrade scripts: run them as a worker would, kill them midway, and report what to fix." group:"host"`
	StepCheck  stepCheckCommand     `cmd:"" name:"step-check" help:"Check the scripts of a step: run them twice, kill them midway, undo the step, and report what to fix." group:"host"`
	Completion completionCommand    `cmd:"" help:"Print a script that completes the command line in bash, zsh or fish." group:"shell"`
	Man        manCommand           `cmd:"" help:"Write the man pages of the program and its commands." group:"shell"`

	// What the scripts of completion call.
	Complete completeCommand `cmd:"" name:"__complete" hidden:"" passthrough:"" help:"Complete a command line." group:"host"`

	// What the worker starts.
	Strategy strategyCommand `cmd:"" hidden:"" help:"Carry out one action of a strategy." group:"host"`
	Scoped   scopedCommand   `cmd:"" hidden:"" help:"Run a program in a scope of its own." group:"host"`
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
	person := &console{in: stdin, err: stderr}
	known := &sites{store: contexts.OfPerson(), run: tokenPrinter(ctx, person), warnings: stderr}
	parser, err := newParser(&c, program, onlyCalled(args), kong.Bind(dial), kong.Bind(known), kong.Resolvers(known),
		kong.Writers(stdout, stderr), kong.Exit(func(status int) { code = status }),
		kong.Bind(person), kong.Bind(exec.Streams{In: stdin, Out: stdout, Err: stderr}), kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(stdout, (*io.Writer)(nil)), kong.BindTo(stdin, (*io.Reader)(nil)),
	)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "osupgrade-agent:", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if code >= 0 {
		return code
	}
	if incomplete := withoutCommand(err); incomplete != nil {
		_ = incomplete.PrintUsage(false)
		return exitUsage
	}
	if wrong, ok := errors.AsType[contextError](err); ok {
		return exitCode(stderr, wrong.error)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "osupgrade-agent: %s\n", explainUse(err))
		return exitUsage
	}
	if err := emptyName(parsed); err != nil {
		return exitCode(stderr, err)
	}
	err = parsed.Run(newLog(stderr, c.LogLevel))
	if _, ends := errors.AsType[exitStatus](err); err != nil && !ends && ctx.Err() != nil {
		// The end by a signal needs no message, an error after it does.
		if !errors.Is(err, context.Canceled) {
			_, _ = fmt.Fprintln(stderr, "osupgrade-agent:", explain(err))
		}
		return exitInterrupted
	}
	if hint := known.expired(err); hint != "" {
		err = errors.New(explain(err) + hint)
	}
	return exitCode(stderr, err)
}

// newParser makes the parser of the command line.
func newParser(c *commands, program string, more ...kong.Option) (*kong.Kong, error) {
	files := &configFiles{}
	parser, err := kong.New(c, append([]kong.Option{
		kong.Name(programName), kong.Description(description()), kong.UsageOnError(),
		kong.Configuration(files.load),
		kong.Vars{"version": program, "strategies": strings.Join(strategyNames(), ", ")},
		kong.Bind(version(program), files, dialer(nil), &sites{}),
		kong.NamedMapper("path", kong.MapperFunc(pathMapper)), kong.PostBuild(addExamples), kong.PostBuild(groupCommands), groups, kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}), kong.ValueFormatter(flagHelp),
	}, more...)...)
	if err != nil {
		return nil, err
	}
	return parser, withoutEmptyPaths(parser)
}

// onlyCalled has the parser learn only the command that is called. Learning all of them took
// more than half of a start, and a worker starts a process for each action.
func onlyCalled(args []string) kong.Option {
	if len(args) == 0 {
		return kong.IgnoreFields()
	}
	fields := commandFields(reflect.TypeFor[commands]())
	_, found := fields[args[0]]
	version := len(args) == 1 && args[0] == "--version"
	if !found && !version || slices.Contains(listers, args[0]) {
		return kong.IgnoreFields()
	}
	delete(fields, args[0])
	return kong.IgnoreFields(`^commands\.(` + strings.Join(slices.Sorted(maps.Values(fields)), "|") + `)$`)
}

// listers are the commands that list the others.
var listers = []string{"man", "__complete"}

// commandFields returns the name of the field of each command of the program.
func commandFields(t reflect.Type) map[string]string {
	fields := map[string]string{}
	for field := range t.Fields() {
		if _, embedded := field.Tag.Lookup("embed"); embedded {
			maps.Copy(fields, commandFields(field.Type))
		} else if _, command := field.Tag.Lookup("cmd"); command {
			fields[cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))] = field.Name
		}
	}
	return fields
}

func exitCode(stderr io.Writer, err error) int {
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
