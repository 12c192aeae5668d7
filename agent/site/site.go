// Package site puts together what runs at one site: the embedded NATS server,
// the store, a controller for each tenant and the REST API.
//
// It decides in which order they start and stop, and refuses to listen beyond
// loopback without TLS. It decides nothing else.
package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller/fetch"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/certificate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/metrics"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/otlp"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/webhook"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Options say what the site is and where it listens.
type Options struct {
	// Name is the site's name.
	Name string
	// Zone is the time zone of windows that are site-local.
	Zone *time.Location
	// Dir holds everything that the site keeps.
	Dir string
	// Tenants are the names of those served here.
	Tenants []string
	// Checks is the folder of the scripts that checks and hooks which run at
	// the site may name; empty when none may.
	Checks string
	// NewsScripts is the folder of the scripts that are run with each of the news; empty for
	// none.
	NewsScripts string
	// Local says to which addresses of this machine and its link the site connects for tenants.
	Local dial.Rule
	// API and NATS are where the REST API and the log listen. NATS may be the
	// zero Endpoint: then only this process reaches the log.
	API, NATS Endpoint
	// CAFile holds the certificates that hosts which join are told to trust, PEM; empty
	// means those of the authority that the site made itself, if it did.
	CAFile string
	// ClientCAFile holds the certificates of the authorities whose client certificates log
	// users in to the REST API, PEM; empty means that none is asked for. ClientCRLFile holds
	// what these have revoked; empty means nothing.
	ClientCAFile, ClientCRLFile string
	// Traces says where the spans of requests and runs are sent; nil means nowhere.
	Traces *otlp.Config
	// Credentials is the folder of systemd's credentials, Passphrase that of the strongbox, if
	// it was given at the start; empty means neither.
	Credentials string
	Passphrase  []byte
	// Holder says in words who runs the site, Version is that of the program.
	Holder, Version string
	Log             *slog.Logger
	// At is called before and after each action with the role and the label of the
	// action (tests crash there); nil means nobody.
	At func(label string)
}

// Site is a running site.
type Site struct {
	Identity

	server *natsd.Server
	guards *guard.File
	store  *store.Store
	// tenants are those that it serves; nil before they are started.
	tenants  *tenants
	listener net.Listener
	// http serves the REST API, local the same on the site's own socket.
	http, local *http.Server
	nats        *nats.Conn
	// warners are told of refused connections.
	warners  warners
	reach    reach
	metrics  *metrics.Site
	audit    *audit.Logs
	webhooks *webhook.Senders
	// calendars fetches the calendars with a URL.
	calendars *fetch.Fetcher
	// traces sends spans; nil when nobody wants them.
	traces *otlp.Exporter
	box    *strongbox.Box
	// certificates are those of the listeners that have one.
	certificates []listenerCertificate
	// clients decide which client certificates are good; nil when none is asked for.
	clients *certificate.Authorities
	stop    context.CancelFunc
	parts   sync.WaitGroup
	failed  chan error
	log     *slog.Logger
}

// Open starts a site and returns once it answers requests. It runs until
// Close.
func Open(ctx context.Context, o Options) (*Site, error) {
	s := &Site{log: o.Log, failed: make(chan error, 1)}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Site) open(ctx context.Context, o Options) (err error) {
	o = o.ownCertificates()
	apiPair, natsPair, err := s.loadCertificates(o)
	if err != nil {
		return err
	}
	if s.Identity, err = openIdentity(o.Dir, o.at("join")); err != nil {
		return err
	}
	s.audit = OpenAudit(o.Dir)
	s.server, err = natsd.Start(ctx, natsd.Options{
		Dir: storeFolder(o.Dir), Listen: o.NATS.Listen, TLS: tlsConfig(natsPair), Hosts: s.Hosts, Refused: s.warners.warn, Rotated: s.rotated(o.Tenants),
		Waits:  func(public string) bool { return s.Joins.Waits(public, time.Now()) },
		Holder: o.Holder, Log: o.Log,
	})
	if err != nil {
		return err
	}
	// After the lock of the folder: a second site on the folder reports the folder,
	// not the port.
	if s.listener, err = o.API.listen(ctx, apiTLS(apiPair, s.clients)); err != nil {
		return err
	}
	s.checkAudit()
	if s.nats, err = s.server.Connect(); err != nil {
		return fmt.Errorf("cannot connect to the embedded NATS server: %w", err)
	}
	if s.guards, err = guard.OpenFile(guardFile(o.Dir)); err != nil {
		return err
	}
	kept, err := store.Open(ctx, s.nats)
	if err != nil {
		return err
	}
	s.store, kept.Written = kept, s.server.Mark
	s.box = o.strongbox()
	if err := s.measure(ctx, o); err != nil {
		return err
	}
	scripts, err := webhook.Scripts(o.NewsScripts, func(name, why string) { o.Log.Warn("a news script is not used", "name", name, "reason", why) })
	if err != nil {
		return fmt.Errorf("news scripts: %w", err)
	}
	s.webhooks = webhook.New(webhook.Options{Store: kept, Box: s.box, Local: o.Local, Scripts: scripts, Version: o.Version, Log: o.Log, At: o.at("webhook")})
	s.calendars = fetch.New(fetch.Options{Store: kept, Local: o.Local, Version: o.Version, Log: o.Log, At: o.at("calendars")})
	running, stop := context.WithCancel(context.Background())
	s.stop = stop
	objects, err := openTenants(o.Dir)
	if err != nil {
		return err
	}
	s.tenants = &tenants{site: s, o: o, objects: objects, running: running, served: map[string]*servedTenant{}, failing: map[string]bool{}, begun: make(chan struct{})}
	if err := s.tenants.begin(ctx); err != nil {
		return err
	}
	s.keepCertificates(running, apiPair, natsPair)
	if s.traces != nil {
		s.parts.Go(func() { s.traces.Run(running) })
	}
	s.parts.Go(func() { s.Tokens.Run(running, o.Log) })
	s.parts.Go(func() { s.Logins.Run(running, o.Log) })
	s.parts.Go(func() { s.keepOpening(running) })
	s.parts.Go(func() { s.renewOwn(running, o.Dir) })
	s.parts.Go(func() { s.Joins.Watch(running, func() { s.tellWaiting(running) }) })
	joining, err := s.joining(o)
	if err != nil {
		return err
	}
	handler := api.New(api.Options{
		Site: o.Name, Tenants: s.tenants, TenantObjects: s.tenants, Store: kept, Calendars: s.calendars, Tokens: s.Tokens, Logins: s.Logins, ClientCertificates: s.verifier(), Policies: s.Policies, Healthy: s.server.Healthy, Reaches: s.reaches, Certificates: s.expiries, Joining: joining, HostKeys: hostKeys{s.Hosts},
		Strongbox: s.box, Maintenance: s.maintenance(o.Dir), Webhooks: s.webhooks, Audit: s.audit, Metrics: s.metrics, Traces: s.exporter(), Log: o.Log,
	})
	if err := s.serveLocal(running, o.Dir, handler); err != nil {
		o.Log.Warn("the site runs, but commands on this machine do not reach it", "error", err)
	}
	s.serve(running, handler)
	return nil
}

// measure makes the metrics, and who sends traces if somebody wants them.
func (s *Site) measure(ctx context.Context, o Options) (err error) {
	measured := metrics.Options{Version: o.Version, Certificates: s.expiries, Healthy: s.server.Healthy, Sealed: s.box.Sealed, Audit: s.audit.Figures}
	if o.Traces != nil {
		if s.traces, err = otlp.New(ctx, otlp.Options{Config: *o.Traces, Site: o.Name, Version: o.Version, Log: o.Log}); err != nil {
			return err
		}
		measured.Traces = s.traces.Figures
	}
	s.metrics = metrics.New(measured)
	return nil
}

// openWithin is how long the log of a tenant may take to be opened. The disk may be busy
// with those of a thousand other tenants.
const openWithin = time.Minute

// control starts the controller of one tenant and what goes with it. They run until running
// ends; one.failed receives why one of them has stopped by itself.
func (s *Site) control(ctx, running context.Context, o Options, tenant string, measured *metrics.Tenant, one *tenantParts) (err error) {
	if one.hosts, err = s.server.Receive(tenant); err != nil {
		return fmt.Errorf("cannot connect to the hosts of tenant %s: %w", tenant, err)
	}
	opening, opened := context.WithTimeout(ctx, openWithin)
	defer opened()
	log, err := jetstream.OpenApart(opening, s.nats, one.hosts, tenant)
	if err != nil {
		return err
	}
	written, filled, keeper := o.labelled(log, s.store)
	gate := jetstream.NewGate(log, keeper)
	gate.Secrets = s.box
	again := throttle.Log(o.Log, 1, time.Minute)
	gate.Warn = func(err error) { again.Warn("the gate follows the log anew", "tenant", tenant, "error", err) }
	checks := &check.Runner{Scripts: o.Checks, Outputs: filepath.Join(o.Dir, "outputs", tenant), Tenant: tenant, Local: &o.Local, Log: o.Log}
	if err := checks.Clean(); err != nil {
		return err
	}
	c := controller.New(controller.Options{
		Tenant: tenant, Zone: o.Zone, Log: measured.Log(written), Observer: measured, Traces: s.exporter(), HostEvents: log, Guard: s.guards.Guard(tenant), Store: filled, News: s.store, Logger: o.Log, At: o.at("controller"),
		Site: checks, Ask: checks.Ask, SiteScripts: checks.Installed, Secrets: s.box,
		Labels: func(host string) map[string]string {
			return s.Hosts.Labels(natsd.Identity{Tenant: tenant, Host: host})
		},
		Holder: func(ctx context.Context, host string) (*v1.HostLease, error) { return holder(ctx, gate, host) },
	})
	checks.Hosts = c.Present
	measured.Webhooks(func(ctx context.Context) ([]v1.WebhookState, error) { return s.webhooks.States(ctx, tenant) })
	measured.Serve(c.Figures)
	one.running.Go(func() { s.webhooks.Run(running, tenant, c, measured.Sent) })
	fetching := s.calendars.Add(tenant)
	one.running.Go(func() { fetching(running) })
	one.Controller = c
	gate.Refused, gate.Stored = c.Warn, c.Stored
	s.warners.add(tenant, c.Warn)
	one.run(running, c.Run)
	one.run(running, gate.Serve)
	return nil
}

// exporter is who takes spans; nil when nobody wants them.
func (s *Site) exporter() trace.Exporter {
	if s.traces == nil {
		return nil
	}
	return s.traces
}

// warners bring a refused connection to the controller of the tenant that it names.
// The server accepts connections before there are controllers.
type warners struct {
	mu       sync.Mutex
	byTenant map[string]func(host string, kind message.WarningKind, why string)
}

func (w *warners) add(tenant string, warn func(string, message.WarningKind, string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byTenant == nil {
		w.byTenant = map[string]func(string, message.WarningKind, string){}
	}
	w.byTenant[tenant] = warn
}

func (w *warners) remove(tenant string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byTenant, tenant)
}

func (w *warners) warn(tenant, host string, kind message.WarningKind, why string) {
	w.mu.Lock()
	warn := w.byTenant[tenant]
	w.mu.Unlock()
	if warn != nil {
		warn(host, kind, why)
	}
}

// holder returns who holds the lease of a host; nil when nobody ever did.
func holder(ctx context.Context, g *jetstream.Gate, host string) (*v1.HostLease, error) {
	l, err := g.Lease(ctx, host)
	if err != nil || l.Worker == "" {
		return nil, err
	}
	return &v1.HostLease{Worker: l.Worker, Incarnation: l.Incarnation, Epoch: l.Epoch, Since: view.Time(l.Since), Vacant: l.Vacant}, nil
}

// Timeouts of the REST server. A request is small and its response is ready at
// once, so a client that takes longer is slow or hostile.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	// maxHeader is how long the header of a request may be, in bytes: a token and a query
	// are short.
	maxHeader = 64 << 10
	// maxStreams is how many requests a connection of HTTP/2 may have at once, maxUnread how
	// much of the body of each is received before somebody reads it. A connection that is
	// silent for pingAfter is asked whether it is still there.
	maxStreams  = 100
	maxUnread   = 256 << 10
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// shutdownTimeout is how long requests under way may take when the site stops.
	shutdownTimeout = 2 * time.Second
)

func (s *Site) serve(running context.Context, handler http.Handler) {
	callers := newCallers(maxCallers)
	s.http = &http.Server{
		Handler: callers.answering(handler), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return running },
		ConnState: callers.follow, ConnContext: connect,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: maxUnread, SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.parts.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("the REST server has stopped: %w", err))
		}
	})
}

func (s *Site) fail(err error) {
	if err == nil {
		return
	}
	select {
	case s.failed <- err:
	default:
	}
}

// Failed delivers the error of a part that has stopped by itself; the site must
// then be closed.
func (s *Site) Failed() <-chan error { return s.failed }

// Address is where the REST API listens, host:port.
func (s *Site) Address() string { return s.listener.Addr().String() }

// NATSAddress is where the log listens, host:port; empty when nowhere.
func (s *Site) NATSAddress() string { return s.server.Address() }

// Server is the embedded server, for hosts in this process.
func (s *Site) Server() *natsd.Server { return s.server }

// Controller is the controller of one of the site's tenants.
func (s *Site) Controller(tenant string) api.Controller {
	c, _ := s.tenants.Controller(tenant)
	return c
}

// Store is what the site stores beside the log.
func (s *Site) Store() *store.Store { return s.store }

// Close stops everything, the API first and the store last.
func (s *Site) Close() error {
	var errs []error
	if s.stop != nil {
		s.stop()
	}
	if s.http != nil {
		errs = append(errs, shutdown(s.http))
	} else if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	if s.local != nil {
		errs = append(errs, shutdown(s.local))
	}
	if s.tenants != nil {
		s.tenants.shut()
	}
	s.parts.Wait()
	if s.nats != nil {
		s.nats.Close()
	}
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	if s.audit != nil {
		errs = append(errs, s.audit.Close())
	}
	return errors.Join(errs...)
}

// shutdown lets the requests in progress end, for at most shutdownTimeout: whoever sent one
// that creates a token has to get the token.
func shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		return server.Close()
	}
	return nil
}
