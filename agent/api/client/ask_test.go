package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAsks checks that each request does to the run what it says.
func TestAsks(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	under := v1.Run{
		ID: 7, Phase: "upgrading", Paused: "me: wait",
		Stages: []v1.RunStage{{Name: "canary", Phase: "done"}, {Name: "rest", Phase: "waiting-for-approval"}},
		Hosts:  []v1.RunHost{{Hostname: "h01", Slot: &since, SlotReason: "silent"}},
	}
	running := under
	running.Paused = ""
	for name, row := range map[string]struct {
		run  v1.Run
		call func(c *Client, ctx context.Context, tenant string, ask v1.Ask) (v1.Run, error)
		ask  v1.Ask
		done func(v1.Run) bool
		// refused is part of a 412; then nothing is done.
		refused string
	}{
		"pause":                         {running, (*Client).Pause, v1.Ask{Reason: "look"}, func(r v1.Run) bool { return r.Paused == "fakeapi: look" }, ""},
		"pause what is paused":          {under, (*Client).Pause, v1.Ask{Reason: "look"}, nil, "run 7 is paused already, by me: wait"},
		"resume":                        {under, (*Client).Resume, v1.Ask{Reason: "looked"}, func(r v1.Run) bool { return r.Paused == "" }, ""},
		"resume what runs":              {running, (*Client).Resume, v1.Ask{Reason: "looked"}, nil, "run 7 is not paused"},
		"abort":                         {under, (*Client).Abort, v1.Ask{Reason: "bad"}, func(r v1.Run) bool { return r.Finished() && r.Result == "aborted" && r.EndedAt != nil }, ""},
		"approve":                       {running, (*Client).Approve, v1.Ask{Reason: "fine", Stage: "rest"}, func(r v1.Run) bool { return r.Stages[1].Phase == "running" }, ""},
		"approve what does not wait":    {running, (*Client).Approve, v1.Ask{Reason: "fine", Stage: "canary"}, nil, `run 7 has no stage "canary" that waits for approval`},
		"release":                       {running, (*Client).Release, v1.Ask{Reason: "gone", Host: "h01"}, func(r v1.Run) bool { return r.Hosts[0].Slot == nil }, ""},
		"release one without a slot":    {running, (*Client).Release, v1.Ask{Reason: "gone", Host: "h02"}, nil, "host h02 holds no slot of run 7"},
		"abort what is over":            {v1.Run{ID: 7, Phase: "finished"}, (*Client).Abort, v1.Ask{Reason: "bad"}, nil, "no run is in progress"},
		"release after nothing started": {v1.Run{ID: 7, Phase: "finished"}, (*Client).Release, v1.Ask{Reason: "bad", Host: "h01"}, nil, "no run is in progress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.AddRun("acme", row.run)
			got, err := row.call(connect(t, api), t.Context(), "acme", row.ask)
			if row.refused != "" {
				if !HasStatus(err, http.StatusPreconditionFailed) {
					t.Errorf("got %v, want 412", err)
				}
				wantError(t, err, row.refused)
				return
			}
			if err != nil || got.ID != 7 || !row.done(got) || !row.done(api.Runs("acme")[0]) {
				t.Errorf("got %+v, %v, kept %+v", got, err, api.Runs("acme")[0])
			}
		})
	}
}

// TestAskIsNotRepeated checks that a request whose answer is lost is not sent
// again: a run that another has paused must not be resumed.
func TestAskIsNotRepeated(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.AddRun("acme", v1.Run{ID: 7, Phase: "upgrading", Paused: "me"})
	api.Inject("POST", "/resume", fakeapi.CloseAfter())
	_, err := connect(t, api).Resume(t.Context(), "acme", v1.Ask{Reason: "go"})
	wantError(t, err, "cannot POST /v1/state/tenants/acme/os-upgrade/resume: ", "EOF")
	wantEqual(t, "requests", api.Count(http.MethodPost, ""), 1)
}

func TestAskWithoutReason(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	_, err := connect(t, api).Pause(t.Context(), "acme", v1.Ask{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 400 || e.Errors[0].Info.Field != "reason" {
		t.Errorf("got %v, want a 400 about the reason", err)
	}
}

func TestRunsAreFiltered(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 500, time.FixedZone("", 3600)) }
	for id, result := range map[uint64]string{3: "failed", 7: "completed", 9: "failed"} {
		api.AddRun("acme", v1.Run{ID: id, Phase: "finished", Result: result, OpenedAt: day(int(id)), Hosts: []v1.RunHost{{Hostname: "h0" + string('0'+rune(id))}}})
	}
	c := connect(t, api)
	for name, row := range map[string]struct {
		filter v1.RunFilter
		want   []uint64
	}{
		"all":    {v1.RunFilter{}, []uint64{3, 7, 9}},
		"result": {v1.RunFilter{Result: "failed"}, []uint64{3, 9}},
		"host":   {v1.RunFilter{Selector: v1.Selector{Hosts: []string{"h07"}}}, []uint64{7}},
		"since":  {v1.RunFilter{Since: day(7)}, []uint64{7, 9}},
		"until":  {v1.RunFilter{Until: day(7)}, []uint64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, err := c.Runs(t.Context(), "acme", row.filter)
			if err != nil {
				t.Fatal(err)
			}
			var ids []uint64
			for _, r := range runs {
				ids = append(ids, r.ID)
			}
			if slices.Sort(ids); !slices.Equal(ids, row.want) {
				t.Errorf("got runs %v, want %v", ids, row.want)
			}
		})
	}
	if runs, err := c.Runs(t.Context(), "acme", v1.RunFilter{Limit: 1}); err != nil || len(runs) != 1 {
		t.Errorf("got %v, %v; want one run", runs, err)
	}
}
