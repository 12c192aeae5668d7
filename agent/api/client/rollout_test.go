package client

import (
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// careful and bold are two rollouts.
var (
	careful = v1.Rollout{Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "1h30m"}, {Name: "rest"}}}
	bold    = v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}, OnFailure: "continue"}
)

func TestRolloutRoundTrip(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.SetConfig("acme", weekly) // The two objects have nothing to do with each other.
	c, ctx := connect(t, api), t.Context()

	if _, _, err := c.Rollout(ctx, "acme"); !HasStatus(err, http.StatusNotFound) || !Missing(err) {
		t.Fatalf("got %v, want a 404 about the rollout", err)
	}
	if _, err := Rollouts.Validate(ctx, c, "acme", Stored[v1.Rollout]{}, careful, Precondition{}); err != nil {
		t.Fatal(err)
	}
	first, err := c.PutRollout(ctx, "acme", careful, Precondition{IfNoneMatch: "*"})
	if err != nil {
		t.Fatal(err)
	}
	got, etag, err := c.Rollout(ctx, "acme")
	if err != nil || etag != first || !reflect.DeepEqual(got, careful) {
		t.Fatalf("got %+v, %s, %v; want %+v, %s", got, etag, err, careful, first)
	}
	if _, err := c.PutRollout(ctx, "acme", bold, Precondition{IfMatch: `"0"`}); !HasStatus(err, http.StatusPreconditionFailed) {
		t.Errorf("got %v, want 412", err)
	}
	second, err := c.PutRollout(ctx, "acme", bold, Precondition{IfMatch: first})
	if err != nil || second == first {
		t.Fatalf("ETag %s after %s, %v", second, first, err)
	}
	if err := c.DeleteRollout(ctx, "acme", Precondition{IfMatch: first}); !HasStatus(err, http.StatusPreconditionFailed) {
		t.Errorf("got %v, want 412", err)
	}
	for range 2 { // The second time it is gone already.
		if err := c.DeleteRollout(ctx, "acme", Precondition{IfMatch: second}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, ok := api.Rollout("acme"); ok {
		t.Error("the rollout is still there")
	}
	if _, _, ok := api.Config("acme"); !ok {
		t.Error("the configuration is gone")
	}
}

// TestRolloutIsWrittenThoughTheAnswerIsLost checks that a write is not taken
// for somebody else's when it was ours.
func TestRolloutIsWrittenThoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c, ctx := connect(t, api), t.Context()
	api.RenderRollout(func(r v1.Rollout) v1.Rollout { return r.WithDefaults().Canonical() })
	api.Inject("PUT", "/rollout", fakeapi.CloseAfter())
	etag, err := c.PutRollout(ctx, "acme", careful, Precondition{IfNoneMatch: "*"})
	if _, now, ok := api.Rollout("acme"); err != nil || !ok || etag != now {
		t.Fatalf("ETag %s, %v; want %s", etag, err, now)
	}
	api.Inject("PUT", "/rollout", fakeapi.CloseAfter(), fakeapi.First(func() { api.SetRollout("acme", careful) }))
	if _, err := c.PutRollout(ctx, "acme", bold, Precondition{IfMatch: etag}); !HasStatus(err, http.StatusPreconditionFailed) {
		t.Errorf("got %v, want 412, as somebody else wrote", err)
	}
	_, etag, _ = api.Rollout("acme")
	api.Inject("DELETE", "/rollout", fakeapi.CloseAfter())
	if err := c.DeleteRollout(ctx, "acme", Precondition{IfMatch: etag}); err != nil {
		t.Error(err)
	}
	wantEqual(t, "faults left", api.Pending(), 0)
}

func TestValidateRolloutTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	_, err := Rollouts.Validate(t.Context(), connect(t, api), "acme", Stored[v1.Rollout]{}, v1.Rollout{OnFailure: "stp"}, Precondition{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 400 || e.Errors[0].Info.Field != "on-failure" {
		t.Errorf("got %v, want a 400 about on-failure", err)
	}
}
