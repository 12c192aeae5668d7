package sim_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
)

// realAction is how long one action of a simulated host takes.
const realAction = 2 * time.Minute

// realHost is a simulated host with a real worker and its own credentials.
type realHost struct {
	name, dir string
	site      *realSite
	machine   *simulated.Host
	key       nkeys.KeyPair
	public    string
	log       *slog.Logger
}

func newRealHost(site *realSite, name string) (*realHost, error) {
	h := &realHost{name: name, dir: filepath.Join(site.dir, name), site: site, log: site.log}
	seed, err := site.hosts.Add(natsd.Identity{Tenant: realTenant, Host: name})
	if err != nil {
		return nil, err
	}
	if h.key, err = nkeys.FromSeed(seed); err != nil {
		return nil, err
	}
	if h.public, err = h.key.PublicKey(); err != nil {
		return nil, err
	}
	h.machine, err = simulated.Open(h.dir, simulated.Options{ActionTime: realAction})
	return h, err
}

// live keeps the host up until ctx ends: after each reboot it starts the next
// worker.
func (h *realHost) live(ctx context.Context) {
	for ctx.Err() == nil {
		if err := h.up(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("the worker has stopped", "host", h.name, "error", err)
			return
		}
		if err := h.machine.Boot(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("the host does not boot", "host", h.name, "error", err)
			return
		}
	}
}

// up runs one worker from boot to shutdown.
func (h *realHost) up(ctx context.Context) error {
	hostLog, err := jetstream.Dial(realTenant, h.name, h.connect)
	if err != nil {
		return err
	}
	defer hostLog.Close()
	w, err := worker.Open(ctx, worker.Options{
		Tenant: realTenant, Host: h.name, Application: realApplication, Version: "1.0.0", Dir: filepath.Join(h.dir, "worker"),
		HostLog: hostLog, Strategy: h.machine, Machine: h.machine,
		Limits: worker.Limits{Action: time.Hour, Reboot: 15 * time.Minute}, Log: h.log,
	})
	if err != nil {
		return err
	}
	return errors.Join(h.watch(ctx, w), w.Close())
}

// connect connects as package agent does: also to a site that is not up yet,
// and to one that was started anew.
func (h *realHost) connect(more ...nats.Option) (*nats.Conn, error) {
	return nats.Connect("", append([]nats.Option{
		nats.Name(h.name), nats.InProcessServer(h.site), nats.Nkey(h.public, h.key.Sign),
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
	}, more...)...)
}

// watch runs the worker until it fails, ctx ends or the host goes down.
func (h *realHost) watch(ctx context.Context, w *worker.Worker) error {
	running, down := context.WithCancel(ctx)
	defer down()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	select {
	case err := <-ended:
		return err
	case event := <-h.machine.Events():
		if event != simulated.RebootRequested {
			return fmt.Errorf("the host has %s", event)
		}
		down()
		return <-ended
	}
}
