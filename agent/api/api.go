// Package api is the REST server of design.md 7: Avassa's object under its own
// paths, and ours beside it.
//
// It decides who may call what, and turns requests into calls of the store and
// the controllers. It holds no state of its own.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Controller is what the API needs of a tenant's controller. Errors are those
// of package run.
type Controller interface {
	State(ctx context.Context) (v1.State, error)
	Hosts(ctx context.Context) ([]v1.Host, error)
	// Runs are those that the filter chooses, newest first.
	Runs(ctx context.Context, filter v1.RunFilter) ([]v1.Run, error)
	Find(ctx context.Context, id uint64) (v1.Run, error)
	Newest(ctx context.Context) (view v1.Run, seq uint64, found bool, err error)
	Current(ctx context.Context) (id uint64, err error)
	Watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error)
	Start(ctx context.Context, by string, request v1.Start) (v1.Run, error)
	// Ask does what somebody asks of the run under way, and returns that run.
	Ask(ctx context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error)
	Ready(ctx context.Context) error
	// Windows are the openings that overlap the time between two instants, in
	// their order and at most so many.
	Windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error)
	// Seen waits until the revision of that number of the configuration, of the
	// rollout or of a calendar is known.
	Seen(ctx context.Context, number uint64) error
	Forget(ctx context.Context, by, host string) error
}

// Store is what the API needs of the store.
type Store interface {
	Config(ctx context.Context, tenant string) (v1.OSUpgrade, store.Revision, error)
	PutConfig(ctx context.Context, tenant string, config v1.OSUpgrade, base store.Revision) (store.Revision, error)
	DeleteConfig(ctx context.Context, tenant string, base store.Revision) (store.Revision, error)
	Rollout(ctx context.Context, tenant string) (v1.Rollout, store.Revision, error)
	PutRollout(ctx context.Context, tenant string, rollout v1.Rollout, base store.Revision) (store.Revision, error)
	DeleteRollout(ctx context.Context, tenant string, base store.Revision) (store.Revision, error)
	Calendar(ctx context.Context, tenant, name string) (v1.Calendar, store.Revision, error)
	Calendars(ctx context.Context, tenant string) ([]store.NamedCalendar, error)
	// RoomForCalendar returns store.ErrFull when there may be no more of them.
	RoomForCalendar(ctx context.Context, tenant string) error
	PutCalendar(ctx context.Context, tenant, name string, calendar v1.Calendar, base store.Revision) (store.Revision, error)
	DeleteCalendar(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
}

// Options say what the API serves.
type Options struct {
	// Site is the name of this site, which requests may name.
	Site string
	// Tenants maps the name of each tenant to its controller.
	Tenants map[string]Controller
	Store   Store
	Tokens  *Tokens
	// Healthy returns why the agent as a whole cannot work, or nil.
	Healthy func() error
	// Reaches returns why the agent does not reach its own log, or nil; it is
	// nil where the log cannot be out of reach.
	Reaches func(ctx context.Context) error
	Log     *slog.Logger
}

// server answers requests.
type server struct {
	Options
	// turns are those of each tenant to look ahead for windows.
	turns map[string]chan struct{}
}

// New returns the API's handler.
func New(o Options) http.Handler {
	s := &server{Options: o, turns: map[string]chan struct{}{}}
	for tenant := range o.Tenants {
		s.turns[tenant] = make(chan struct{}, looksPerTenant)
	}
	mux := http.NewServeMux()
	for _, tenant := range []string{"/tenants/{tenant}", ""} {
		config, state := "/v1/config"+tenant+"/os-upgrade", "/v1/state"+tenant+"/os-upgrade"
		register(s, mux, config, only(s.configs()))
		register(s, mux, config+"/rollout", only(s.rollouts()))
		s.handle(mux, "GET "+config+"/calendars", Read, s.getCalendars)
		register(s, mux, config+"/calendars/{name}", s.calendar)
		s.handle(mux, "GET "+state, Read, s.getState)
		s.handle(mux, "GET "+state+"/hosts", Read, s.getHosts)
		s.handle(mux, "GET "+state+"/hosts/{host}", Read, s.getHost)
		s.handle(mux, "DELETE "+state+"/hosts/{host}", Write, s.deleteHost)
		s.handle(mux, "GET "+state+"/runs", Read, s.getRuns)
		s.handle(mux, "GET "+state+"/runs/{id}", Read, s.getRun)
		s.handle(mux, "GET "+state+"/windows", Read, s.getWindows)
		s.handle(mux, "GET "+state+"/windows.ics", Read, s.getFeed)
		s.handle(mux, "GET "+state+"/events", Read, s.getEvents)
		s.handle(mux, "POST "+state+"/start", Start, s.postStart)
		for _, ask := range []run.Ask{run.Pause, run.Resume, run.Abort, run.Approve, run.Release} {
			s.handle(mux, "POST "+state+"/"+string(ask), Start, s.postAsk(ask))
		}
	}
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	return s.around(&unmatched{mux: mux, log: s.Log})
}

// call is one request on its way through a handler.
type call struct {
	*http.Request
	w      http.ResponseWriter
	tenant string
	// by is the name of the token that the request bears.
	by         string
	controller Controller
	// query holds the parameters after the path.
	query url.Values
}

// handle registers a handler for those whose token allows it.
func (s *server) handle(mux *http.ServeMux, pattern string, needs Right, f func(*call) error) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w}
		if err := s.admit(c, needs); err != nil {
			s.fail(w, r, err)
			return
		}
		if err := c.readQuery(); err != nil {
			s.fail(w, r, err)
			return
		}
		if err := f(c); err != nil {
			s.fail(w, r, err)
		}
	})
}

// admit finds out who calls, about which tenant, and whether that is allowed.
func (s *server) admit(c *call, needs Right) error {
	token, err := s.Tokens.Bearer(c.Request)
	if err != nil {
		return err
	}
	c.by = token.Name
	if c.tenant = c.PathValue("tenant"); c.tenant == "" {
		c.tenant = token.Tenant
	}
	if err := token.allows(c.tenant, needs); err != nil {
		return err
	}
	if !names.Valid(c.tenant) {
		return badRequest("tenant", c.tenant, "is not the name of a tenant; "+names.Form)
	}
	controller, known := s.Tenants[c.tenant]
	if !known {
		return problem(http.StatusNotFound, "tenant", c.tenant, "tenant %q does not exist", c.tenant)
	}
	c.controller = controller
	return nil
}
