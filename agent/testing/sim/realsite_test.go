package sim_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
)

var errDown = errors.New("the site is down")

// realSite is a site as package site puts it together, but for the REST
// server: whoever waits for a socket holds up virtual time.
type realSite struct {
	dir   string
	hosts *natsd.Hosts
	log   *slog.Logger
	// mu guards server, which hosts look for while the site is started anew; nil
	// while it is down.
	mu         sync.Mutex
	server     *natsd.Server
	nats       *nats.Conn
	receiver   *nats.Conn
	store      *store.Store
	controller *controller.Controller
	stop       context.CancelFunc
	parts      sync.WaitGroup
}

// open starts the server and then what stands on it.
func (s *realSite) open(ctx context.Context) error {
	server, err := natsd.Start(ctx, natsd.Options{Dir: filepath.Join(s.dir, "store"), Hosts: s.hosts, Holder: "a test", Log: s.log})
	if err != nil {
		return err
	}
	s.replace(server)
	if s.nats, err = server.Connect(); err != nil {
		return err
	}
	if s.store, err = store.Open(ctx, s.nats); err != nil {
		return err
	}
	return s.control(ctx)
}

// control starts the controller and the gate.
func (s *realSite) control(ctx context.Context) error {
	var err error
	if s.receiver, err = s.server.Receive(realTenant); err != nil {
		return err
	}
	log, err := jetstream.OpenApart(ctx, s.nats, s.receiver, realTenant)
	if err != nil {
		return err
	}
	watchdog, err := guard.OpenFile(filepath.Join(s.dir, "guard.json"))
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	s.stop = stop
	s.controller = controller.New(controller.Options{
		Tenant: realTenant, Zone: time.UTC, Log: log, HostEvents: log, Guard: watchdog.Guard(realTenant), Store: s.store, Logger: s.log,
	})
	gate := jetstream.NewGate(log, s.store)
	for name, part := range map[string]func(context.Context) error{"controller": s.controller.Run, "gate": gate.Serve} {
		s.parts.Go(func() {
			if err := part(running); running.Err() == nil {
				s.log.Error("a part of the site has stopped", "part", name, "error", err)
			}
		})
	}
	return nil
}

// close stops what runs, the server last.
func (s *realSite) close() error {
	server := s.current()
	if server == nil {
		return nil
	}
	if s.stop != nil {
		s.stop()
	}
	s.parts.Wait()
	if s.receiver != nil {
		s.receiver.Close()
	}
	if s.nats != nil {
		s.nats.Close()
	}
	s.replace(nil)
	return server.Close()
}

func (s *realSite) replace(by *natsd.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = by
}

func (s *realSite) current() *natsd.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// InProcessConn connects a host to whichever server runs.
func (s *realSite) InProcessConn() (net.Conn, error) {
	if server := s.current(); server != nil {
		return server.InProcessConn()
	}
	return nil, errDown
}
