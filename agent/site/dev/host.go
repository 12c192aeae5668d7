package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/filewatch"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/busy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/labels"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// Limits of a simulated host: an action that takes longer than this hangs.
const (
	actionLimit = time.Hour
	rebootLimit = 15 * time.Minute
)

// host is a simulated host with its power switch: it starts the worker, and
// stops it when the host goes down.
type host struct {
	tenant  string
	name    string
	dir     string
	version string
	machine *simulated.Host
	key     nkeys.KeyPair
	server  *natsd.Server
	log     *slog.Logger
	labels  map[string]string
	// labelFiles are its files of further labels, as those of a real host; nil when there are too many
	// hosts.
	labelFiles worker.LabelFiles
	// watchFiles tells the worker when somebody edits the packages of the host; nil
	// when there are too many hosts.
	watchFiles func(context.Context, []string, func()) error
	// busy are its busy leases, as those of a real host; nil when there are too many hosts.
	busy worker.Busy
}

// mostWatched is the number of hosts up to which their files are watched: each of the three
// watches takes one of the 128 that the kernel gives a user.
const mostWatched = 30

// openHost opens the folder DIR/hosts/NAME, with the host's own credentials.
func (d *Dev) openHost(_ context.Context, o Options, name string) (*host, error) {
	dir := filepath.Join(o.Dir, "hosts", name)
	machine, err := simulated.Open(dir, simulated.Options{ActionTime: o.ActionTime})
	if err != nil {
		return nil, err
	}
	key, err := ownKey(d.Hosts, filepath.Join(dir, "host.nkey"), natsd.Identity{Tenant: o.Tenant, Host: name})
	if err != nil {
		return nil, err
	}
	h := &host{tenant: o.Tenant, name: name, dir: dir, version: o.Version, machine: machine, key: key, server: d.Server(), log: o.Log, labels: labelsOf(name, o.Labels[name])}
	if o.Hosts <= mostWatched {
		h.watchFiles = filewatch.Watch
		h.labelFiles = &labels.Folder{Dir: filepath.Join(dir, "labels.d"), Given: h.labels, Log: o.Log}
		h.busy = &busy.Folder{Dir: filepath.Join(dir, "busy"), Limit: busy.DefaultLimit, Log: o.Log}
	}
	return h, nil
}

// ownKey returns the key of a host, which its first start makes.
func ownKey(hosts *natsd.Hosts, path string, id natsd.Identity) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if seed, err = hosts.Replace(id); err == nil {
			err = durable.WriteFile(path, seed, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get the key of host %s: %w", id.Host, err)
	}
	return nkeys.FromSeed(seed)
}

// live keeps the host up until ctx ends or the host is powered off: when a reboot or a crash
// stops the worker, live starts the next one. A host that was down or off when this program
// ended boots now.
func (h *host) live(ctx context.Context) error {
	down, err := h.machine.Down()
	if err == nil && down {
		err = h.machine.Boot(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("host %s: %w", h.name, err)
	}
	for ctx.Err() == nil {
		event, err := h.up(ctx)
		if err != nil {
			return fmt.Errorf("host %s: %w", h.name, err)
		}
		if event == simulated.PoweredOff {
			return nil
		}
		if event != simulated.RebootRequested {
			continue
		}
		if err := h.machine.Boot(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("host %s: %w", h.name, err)
		}
	}
	return nil
}

// up runs one worker from boot to shutdown and returns what ended it.
func (h *host) up(ctx context.Context) (simulated.Event, error) {
	hostLog, err := jetstream.Dial(h.tenant, h.name, func(options ...nats.Option) (*nats.Conn, error) {
		return h.server.ConnectHost(h.name, h.key, options...)
	})
	if err != nil {
		return 0, err
	}
	defer hostLog.Close()
	checks := &check.Runner{Scripts: filepath.Join(h.dir, "checks"), Outputs: filepath.Join(h.dir, "outputs"), Tenant: h.tenant, Log: h.log}
	w, err := worker.Open(ctx, worker.Options{
		Tenant: h.tenant, Host: h.name, Application: Application, Version: h.version, Dir: filepath.Join(h.dir, "worker"),
		HostLog: hostLog, Strategy: h.machine, Machine: h.machine,
		Limits: worker.Limits{Action: actionLimit, Reboot: rebootLimit}, Log: h.log, Watch: h.watchFiles,
		Role: "simulated", Labels: h.labels, LabelFiles: h.labelFiles,
		Checks: checks, Sources: []worker.Source{{Kind: report.Inventory, Reader: hardware{}}}, Busy: h.busy,
		SelfCheck: func(ctx context.Context) message.SelfReport {
			self := message.NewSelfReport(checks.Installed(), h.machine.Detect(ctx))
			self.Strategy = "simulated"
			return self
		},
	})
	if err != nil {
		return 0, err
	}
	event, err := h.watch(ctx, w)
	return event, errors.Join(err, w.Close())
}

// labelsOf returns the labels of a simulated host: those that it was given, and ring, by which a
// rollout may choose it. The first host is in ring 0.
func labelsOf(name string, given map[string]string) map[string]string {
	all := map[string]string{"ring": "1"}
	if name == "h01" {
		all["ring"] = "0"
	}
	maps.Copy(all, given)
	return all
}

// watch runs the worker until it fails, ctx ends or the host goes down.
func (h *host) watch(ctx context.Context, w *worker.Worker) (simulated.Event, error) {
	running, down := context.WithCancel(ctx)
	defer down()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	select {
	case err := <-ended:
		return 0, err
	case event := <-h.machine.Events():
		down()
		return event, <-ended
	}
}
