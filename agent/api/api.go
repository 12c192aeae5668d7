// Package api is the REST server: Avassa's object at its own paths, by Avassa's
// conventions, and our further objects.
//
// It decides who may do what, and translates requests to calls of the store and
// the controllers. It keeps no state and never drives a host.
package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Controller is the part of a tenant's controller that the API uses. Its errors
// are those of package run.
type Controller interface {
	State(ctx context.Context) (v1.State, error)
	// EnvironmentStatuses returns what each environment is doing, by name.
	EnvironmentStatuses(ctx context.Context) ([]v1.EnvironmentStatus, error)
	// EnvironmentStatus returns what an environment is doing.
	EnvironmentStatus(ctx context.Context, name string) (v1.EnvironmentStatus, error)
	// Hosts returns those of the hosts that the filter chooses, by name.
	Hosts(ctx context.Context, filter v1.HostFilter) ([]v1.Host, error)
	// CountHosts returns how many hosts Hosts would return without a filter.
	CountHosts(ctx context.Context) (int, error)
	// HostsWithInventories is Hosts with what the machine of each consists of.
	HostsWithInventories(ctx context.Context, filter v1.HostFilter) ([]v1.Host, error)
	Host(ctx context.Context, name string) (v1.Host, error)
	Output(ctx context.Context, run uint64, host string) ([]v1.ActionOutput, error)
	Plan(ctx context.Context, run uint64, host string) (v1.HostPlan, error)
	// Installed returns what a run has installed, as a release.
	Installed(ctx context.Context, run uint64) (v1.Installed, error)
	// Offer returns what an upgrade of a host would change if it began now.
	Offer(ctx context.Context, host string) (v1.HostPlan, error)
	// Refresh has hosts look for that anew.
	Refresh(ctx context.Context, request v1.Refresh) (v1.Refreshed, error)
	ReportsSince(ctx context.Context, since uint64) (events []v1.VersionsEvent, position uint64, err error)
	// News returns the news after a number, oldest first, and the numbers of the oldest and
	// the newest that are kept; 0 when there are none.
	News(ctx context.Context, after uint64) (all []v1.News, oldest, newest uint64, err error)
	// Runs returns the runs that match the filter, newest first.
	Runs(ctx context.Context, filter v1.RunFilter) ([]v1.Run, error)
	Find(ctx context.Context, id uint64) (v1.Run, error)
	// Snapshot returns what is shown now.
	Snapshot(ctx context.Context) (v1.Snapshot, error)
	// SnapshotOf is Snapshot of one environment; the error is *run.NoEnvironment if it does not exist.
	SnapshotOf(ctx context.Context, environment string) (v1.Snapshot, error)
	Current(ctx context.Context) (id uint64, err error)
	Watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error)
	Start(ctx context.Context, by string, request v1.Start) (v1.Run, error)
	// Lock locks a host that reboots by itself, Unlock unlocks it. Both return its name.
	Lock(ctx context.Context, by string, who v1.FleetLock) (host string, err error)
	Unlock(ctx context.Context, by string, who v1.FleetLock) (host string, err error)
	// Health asks what a run would ask before it prepares any host, and returns what has come out
	// within a while; HealthOf returns how a request came out. It is run.ErrNoHealth for one that is
	// not known.
	Health(ctx context.Context, request v1.AskHealth) (v1.HealthReport, error)
	HealthOf(ctx context.Context, id int) (v1.HealthReport, error)
	// Preflight returns what a start would do, and starts nothing.
	Preflight(ctx context.Context, by string, request v1.Start) (v1.Preflight, error)
	// Unmatched returns what of an intent matches no known host.
	Unmatched(ctx context.Context, i plan.Intent) ([]v1.IntentWarning, error)
	// Ask executes an operator's request on the run under way and returns the run.
	Ask(ctx context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error)
	AbortAll(ctx context.Context, by string, body v1.Ask) ([]v1.Run, error)
	Ready(ctx context.Context) error
	// Windows returns the openings that overlap the time between two instants, by
	// start and at most count.
	Windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error)
	// WindowsOf is Windows of an environment; the error is *run.NoEnvironment if it does not exist.
	WindowsOf(ctx context.Context, environment string, from, to time.Time, count int) ([]v1.Window, error)
	// AllWindows is Windows together with those of each environment that has windows of its own.
	AllWindows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error)
	// Skippable returns the bounds of the window of an environment that opens at a time, or of the next
	// one if the time is zero.
	Skippable(ctx context.Context, environment string, start time.Time) (opens, closes time.Time, err error)
	// Seen waits until the revision of that number of the configuration, of the
	// rollout or of a calendar is known.
	Seen(ctx context.Context, number uint64) error
	Forget(ctx context.Context, host string, d run.Deletion) error
	// Move assigns a host to an environment; an empty name undoes that, so the matches decide again.
	Move(ctx context.Context, host, environment string) (v1.HostEnvironment, error)
	// Vacant returns why an environment cannot be deleted without force: it has hosts, or a run is
	// under way.
	Vacant(ctx context.Context, environment string) error
	// Frozen returns why a part of the configuration cannot be changed now: a run freezes changes. The
	// error is then *run.Refused.
	Frozen(ctx context.Context, change run.Change) error
}

// Store is the part of the store that the API uses.
type Store interface {
	Config(ctx context.Context, tenant string) (v1.Kept[v1.OSUpgrade], store.Revision, error)
	PutConfig(ctx context.Context, tenant string, config v1.Kept[v1.OSUpgrade], base store.Revision) (store.Revision, error)
	DeleteConfig(ctx context.Context, tenant string, base store.Revision) (store.Revision, error)
	Rollout(ctx context.Context, tenant string) (v1.Kept[v1.Rollout], store.Revision, error)
	PutRollout(ctx context.Context, tenant string, rollout v1.Kept[v1.Rollout], base store.Revision) (store.Revision, error)
	DeleteRollout(ctx context.Context, tenant string, base store.Revision) (store.Revision, error)
	Calendar(ctx context.Context, tenant, name string) (v1.Kept[v1.Calendar], store.Revision, error)
	Calendars(ctx context.Context, tenant string) ([]store.Named[v1.Calendar], error)
	// RoomForCalendar returns store.ErrFull if the tenant may have no further
	// calendar.
	RoomForCalendar(ctx context.Context, tenant string) error
	PutCalendar(ctx context.Context, tenant, name string, calendar v1.Kept[v1.Calendar], base store.Revision) (store.Revision, error)
	DeleteCalendar(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
	Environment(ctx context.Context, tenant, name string) (v1.Kept[v1.Environment], store.Revision, error)
	Environments(ctx context.Context, tenant string) ([]store.Named[v1.Environment], error)
	// RoomForEnvironment returns store.ErrFull if the tenant may have no further environment.
	RoomForEnvironment(ctx context.Context, tenant string) error
	PutEnvironment(ctx context.Context, tenant, name string, e v1.Kept[v1.Environment], base store.Revision) (store.Revision, error)
	DeleteEnvironment(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
	Skips(ctx context.Context, tenant, environment string) (v1.Skips, store.Revision, error)
	PutSkips(ctx context.Context, tenant, environment string, skips v1.Skips, base store.Revision) (store.Revision, error)
	DeleteSkips(ctx context.Context, tenant, environment string, base store.Revision) (store.Revision, error)
	Budget(ctx context.Context, tenant, name string) (v1.Kept[v1.Budget], store.Revision, error)
	Budgets(ctx context.Context, tenant string) ([]store.Named[v1.Budget], error)
	// RoomForBudget returns store.ErrFull if the tenant may have no further disruption budget.
	RoomForBudget(ctx context.Context, tenant string) error
	PutBudget(ctx context.Context, tenant, name string, budget v1.Kept[v1.Budget], base store.Revision) (store.Revision, error)
	DeleteBudget(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
	Release(ctx context.Context, tenant, name string) (v1.Kept[v1.Release], store.Revision, error)
	Releases(ctx context.Context, tenant string) ([]store.Named[v1.Release], error)
	// RoomForRelease returns store.ErrFull if the tenant may have no further release.
	RoomForRelease(ctx context.Context, tenant string) error
	PutRelease(ctx context.Context, tenant, name string, r v1.Kept[v1.Release], base store.Revision) (store.Revision, error)
	DeleteRelease(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
	// CalendarCopy returns what was fetched of a calendar with a URL.
	CalendarCopy(ctx context.Context, tenant, name string) (v1.CalendarCopy, store.Revision, error)
	CalendarCopies(ctx context.Context, tenant string) ([]store.Named[v1.CalendarCopy], error)
}

// Calendars fetches the calendars with a URL.
type Calendars interface {
	// Refresh fetches a calendar now, as of a revision of it or a later one, and returns once
	// what came of it is kept. It returns store.ErrNotFound if the calendar has no URL any more.
	Refresh(ctx context.Context, tenant, name string, revision uint64) error
}

// Options configure the API.
type Options struct {
	// Site is the name of this site.
	Site string
	// Tenants are those that the site serves.
	Tenants Tenants
	// TenantObjects make and remove tenants; nil means that nobody does.
	TenantObjects TenantObjects
	Store         Store
	// Calendars fetches calendars; nil means that nobody does.
	Calendars Calendars
	Tokens    *principal.Tokens
	// Logins log users and approles in.
	Logins *principal.Logins
	// ClientCertificates decide which client certificates are good; nil means that none is
	// asked for.
	ClientCertificates ClientCertificates
	// Policies are the rules that tenants have made; nil means that there are none.
	Policies *principal.Policies
	// Healthy returns why the agent cannot work, or nil.
	Healthy func() error
	// Reaches returns why the agent cannot reach its own log, or nil. It is nil if
	// the log is in this process.
	Reaches func(ctx context.Context) error
	// Certificates returns the certificates that the site presents. It is nil if it
	// presents none.
	Certificates func(now time.Time) []v1.Certificate
	// Joining lets hosts join; nil means that none may.
	Joining *Joining
	// HostKeys are the keys of the hosts that may connect; nil means that there are none.
	HostKeys HostKeys
	// Webhooks send news; nil means that there are none.
	Webhooks Webhooks
	// Audit keeps a record of each request that changes something; nil means that none is
	// kept.
	Audit *audit.Logs
	// Strongbox seals the secrets of the site; nil means that it has none.
	Strongbox Strongbox
	// Maintenance is what commands on the site's machine may ask for.
	Maintenance Maintenance
	// Metrics are what the site measures; nil means that it measures nothing.
	Metrics Metrics
	// Traces takes the spans of requests; nil means that nobody wants them.
	Traces trace.Exporter
	Log    *slog.Logger
}

// Maintenance is what commands on the site's machine may ask for. Without a function, nobody
// may.
type Maintenance struct {
	// ResetStrongbox gives up what the strongbox seals, and returns the files that it has put
	// aside.
	ResetStrongbox func() (aside []string, err error)
	// Certify makes a certificate for names of the site.
	Certify func(names []string) (v1.SiteCertificate, error)
}

// server answers requests.
type server struct {
	Options
	// requests are those that need a right.
	requests []access.Request
	// joins, logins and unseals limit the attempts to join, to log in and to unseal the site.
	joins, logins, unseals attempts
	// unsealing is held while a passphrase is tried: only the one that opened the site is
	// recorded as such.
	unsealing sync.Mutex
	// environmentLock is held while an environment is checked and written, or a release deleted:
	// together environments must make no cycle, and what they name must be there.
	environmentLock sync.Mutex
	// refusals limits the audit records of refused requests.
	refusals audit.Limit
	// windowSlots limits the concurrent computations of windows of each tenant.
	windowSlots windowSlots
	// times are those of its event streams.
	times streamTimes
	// crossOrigin finds requests that a page of another site has a browser send,
	// certificateLog tells of client certificates that are not good, a few of many.
	crossOrigin    *http.CrossOriginProtection
	certificateLog *slog.Logger
}

// New returns the API's handler.
func New(o Options) http.Handler {
	table := routes()
	s := &server{Options: o, requests: requestsOf(table), times: usualTimes, crossOrigin: http.NewCrossOriginProtection(), certificateLog: throttle.Log(o.Log, 1, time.Minute)}
	s.joins.what, s.logins.what, s.unseals.what = "attempts to join have failed", "logins have failed", "wrong passphrases have come"
	if o.Logins != nil {
		known := o.Logins.Sources()
		s.joins.known, s.logins.known, s.unseals.known = known, known, known
	}
	return s.around(s.traced(s.measured(s.mux(table))))
}

// call is a request in a handler.
type call struct {
	*http.Request
	w      http.ResponseWriter
	route  route
	tenant string
	// who sends the request; nobody on a public route.
	who        access.Principal
	controller Controller
	// query are the query parameters.
	query url.Values
	// audit is what the handler knows of the audit record of the request.
	audit v1.AuditRecord
	// whole is the body once all of it was read; nil before.
	whole []byte
}

// body returns the body of the request, once it is there whole. What cannot be read was not
// sent as HTTP wants it.
func (c *call) body() ([]byte, error) {
	if c.whole != nil {
		return c.whole, nil
	}
	body, err := io.ReadAll(c.Body)
	if err == nil {
		c.whole = body
		return body, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, err
	}
	return nil, problem(http.StatusBadRequest, "", "", "the body cannot be read: %v", err)
}

// around wraps every request: it limits the body and logs a line, which never
// contains the token.
func (s *server) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		r.Body = http.MaxBytesReader(w, r.Body, v1.MaxBody)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		id := requestID(r)
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r)
		if !s.Log.Enabled(r.Context(), slog.LevelDebug) {
			return // Building the line costs more than this check.
		}
		s.Log.Debug("request", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "id", id, "took", time.Since(begun))
	})
}
