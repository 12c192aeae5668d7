package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// hung is a controller that does not answer before it is let go, whatever its context says.
type hung struct {
	broken

	letGo chan struct{}
}

func (h hung) Ready(context.Context) error {
	<-h.letGo
	return nil
}

// TestReadyNames checks that readyz is answered in time whatever hangs, and that it names
// each part that is not ready, hung ones and others.
func TestReadyNames(t *testing.T) {
	t.Parallel()
	const slow = " does not answer within 3s"
	damaged := broken{err: errors.Join(run.ErrNotReady, errors.New("the log is damaged"))}
	for name, row := range map[string]struct {
		tenants                 Fixed
		storeHangs, logHangs    bool
		ready, healthy          []string
		readyTakes, healthTakes time.Duration
	}{
		"all is well": {tenants: Fixed{"a": broken{}, "b": broken{}}},
		"a controller": {
			tenants: Fixed{"a": broken{}, "b": hung{}, "c": damaged, "d": hung{}},
			ready:   []string{"the controller of tenant b" + slow, "the controller of tenant c is not ready: ", "the log is damaged", "the controller of tenant d" + slow}, readyTakes: readyLimit,
		},
		"the store": {storeHangs: true, ready: []string{"the store" + slow}, healthy: []string{"the store" + slow}, readyTakes: readyLimit, healthTakes: readyLimit},
		"the log":   {logHangs: true, ready: []string{"the log" + slow}, readyTakes: readyLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				letGo := make(chan struct{})
				defer close(letGo)
				for tenant, c := range row.tenants {
					if _, hangs := c.(hung); hangs {
						row.tenants[tenant] = hung{letGo: letGo}
					}
				}
				o := Options{Site: "test", Tenants: row.tenants, Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler)}
				if row.storeHangs {
					o.Healthy = func() error { <-letGo; return nil }
				}
				if row.logHangs {
					o.Reaches = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				}
				handler := New(o)
				look(t, handler, "/readyz", row.ready, row.readyTakes)
				look(t, handler, "/healthz", row.healthy, row.healthTakes)
			})
		})
	}
}

// look asks whether the site is well. Reasons are why it is not.
func look(t *testing.T, handler http.Handler, path string, reasons []string, takes time.Duration) {
	t.Helper()
	begun, w := time.Now(), httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	want, body := http.StatusOK, w.Body.String()
	if len(reasons) > 0 {
		want = http.StatusServiceUnavailable
	}
	if took := time.Since(begun); w.Code != want || took != takes || (want != http.StatusOK) != (w.Header().Get("Retry-After") != "") {
		t.Errorf("%s is answered %d after %s with Retry-After %q: %s", path, w.Code, took, w.Header().Get("Retry-After"), body)
	}
	for _, reason := range reasons {
		_, rest, found := strings.Cut(body, reason)
		if !found {
			t.Errorf("%s says %s; want %s, in this order", path, w.Body, reason)
		}
		body = rest
	}
}
