package store_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/storetest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func open(t *testing.T) *store.Store {
	t.Helper()
	s, _ := openWith(t)
	return s
}

// openWith also returns the connection to the server.
func openWith(t *testing.T) (*store.Store, *nats.Conn) {
	t.Helper()
	dir := t.TempDir()
	server, err := natsd.Start(t.Context(), natsd.Options{Dir: filepath.Join(dir, "store"), Hosts: natsd.NewHosts(&credentialtest.Memory{}), Holder: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	s, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	return s, nc
}

// TestContract checks the real store by the contract of all stores.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Contract(t, func(t *testing.T) storetest.Store { return open(t) })
}

// TestDeleteHost checks that a host is forgotten with its versions, that its
// neighbours of the same name elsewhere are not, and that it can come back.
func TestDeleteHost(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	put := func(tenant, name string) {
		t.Helper()
		if err := s.PutHost(ctx, name, store.Host{Tenant: tenant, Name: name, Application: "app"}); err != nil {
			t.Fatal(err)
		}
		if err := s.PutReport(ctx, tenant, name, report.Versions.Of([]byte(`{"kernel":"6.1"}`))); err != nil {
			t.Fatal(err)
		}
	}
	there := func(tenant, name string) bool {
		t.Helper()
		hosts, err := s.Hosts(ctx, tenant)
		if err != nil {
			t.Fatal(err)
		}
		reported, err := s.Report(ctx, tenant, name, versions)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		known := false
		for _, h := range hosts {
			known = known || h.Name == name
		}
		if known != (reported.Body != nil) {
			t.Errorf("%s of %s is known: %v, and has versions %s", name, tenant, known, reported.Body)
		}
		return known
	}
	put("acme", "h01")
	put("acme", "h02")
	put("other", "h01")
	for range 2 { // The second time it is gone already.
		if err := s.DeleteHost(ctx, "acme", "h01"); err != nil {
			t.Fatal(err)
		}
		if there("acme", "h01") || !there("acme", "h02") || !there("other", "h01") {
			t.Error("another host is gone than h01 of acme")
		}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	err := s.WatchReports(watching, "acme", report.Versions, func(r store.Reported) {
		if r.Key == "h01" && r.Body != nil {
			t.Error("the versions of a host that is gone are seen")
		}
		if r.Key == "" {
			stop()
		}
	})
	if watching.Err() == nil {
		t.Fatalf("the watch ended with %v", err)
	}
	put("acme", "h01")
	if !there("acme", "h01") {
		t.Error("h01 did not come back")
	}
}

// TestWithoutHosts checks that last runs lose the hosts that were deleted, and nothing else, and
// that the list they were taken from stays as it is.
func TestWithoutHosts(t *testing.T) {
	t.Parallel()
	runs := []store.LastRun{{Run: v1.HostRun{ID: 7}, Hosts: []string{"h01", "h02", "h03"}}, {Run: v1.HostRun{ID: 8}, Hosts: []string{"h04"}}}
	left := store.WithoutHosts(runs, []string{"h04", "h02", "h02", "h99"})
	if len(left) != 1 || left[0].Run.ID != 7 || !slices.Equal(left[0].Hosts, []string{"h01", "h03"}) {
		t.Errorf("left is %+v", left)
	}
	if !slices.Equal(runs[0].Hosts, []string{"h01", "h02", "h03"}) || len(runs) != 2 {
		t.Errorf("the list is now %+v", runs)
	}
}
