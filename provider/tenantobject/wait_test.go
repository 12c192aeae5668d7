package tenantobject

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// script is an API with a list of answers of Run and of actions of Follow.
type script struct {
	asked   []func() (v1.Run, error)
	watched []func(ctx context.Context, see func(client.News) bool) error
}

func (s *script) Run(context.Context, string, uint64) (v1.Run, error) {
	next := s.asked[0]
	s.asked = s.asked[1:]
	return next()
}

func (s *script) Follow(ctx context.Context, _, _ string, see func(client.News) bool) error {
	next := s.watched[0]
	s.watched = s.watched[1:]
	return next(ctx, see)
}

var (
	going = v1.Run{ID: 41, Phase: "upgrading"}
	ended = v1.Run{ID: 41, Phase: "finished", Result: "completed"}
)

func says(run v1.Run, err error) func() (v1.Run, error) {
	return func() (v1.Run, error) { return run, err }
}

func shows(runs ...v1.Run) func(context.Context, func(client.News) bool) error {
	return func(ctx context.Context, see func(client.News) bool) error {
		for _, run := range runs {
			if !see(client.News{Run: &run}) {
				return nil
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

func fails(err error) func(context.Context, func(client.News) bool) error {
	return func(context.Context, func(client.News) bool) error { return err }
}

func status(code int) error {
	return &client.Error{Method: "GET", Path: "/", Status: code, Errors: []v1.Error{{Message: "no"}}}
}

func TestForRun(t *testing.T) {
	t.Parallel()
	unreachable := errors.New("connection refused")
	for name, row := range map[string]struct {
		api    script
		seen   int
		status int
	}{
		"already over": {script{asked: []func() (v1.Run, error){says(ended, nil)}}, 1, 0},
		"ends while watched": {script{
			asked:   []func() (v1.Run, error){says(going, nil)},
			watched: []func(context.Context, func(client.News) bool) error{shows(going, ended)},
		}, 3, 0},
		"other news do not count": {script{
			asked: []func() (v1.Run, error){says(going, nil)},
			watched: []func(context.Context, func(client.News) bool) error{func(_ context.Context, see func(client.News) bool) error {
				see(client.News{Situation: &v1.Situation{}})
				see(client.News{Contact: &client.Contact{}})
				see(client.News{Run: &ended})
				return nil
			}},
		}, 2, 0},
		"other runs do not count": {script{
			asked:   []func() (v1.Run, error){says(going, nil)},
			watched: []func(context.Context, func(client.News) bool) error{shows(v1.Run{ID: 40, Phase: "finished"}, v1.Run{ID: 42, Phase: "finished"}, ended)},
		}, 2, 0},
		"ends between the question and the watching": {script{
			asked:   []func() (v1.Run, error){says(going, nil), says(ended, nil)},
			watched: []func(context.Context, func(client.News) bool) error{shows(v1.Run{ID: 42, Phase: "preparing"})},
		}, 2, 0},
		"the server restarts": {script{
			asked:   []func() (v1.Run, error){says(going, nil), says(v1.Run{}, unreachable), says(v1.Run{}, status(503)), says(ended, nil)},
			watched: []func(context.Context, func(client.News) bool) error{fails(unreachable), fails(unreachable), fails(status(429))},
		}, 2, 0},
		"not there":            {script{asked: []func() (v1.Run, error){says(v1.Run{}, status(404))}}, 0, 404},
		"forgotten on the way": {script{asked: []func() (v1.Run, error){says(going, nil), says(v1.Run{}, status(404))}, watched: []func(context.Context, func(client.News) bool) error{shows()}}, 1, 404},
		"no events for us":     {script{asked: []func() (v1.Run, error){says(going, nil)}, watched: []func(context.Context, func(client.News) bool) error{fails(status(403))}}, 1, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, seen := row.api, 0
			run, err := forRun(t.Context(), &api, "acme", 41, func(v1.Run) { seen++ }, time.Millisecond)
			if row.status == 0 && (err != nil || !run.Finished()) {
				t.Errorf("got %+v, %v, want the end of the run", run, err)
			}
			if row.status != 0 && !client.HasStatus(err, row.status) {
				t.Errorf("got %v, want status %d", err, row.status)
			}
			if seen != row.seen {
				t.Errorf("saw %d states, want %d", seen, row.seen)
			}
			if len(api.asked)+len(api.watched) > 0 {
				t.Errorf("%d answers and %d watches were not used", len(api.asked), len(api.watched))
			}
		})
	}
}

func TestForRun_unreachableFromTheStartIsAnError(t *testing.T) {
	t.Parallel()
	api := script{asked: []func() (v1.Run, error){says(v1.Run{}, errors.New("connection refused"))}}
	if _, err := ForRun(t.Context(), &api, "acme", 41, func(v1.Run) {}); err == nil {
		t.Error("want an error")
	}
}

func TestForRun_endsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	api := script{
		asked: []func() (v1.Run, error){says(going, nil)},
		watched: []func(context.Context, func(client.News) bool) error{func(ctx context.Context, _ func(client.News) bool) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}},
	}
	run, err := ForRun(ctx, &api, "acme", 41, func(v1.Run) {})
	if !errors.Is(err, context.Canceled) || run.ID != 41 {
		t.Errorf("got %+v, %v, want the run as it was last seen, and that the context ended", run, err)
	}
}

func TestInTheWay(t *testing.T) {
	t.Parallel()
	blocked := func(code int) error {
		return &client.Error{Status: code, Errors: []v1.Error{{Message: "one"}, {Message: "two", Info: v1.ErrorInfo{Run: 41}}}}
	}
	for name, row := range map[string]struct {
		err  error
		want uint64
	}{
		"a run":             {blocked(412), 41},
		"another status":    {blocked(400), 0},
		"no run":            {status(412), 0},
		"not from a server": {errors.New("connection refused"), 0},
		"no error":          {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := BlockingRun(row.err); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}

func TestUntilFree_aForgottenRunIsOver(t *testing.T) {
	t.Parallel()
	api := script{asked: []func() (v1.Run, error){says(v1.Run{}, status(404))}}
	if err := UntilUnblocked(t.Context(), &api, "acme", 41, func(v1.Run) {}); err != nil {
		t.Error(err)
	}
	api = script{asked: []func() (v1.Run, error){says(v1.Run{}, status(403))}}
	if err := UntilUnblocked(t.Context(), &api, "acme", 41, func(v1.Run) {}); !client.HasStatus(err, 403) {
		t.Errorf("got %v, want status 403", err)
	}
}

// TestForRun_hostsAreKept: what was shown of a run stays as it was, though the client changes its
// own hosts with each event.
func TestForRun_hostsAreKept(t *testing.T) {
	t.Parallel()
	api := script{
		asked: []func() (v1.Run, error){says(going, nil)},
		watched: []func(context.Context, func(client.News) bool) error{func(_ context.Context, see func(client.News) bool) error {
			run := going
			run.Hosts = []v1.RunHost{{Hostname: "h01", Status: "upgrading"}}
			see(client.News{Run: &run})
			run.Hosts[0].Status, run.Phase = "upgraded", ended.Phase
			see(client.News{Run: &run})
			return nil
		}},
	}
	var seen []string
	var before v1.Run
	if _, err := ForRun(t.Context(), &api, "acme", 41, func(r v1.Run) {
		for i, h := range r.Hosts {
			if len(before.Hosts) > i {
				seen = append(seen, before.Hosts[i].Status)
			}
			seen = append(seen, h.Status)
		}
		before = r
	}); err != nil || !slices.Equal(seen, []string{"upgrading", "upgrading", "upgraded"}) {
		t.Errorf("seen is %q, %v", seen, err)
	}
}
