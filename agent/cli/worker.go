package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/filewatch"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/busy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/hardware"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/labels"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/procs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// workerCommand runs the worker of this host. Each of its flags is also a key
// of the config file.
type workerCommand struct {
	Config      kong.ConfigFlag `help:"YAML file with the flags below as keys. Environment variables override the file, and flags override both." type:"path" placeholder:"FILE"`
	PrintConfig bool            `help:"Print the effective values and exit."`

	Tenant           string   `help:"Tenant that this host belongs to." required:"" env:"OSUPGRADE_TENANT"`
	Host             string   `help:"Name of this host (default: the machine's host name)." env:"OSUPGRADE_HOST"`
	Application      string   `help:"Worker application that this host reports: one of worker-applications in the tenant's os-upgrade configuration." required:"" env:"OSUPGRADE_APPLICATION"`
	State            string   `help:"Folder for the journal; it must survive reboots." default:"/var/lib/osupgrade-worker" type:"path" env:"OSUPGRADE_STATE"`
	NATSURL          string   `help:"Where to connect to the site." name:"nats-url" default:"nats://127.0.0.1:4222" env:"OSUPGRADE_NATS_URL"`
	NATSCAFile       string   `help:"Certificates to trust for --nats-url, PEM (default: the system's)." name:"nats-ca-file" type:"path" env:"OSUPGRADE_NATS_CA_FILE" placeholder:"FILE"`
	KeyFile          string   `help:"This host's key, made by osupgrade-agent credentials host." required:"" type:"path" env:"OSUPGRADE_KEY_FILE" placeholder:"FILE"`
	Strategy         string   `help:"How this host is upgraded: ${strategies}, or auto. exec runs the scripts of --scripts. auto takes exec if scripts are given, and otherwise looks at what this host has." default:"auto" env:"OSUPGRADE_STRATEGY" placeholder:"NAME"`
	Scripts          string   `help:"Folder of the scripts of strategy exec, such as versions, prepare, upgrade and resume." type:"path" env:"OSUPGRADE_SCRIPTS" placeholder:"DIR"`
	RebootCommand    string   `help:"Command that reboots this machine, run by sh -c (default: ask systemd-logind or, without it, run systemctl reboot). Its output goes to reboot.log in the folder of --state. If the worker is killed while the command runs, it may run it once more in the same boot." env:"OSUPGRADE_REBOOT_COMMAND" placeholder:"COMMAND"`
	Inhibitors       string   `help:"When a program inhibits the reboot (systemd-inhibit --list): wait for it, up to --reboot-limit, or override it. A --reboot-command decides for itself." default:"wait" enum:"wait,override" env:"OSUPGRADE_INHIBITORS"`
	BootIDFile       string   `help:"File with the boot id." name:"boot-id-file" default:"/proc/sys/kernel/random/boot_id" type:"path" env:"OSUPGRADE_BOOT_ID_FILE"`
	ActionLimit      length   `help:"Longest time that a script may take, such as 1h or 1d; verify may take at most 10m, versions at most 1m." default:"1h" env:"OSUPGRADE_ACTION_LIMIT"`
	VersionsInterval length   `help:"How often to read the versions even if nothing indicates a change, such as 10m." default:"10m" env:"OSUPGRADE_VERSIONS_INTERVAL"`
	WatchVersions    []string `help:"File or folder of the package database, such as /var/lib/dpkg/status: when it changes, the versions are read again (repeatable). Reading the versions must not change it." type:"path" env:"OSUPGRADE_WATCH_VERSIONS" placeholder:"PATH"`
	Role             string   `help:"Role of this host, by which a rollout can select it." env:"OSUPGRADE_ROLE"`
	Label            []string `help:"Label of this host, by which a rollout can select it (repeatable)." env:"OSUPGRADE_LABEL" placeholder:"KEY=VALUE"`
	LabelsDir        string   `help:"Folder of files with further labels, a line KEY=VALUE each: programs on this host change them at any time (default: labels.d next to --config)." type:"path" env:"OSUPGRADE_LABELS_DIR" placeholder:"DIR"`
	Checks           string   `help:"Folder of the scripts that checks and hooks of a rollout may run on this host (default: none)." type:"path" env:"OSUPGRADE_CHECKS" placeholder:"DIR"`
	BusyLimit        length   `help:"Ignore a busy lease this long after the worker first saw it, whatever the lease says, such as 4h." default:"4h" env:"OSUPGRADE_BUSY_LIMIT"`
	RebootLimit      length   `help:"Longest time from the reboot command to the reboot, such as 15m." default:"15m" env:"OSUPGRADE_REBOOT_LIMIT"`

	busyFolder
	Options strategyOptions `embed:""`

	labels     map[string]string
	supervised *supervision
	// strategyWhy says how the strategy was detected; empty if it was given.
	strategyWhy string
}

// shortestVersionsInterval is the shortest --versions-interval: each reading runs a
// script.
const shortestVersionsInterval = 10 * time.Second

// graceLimit is how much longer the worker's own limit of an action is than that of
// the script, so that the script ends first, in order.
const graceLimit = time.Minute

// Run implements the command.
func (c *workerCommand) Run(ctx context.Context, parsed *kong.Context, files *configFiles, out io.Writer, log *slog.Logger, program version) error {
	if c.PrintConfig {
		return printConfig(out, parsed, files)
	}
	if err := c.ownName(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return misused(err)
	}
	if err := checkScripts("checks", c.Checks); err != nil {
		return err
	}
	defer hangups(func() {
		log.Info("SIGHUP is ignored: restart the worker to change its configuration or key; the file of nats-ca-file is read at each connection")
	})()
	var err error
	if c.supervised, err = newSupervision(log, c.KeyFile); err != nil {
		return err
	}
	hostLog, err := c.dial(log)
	if err != nil {
		return err
	}
	defer hostLog.Close()
	w, err := c.open(ctx, hostLog, out, log, program)
	if err != nil {
		return err
	}
	err = w.Run(ctx)
	if by := procs.Stopper(); ctx.Err() != nil && by != "" {
		log.Info("stop requested", "by", by)
	}
	if errors.Is(err, worker.ErrReplaced) {
		log.Info("a file of this worker was replaced, and it has no work in hand: ending, so that systemd starts it anew", "file", c.supervised.files.Replaced())
		err = nil
	}
	return errors.Join(err, c.supervised.service.Stopping(), w.Close())
}

// sayReady says that the host is ready, once the site has answered this worker,
// or that another one works for it. The worker does not wait for that with
// work that it has begun.
func (c *workerCommand) sayReady(out io.Writer, held bool) {
	text := fmt.Sprintf("Host %s of tenant %s is ready.", c.Host, c.Tenant)
	if !held {
		text = fmt.Sprintf("Host %s is standing by: another worker holds its lease.", c.Host)
	}
	c.supervised.tell(c.supervised.service.Status(text))
	_, _ = fmt.Fprintln(out, text)
}

// ownName sets the name of the host if it is not given.
func (c *workerCommand) ownName() (err error) {
	if c.Host != "" {
		return nil
	}
	if c.Host, err = os.Hostname(); err != nil {
		return fmt.Errorf("host: cannot read the machine's name: %w", err)
	}
	return nil
}

// check validates the values.
func (c *workerCommand) check() (err error) {
	if c.labels, err = parseLabels(c.Label); err != nil {
		return err
	}
	switch {
	case !names.ValidHost(c.Host):
		return fmt.Errorf("host: %q is not a host name; use letters, digits, \"-\", \"_\" and \".\"", c.Host)
	case c.Role != "" && !names.ValidLabel(c.Role):
		return fmt.Errorf("role: %.200q is invalid; use %s", c.Role, names.LabelForm)
	case c.ActionLimit <= 0:
		return fmt.Errorf("action-limit: %s is invalid; use a time above 0s, such as 1h", c.ActionLimit)
	case c.RebootLimit <= 0:
		return fmt.Errorf("reboot-limit: %s is invalid; use a time above 0s, such as 15m", c.RebootLimit)
	case c.BusyLimit <= 0:
		return fmt.Errorf("busy-limit: %s is invalid; use a time above 0s, such as 4h", c.BusyLimit)
	case c.VersionsInterval < length(shortestVersionsInterval):
		return fmt.Errorf("versions-interval: %s is invalid; use %s or more, such as 10m", c.VersionsInterval, shortestVersionsInterval)
	}
	if err := c.checkStrategy(); err != nil {
		return err
	}
	return errors.Join(checkName("tenant", c.Tenant, "a tenant"), checkName("application", c.Application, "an application"))
}

func (c *workerCommand) open(ctx context.Context, hostLog *jetstream.HostLog, out io.Writer, log *slog.Logger, program version) (*worker.Worker, error) {
	if c.strategyWhy != "" {
		log.Info("strategy "+c.Strategy+" upgrades this host", "because", c.strategyWhy)
	}
	system, err := c.openStrategy()
	if err != nil {
		return nil, err
	}
	checks := &check.Runner{Scripts: c.Checks, State: c.State, Outputs: filepath.Join(c.State, "outputs"), Tenant: c.Tenant, Log: log}
	if err := checks.Clean(); err != nil {
		return nil, err
	}
	return worker.Open(ctx, worker.Options{
		Tenant: c.Tenant, Host: c.Host, Application: c.Application, Version: string(program), Dir: c.State,
		HostLog: hostLog, Strategy: system, Machine: c.computer(log),
		Limits: c.limits(), Log: log,
		VersionsInterval: time.Duration(c.VersionsInterval), Watch: filewatch.Watch,
		Role: c.Role, Labels: c.labels, LabelFiles: c.labelFiles(log), Checks: checks,
		SelfCheck: func(ctx context.Context) message.SelfReport {
			self := message.NewSelfReport(checks.Installed(), system.Detect(ctx))
			self.ActionLimitSeconds = int(time.Duration(c.ActionLimit) / time.Second)
			self.Strategy = c.Strategy
			return self
		},
		System: func() string { return osinfo.System("/") },
		Leased: func(held bool) { c.sayReady(out, held) }, Supervisor: c.supervised.worker(ctx), Sources: []worker.Source{{Kind: report.Inventory, Reader: hardware.Machine{Root: "/"}}}, Busy: &busy.Folder{Dir: c.BusyDir, Limit: time.Duration(c.BusyLimit), Log: log}, At: crashPoint(c.Host),
	})
}

// labelFiles are the files of labels; nil if nothing says where they are.
func (c *workerCommand) labelFiles(log *slog.Logger) worker.LabelFiles {
	dir := c.LabelsDir
	if dir == "" && c.Config != "" {
		dir = filepath.Join(filepath.Dir(string(c.Config)), "labels.d")
	}
	if dir == "" {
		return nil
	}
	return &labels.Folder{Dir: dir, Given: c.labels, Log: log}
}

// limits are the worker's own limits of a whole action: a script may wait for an
// earlier script as long as it may then run.
func (c *workerCommand) limits() worker.Limits {
	return worker.Limits{Action: 2*time.Duration(c.ActionLimit) + graceLimit, Reboot: time.Duration(c.RebootLimit)}
}

func (c *workerCommand) computer(log *slog.Logger) computer {
	return computer{bootIDFile: c.BootIDFile, rebootCommand: c.RebootCommand, rebootLog: filepath.Join(c.State, "reboot.log"), override: c.Inhibitors == "override", log: log}
}
