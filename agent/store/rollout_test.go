package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// TestRolloutRevisions checks that a write counts only on the revision that it
// names, and never on one of another object.
func TestRolloutRevisions(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	conflict := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v; want a conflict", what, err)
		}
	}
	if _, _, err := s.Rollout(ctx, "acme"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before the first write: %v", err)
	}
	config, err := s.PutConfig(ctx, "acme", v1.OSUpgrade{}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.PutRollout(ctx, "acme", v1.Rollout{Splay: "1h", Stages: []v1.Stage{}}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	if first == config {
		t.Errorf("a configuration and a rollout both have revision %s", first)
	}
	_, err = s.PutRollout(ctx, "acme", v1.Rollout{}, store.Revision{})
	conflict("a second first write", err)
	_, err = s.PutRollout(ctx, "acme", v1.Rollout{}, config)
	conflict("a write on the revision of the configuration", err)
	second, err := s.PutRollout(ctx, "acme", v1.Rollout{Splay: "2h"}, first)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.DeleteRollout(ctx, "acme", first)
	conflict("a deletion of an older revision", err)
	_, err = s.DeleteRollout(ctx, "acme", config)
	conflict("a deletion of the configuration's revision", err)
	if got, revision, err := s.Rollout(ctx, "acme"); err != nil || revision != second || got.Splay != "2h" || got.Stages != nil {
		t.Errorf("got %+v, %s, %v; want revision %s", got, revision, err, second)
	}
	if _, _, err := s.Rollout(ctx, "other"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	deletion, err := s.DeleteRollout(ctx, "acme", second)
	if err != nil || deletion.Number != second.Number+1 {
		t.Fatalf("deleted %s as %s, %v", second, deletion, err)
	}
	if _, _, err := s.Rollout(ctx, "acme"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after the deletion: %v", err)
	}
	if _, _, err := s.Config(ctx, "acme"); err != nil {
		t.Errorf("the configuration is gone with the rollout: %v", err)
	}
	third, err := s.PutRollout(ctx, "acme", v1.Rollout{}, store.Revision{})
	if err != nil || third.Number <= second.Number+1 {
		t.Errorf("written again as %s, %v; the deletion of %s has a revision too", third, err, second)
	}
}

// TestWatchRollout checks what a watch sees: what is there, each change, the
// deletion, and nothing of other tenants.
func TestWatchRollout(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan store.Seen[v1.Rollout])
	ended := make(chan error, 1)
	go func() {
		defer close(seen)
		ended <- s.WatchRollout(ctx, "acme", func(r store.Seen[v1.Rollout]) { seen <- r })
	}()
	if r := <-seen; r.Value != nil || r.Number != 0 || r.Err != nil {
		t.Errorf("before the first write it sees %+v", r)
	}
	if _, err := s.PutRollout(t.Context(), "other", v1.Rollout{}, store.Revision{}); err != nil {
		t.Fatal(err)
	}
	revision, err := s.PutRollout(t.Context(), "acme", v1.Rollout{Splay: "1h"}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	if r := <-seen; r.Value == nil || r.Value.Splay != "1h" || r.Number != revision.Number || r.Err != nil {
		t.Errorf("after %s it sees %+v", revision, r)
	}
	if _, err := s.DeleteRollout(t.Context(), "acme", revision); err != nil {
		t.Fatal(err)
	}
	if r := <-seen; r.Value != nil || r.Number != revision.Number+1 || r.Err != nil {
		t.Errorf("after the deletion of %s it sees %+v", revision, r)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

// TestHostKeepsRoleAndLabels checks that what a rollout chooses hosts by
// outlives the agent.
func TestHostKeepsRoleAndLabels(t *testing.T) {
	t.Parallel()
	s := open(t)
	if err := s.PutHost(t.Context(), "h01", store.Host{Tenant: "acme", Name: "h01", Application: "app", Role: "db", Labels: map[string]string{"ring": "0"}}); err != nil {
		t.Fatal(err)
	}
	hosts, err := s.Hosts(t.Context(), "acme")
	if err != nil || len(hosts) != 1 || hosts[0].Role != "db" || hosts[0].Labels["ring"] != "0" {
		t.Errorf("got %+v, %v", hosts, err)
	}
}
