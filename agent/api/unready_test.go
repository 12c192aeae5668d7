package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// broken is a store and a controller that can do nothing at the moment.
type broken struct{ err error }

func (b broken) Config(context.Context, string) (v1.Kept[v1.OSUpgrade], store.Revision, error) {
	return v1.Kept[v1.OSUpgrade]{}, store.Revision{}, b.err
}

func (b broken) PutConfig(context.Context, string, v1.Kept[v1.OSUpgrade], store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) Rollout(context.Context, string) (v1.Kept[v1.Rollout], store.Revision, error) {
	return v1.Kept[v1.Rollout]{}, store.Revision{}, b.err
}

func (b broken) PutRollout(context.Context, string, v1.Kept[v1.Rollout], store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) DeleteRollout(context.Context, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) DeleteConfig(context.Context, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) Calendar(context.Context, string, string) (v1.Kept[v1.Calendar], store.Revision, error) {
	return v1.Kept[v1.Calendar]{}, store.Revision{}, b.err
}

func (b broken) Move(context.Context, string, string) (v1.HostEnvironment, error) {
	return v1.HostEnvironment{}, b.err
}

func (b broken) Frozen(context.Context, run.Change) error { return b.err }

func (b broken) Vacant(context.Context, string) error { return b.err }

func (b broken) Skippable(context.Context, string, time.Time) (opens, closes time.Time, err error) {
	return time.Time{}, time.Time{}, b.err
}

func (b broken) Skips(context.Context, string, string) (v1.Skips, store.Revision, error) {
	return v1.Skips{}, store.Revision{}, b.err
}

func (b broken) PutSkips(context.Context, string, string, v1.Skips, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) DeleteSkips(context.Context, string, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) Environment(context.Context, string, string) (v1.Kept[v1.Environment], store.Revision, error) {
	return v1.Kept[v1.Environment]{}, store.Revision{}, b.err
}

func (b broken) Environments(context.Context, string) ([]store.Named[v1.Environment], error) {
	return nil, b.err
}

func (b broken) PutEnvironment(context.Context, string, string, v1.Kept[v1.Environment], store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) RoomForEnvironment(context.Context, string) error { return b.err }

func (b broken) DeleteEnvironment(context.Context, string, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) Budget(context.Context, string, string) (v1.Kept[v1.Budget], store.Revision, error) {
	return v1.Kept[v1.Budget]{}, store.Revision{}, b.err
}

func (b broken) Budgets(context.Context, string) ([]store.Named[v1.Budget], error) {
	return nil, b.err
}

func (b broken) PutBudget(context.Context, string, string, v1.Kept[v1.Budget], store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) RoomForBudget(context.Context, string) error { return b.err }

func (b broken) DeleteBudget(context.Context, string, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) Release(context.Context, string, string) (v1.Kept[v1.Release], store.Revision, error) {
	return v1.Kept[v1.Release]{}, store.Revision{}, b.err
}

func (b broken) Releases(context.Context, string) ([]store.Named[v1.Release], error) {
	return nil, b.err
}

func (b broken) PutRelease(context.Context, string, string, v1.Kept[v1.Release], store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) RoomForRelease(context.Context, string) error { return b.err }

func (b broken) DeleteRelease(context.Context, string, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) Calendars(context.Context, string) ([]store.Named[v1.Calendar], error) {
	return nil, b.err
}

func (b broken) PutCalendar(context.Context, string, string, v1.Kept[v1.Calendar], store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) DeleteCalendar(context.Context, string, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b broken) Windows(context.Context, time.Time, time.Time, int) ([]v1.Window, error) {
	return nil, b.err
}

func (b broken) CalendarCopy(context.Context, string, string) (v1.CalendarCopy, store.Revision, error) {
	return v1.CalendarCopy{}, store.Revision{}, b.err
}

func (b broken) CalendarCopies(context.Context, string) ([]store.Named[v1.CalendarCopy], error) {
	return nil, b.err
}

func (b broken) RoomForCalendar(context.Context, string) error { return b.err }

func (b broken) AbortAll(context.Context, string, v1.Ask) ([]v1.Run, error) { return nil, b.err }

func (b broken) Ask(context.Context, string, run.Ask, v1.Ask) (v1.Run, error) {
	return v1.Run{}, b.err
}

func (b broken) State(context.Context) (v1.State, error) { return v1.State{}, b.err }

func (b broken) Hosts(context.Context, v1.HostFilter) ([]v1.Host, error) { return nil, b.err }
func (b broken) CountHosts(context.Context) (int, error)                 { return 0, b.err }

func (b broken) HostsWithInventories(context.Context, v1.HostFilter) ([]v1.Host, error) {
	return nil, b.err
}
func (b broken) Runs(context.Context, v1.RunFilter) ([]v1.Run, error) { return nil, b.err }
func (b broken) Find(context.Context, uint64) (v1.Run, error)         { return v1.Run{}, b.err }
func (b broken) Current(context.Context) (uint64, error)              { return 0, b.err }
func (b broken) Ready(context.Context) error                          { return b.err }
func (b broken) Seen(context.Context, uint64) error                   { return b.err }
func (b broken) Forget(context.Context, string, run.Deletion) error   { return b.err }

func (b broken) Host(context.Context, string) (v1.Host, error) { return v1.Host{}, b.err }

func (b broken) Offer(context.Context, string) (v1.HostPlan, error) {
	return v1.HostPlan{}, b.err
}

func (b broken) Refresh(context.Context, v1.Refresh) (v1.Refreshed, error) {
	return v1.Refreshed{}, b.err
}

func (b broken) Plan(context.Context, uint64, string) (v1.HostPlan, error) {
	return v1.HostPlan{}, b.err
}

func (b broken) Installed(context.Context, uint64) (v1.Installed, error) {
	return v1.Installed{}, b.err
}

func (b broken) Output(context.Context, uint64, string) ([]v1.ActionOutput, error) { return nil, b.err }

func (b broken) News(context.Context, uint64) ([]v1.News, uint64, uint64, error) {
	return nil, 0, 0, b.err
}

func (b broken) ReportsSince(context.Context, uint64) ([]v1.VersionsEvent, uint64, error) {
	return nil, 0, b.err
}

func (b broken) EnvironmentStatuses(context.Context) ([]v1.EnvironmentStatus, error) {
	return nil, b.err
}

func (b broken) EnvironmentStatus(context.Context, string) (v1.EnvironmentStatus, error) {
	return v1.EnvironmentStatus{}, b.err
}

func (b broken) WindowsOf(context.Context, string, time.Time, time.Time, int) ([]v1.Window, error) {
	return nil, b.err
}

func (b broken) AllWindows(context.Context, time.Time, time.Time, int) ([]v1.Window, error) {
	return nil, b.err
}

func (b broken) SnapshotOf(context.Context, string) (v1.Snapshot, error) { return v1.Snapshot{}, b.err }

func (b broken) Snapshot(context.Context) (v1.Snapshot, error) { return v1.Snapshot{}, b.err }

func (b broken) Watch(context.Context) (<-chan struct{}, func(), error) {
	return nil, func() {}, b.err
}

func (b broken) Health(context.Context, v1.AskHealth) (v1.HealthReport, error) {
	return v1.HealthReport{}, b.err
}

func (b broken) HealthOf(context.Context, int) (v1.HealthReport, error) {
	return v1.HealthReport{}, b.err
}

func (b broken) Preflight(context.Context, string, v1.Start) (v1.Preflight, error) {
	return v1.Preflight{}, b.err
}

func (b broken) Unmatched(context.Context, plan.Intent) ([]v1.IntentWarning, error) {
	return nil, b.err
}
func (b broken) Lock(context.Context, string, v1.FleetLock) (string, error) { return "", b.err }

func (b broken) Unlock(context.Context, string, v1.FleetLock) (string, error) { return "", b.err }

func (b broken) Start(context.Context, string, v1.Start) (v1.Run, error) { return v1.Run{}, b.err }

// TestUnready checks that every path answers 503 with Retry-After and the reason while
// the agent is not ready, and 400 to a malformed query.
func TestUnready(t *testing.T) {
	t.Parallel()
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	token, err := tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: append(access.Rights(), access.FleetLock)})
	if err != nil {
		t.Fatal(err)
	}
	b := broken{err: errors.Join(run.ErrNotReady, errors.New("the log is damaged"))}
	handler := New(Options{
		Site: "test", Tenants: Fixed{"acme": b}, Store: b, Tokens: tokens, Webhooks: brokenWebhooks(b),
		Healthy: func() error { return b.err }, Log: slog.New(slog.DiscardHandler),
	})
	bodies := map[string]string{"approve": `{"reason":"r","stage":"s"}`, "release": `{"reason":"r","host":"h01"}`, "resend": `{}`, "refresh": `{}`, "health": `{}`, "calendars": `{"name":"x","kind":"freeze"}`, "environment": `{"environment":""}`, "environments": `{"name":"x","match":{"roles":["edge"]}}`, "budgets": `{"name":"x","max-unavailable":"1"}`, "releases": `{"name":"x","packages":{}}`}
	bodies["pre-reboot"] = `{"client_params":{"id":"h01","group":"default"}}`
	bodies["steady-state"] = bodies["pre-reboot"]
	ask := func(method, target string) *httptest.ResponseRecorder {
		body := cmp.Or(bodies[path.Base(target)], `{"reason":"r"}`)
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set(fleetLockHeader, "true")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	fill := strings.NewReplacer("{tenant}", "acme", "{host}", "h01", "{id}", "1", "{name}", "x")
	for _, r := range routes() {
		if r.unserved || r.group == groupTenants || r.path == openAPIPath || r.path == "/metrics" || r.unseals {
			continue // They need no controller; metrics tell of one that is not ready.
		}
		for _, pattern := range r.paths() {
			target := fill.Replace(pattern)
			request, w := r.method+" "+target, ask(r.method, target)
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "the log is damaged") {
				t.Errorf("%s is answered %d: %s", request, w.Code, w.Body)
			}
			if w := ask(r.method, target+"?a=b;"); w.Code != http.StatusBadRequest {
				t.Errorf("%s with a broken query is answered %d: %s", request, w.Code, w.Body)
			}
		}
	}
}

// FuzzFields checks that no text makes the parser panic or go on forever.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{"a", "a,b", "a/b", "a/[b,c/d]", "a/[b", "/", "[]", strings.Repeat("a/[", 40)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		wanted, err := parseFields(text)
		if err != nil {
			return
		}
		if _, err := wanted.of(reflect.TypeFor[v1.State](), v1.State{}); err == nil && len(wanted) == 0 {
			t.Errorf("%q selects nothing", text)
		}
	})
}

// TestPrecondition checks RFC 9110 13.1.1 and 13.1.2 row by row.
func TestPrecondition(t *testing.T) {
	t.Parallel()
	const tag = `"1-2"`
	for name, c := range map[string]struct {
		method, header, value string
		exists                bool
		want                  int
	}{
		"no header":                   {"PUT", "X", "", true, 0},
		"match":                       {"PUT", "If-Match", tag, true, 0},
		"match in a list":             {"PUT", "If-Match", `"0", ` + tag, true, 0},
		"no match":                    {"PUT", "If-Match", `"0"`, true, 412},
		"match of what is not there":  {"PUT", "If-Match", tag, false, 412},
		"any":                         {"PUT", "If-Match", "*", true, 0},
		"any of what is not there":    {"PUT", "If-Match", "*", false, 412},
		"weak":                        {"PUT", "If-Match", "W/" + tag, true, 412},
		"empty":                       {"PUT", "If-Match", "", true, 412},
		"none, and there is":          {"PUT", "If-None-Match", "*", true, 412},
		"none, and there is not":      {"PUT", "If-None-Match", "*", false, 0},
		"not modified":                {"GET", "If-None-Match", tag, true, 304},
		"modified":                    {"GET", "If-None-Match", `"0"`, true, 0},
		"delete what has not changed": {"DELETE", "If-Match", tag, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			header.Set(c.header, c.value)
			if got := precondition(c.method, header, c.exists, tag); got != c.want {
				t.Errorf("%d, not %d", got, c.want)
			}
		})
	}
}

// brokenWebhooks are webhooks whose store is gone.
type brokenWebhooks struct{ err error }

func (b brokenWebhooks) Webhook(context.Context, string, string) (v1.Webhook, store.Revision, error) {
	return v1.Webhook{}, store.Revision{}, b.err
}

func (b brokenWebhooks) Webhooks(context.Context, string) ([]store.Named[v1.Webhook], error) {
	return nil, b.err
}

func (b brokenWebhooks) PutWebhook(context.Context, string, string, v1.Webhook, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b brokenWebhooks) DeleteWebhook(context.Context, string, string, store.Revision) (store.Revision, error) {
	return store.Revision{}, b.err
}

func (b brokenWebhooks) RoomForWebhook(context.Context, string) error { return b.err }

func (b brokenWebhooks) States(context.Context, string) ([]v1.WebhookState, error) {
	return nil, b.err
}

func (b brokenWebhooks) State(context.Context, string, string) (v1.WebhookState, error) {
	return v1.WebhookState{}, b.err
}

func (b brokenWebhooks) Test(context.Context, string, string, string, string) (v1.WebhookTest, error) {
	return v1.WebhookTest{}, b.err
}

func (b brokenWebhooks) Resend(context.Context, string, string, []string) (v1.WebhookResent, error) {
	return v1.WebhookResent{}, b.err
}
