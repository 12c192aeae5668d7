package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func TestConfigRoundTrip(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c, ctx := connect(t, api), t.Context()

	_, _, err := c.Config(ctx, "acme")
	if !HasStatus(err, http.StatusNotFound) || !Missing(err) {
		t.Fatalf("got %v, want a 404 about the configuration", err)
	}
	first, err := c.PutConfig(ctx, "acme", weekly, Precondition{IfNoneMatch: "*"})
	if err != nil {
		t.Fatal(err)
	}
	got, etag, err := c.Config(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "configuration", spelled(got), spelled(weekly))
	wantEqual(t, "ETag", etag, first)
	second, err := c.PutConfig(ctx, "acme", daily, Precondition{IfMatch: first})
	if err != nil {
		t.Fatal(err)
	}
	if second == "" || second == first {
		t.Errorf("the ETag after a change is %s, before it was %s", second, first)
	}
	if err := c.DeleteConfig(ctx, "acme", Precondition{IfMatch: second}); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := api.Config("acme"); ok {
		t.Error("the configuration is still there")
	}
	wantEqual(t, "answers of 201", api.Answers(http.StatusCreated), 1)
	wantEqual(t, "answers of 204", api.Answers(http.StatusNoContent), 2)
}

func TestConfigOfAServerThatSaysLittle(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.NoETags()
	api.EmptyWhenAbsent()
	c, ctx := connect(t, api), t.Context()
	got, etag, err := c.Config(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "configuration", spelled(got), spelled(v1.OSUpgrade{}))
	etagOfPut, err := c.PutConfig(ctx, "acme", weekly, Precondition{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "ETags", etag+etagOfPut, "")
}

// fault is a row about what goes wrong on the way of one write.
type fault struct {
	before *v1.OSUpgrade // What is stored; nil is nothing.
	faults []fakeapi.Fault
	when   Precondition
	// status is that of the *Error wanted; 0 wants none.
	status int
	text   string
	tries  int
	after  *v1.OSUpgrade
}

func (f fault) check(t *testing.T, api *fakeapi.Server, method string, err error) {
	t.Helper()
	switch {
	case f.status == 0 && f.text == "":
		if err != nil {
			t.Fatalf("got %v, want success", err)
		}
	case f.status != 0 && !HasStatus(err, f.status):
		t.Fatalf("got %v, want status %d", err, f.status)
	default:
		wantError(t, err, "cannot "+method+" /v1/config/tenants/acme/os-upgrade: ", f.text)
	}
	wantEqual(t, "requests", api.Count(method, "/os-upgrade"), f.tries)
	wantEqual(t, "faults left", api.Pending(), 0)
	got, _, ok := api.Config("acme")
	wantEqual(t, "a configuration is stored", ok, f.after != nil)
	if f.after != nil {
		wantEqual(t, "stored", spelled(got), spelled(*f.after))
	}
}

func TestPutConfigUnderFaults(t *testing.T) {
	t.Parallel()
	type F = []fakeapi.Fault
	ifNew := Precondition{IfNoneMatch: "*"}
	ifFirst := Precondition{IfMatch: `"1-1"`}
	for name, row := range map[string]fault{
		"too many requests":                    {nil, F{fakeapi.RetryAfter(429, "0")}, ifNew, 0, "", 2, &weekly},
		"too many requests without a time":     {nil, F{fakeapi.Status(429, "slow down"), fakeapi.Status(429, "slow down")}, ifNew, 0, "", 3, &weekly},
		"sealed":                               {nil, F{fakeapi.RetryAfter(503, "0")}, ifNew, 0, "", 2, &weekly},
		"sealed for good":                      {nil, F{fakeapi.Status(503, "sealed"), fakeapi.Status(503, "sealed"), fakeapi.Status(503, "strongbox sealed")}, ifNew, 503, "503 Service Unavailable: strongbox sealed", 3, nil},
		"server error":                         {nil, F{fakeapi.Status(500, "oops")}, ifNew, 0, "", 2, &weekly},
		"a page from a proxy":                  {nil, F{fakeapi.Raw(502, "text/html", "<html>Bad"), fakeapi.Raw(502, "text/html", "<html>Bad"), fakeapi.Raw(502, "text/html", "<html>Bad\nGateway")}, ifNew, 502, "502 Bad Gateway: <html>Bad Gateway", 3, nil},
		"connection lost before the effect":    {nil, F{fakeapi.CloseBefore()}, ifNew, 0, "", 2, &weekly},
		"answer lost, created":                 {nil, F{fakeapi.CloseAfter()}, ifNew, 0, "", 2, &weekly},
		"answer lost, replaced":                {&daily, F{fakeapi.CloseAfter()}, ifFirst, 0, "", 2, &weekly},
		"effect, but a server error":           {&daily, F{fakeapi.StatusAfter(500, "oops")}, ifFirst, 0, "", 2, &weekly},
		"answer lost, without condition":       {&daily, F{fakeapi.CloseAfter()}, Precondition{}, 0, "", 2, &weekly},
		"answers lost until the end":           {&daily, F{fakeapi.CloseAfter(), fakeapi.CloseBefore(), fakeapi.CloseBefore()}, ifFirst, 0, "after 3 tries", 3, &weekly},
		"not ours":                             {&daily, nil, ifNew, 412, "412 Precondition Failed", 1, &daily},
		"ours from before, first try":          {&weekly, nil, ifNew, 412, "412 Precondition Failed", 1, &weekly},
		"not ours, after a try without effect": {&daily, F{fakeapi.CloseBefore()}, ifNew, 412, "412 Precondition Failed", 2, &daily},
		"stale":                                {&daily, nil, Precondition{IfMatch: `"0"`}, 412, "412 Precondition Failed", 1, &daily},
		"no right":                             {nil, F{fakeapi.Status(403, "not yours")}, ifNew, 403, "403 Forbidden: not yours", 1, nil},
		"no login":                             {nil, F{fakeapi.Status(401, "expired")}, ifNew, 401, "401 Unauthorized: expired", 1, nil},
		"not implemented":                      {nil, F{fakeapi.Status(501, "never")}, ifNew, 501, "501 Not Implemented: never", 1, nil},
		"redirect":                             {nil, F{redirect}, ifNew, 0, `302 Found: the API is at "http://elsewhere.example/"`, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			if row.before != nil {
				api.SetConfig("acme", *row.before)
			}
			api.Inject(http.MethodPut, "/os-upgrade", row.faults...)
			etag, err := connect(t, api, retries(2)).PutConfig(t.Context(), "acme", weekly, row.when)
			row.check(t, api, http.MethodPut, err)
			if _, now, _ := api.Config("acme"); err == nil && etag != now {
				t.Errorf("got ETag %s, want the one stored, %s", etag, now)
			}
		})
	}
}

// redirect sends the client elsewhere.
func redirect(http.Handler) http.Handler {
	return http.RedirectHandler("http://elsewhere.example/", http.StatusFound)
}

func TestPutConfigOverwrittenAfterALostAnswer(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	// Somebody else writes between our lost write and its repetition.
	api.Inject(http.MethodPut, "", fakeapi.CloseAfter(), fakeapi.First(func() { api.SetConfig("acme", daily) }))
	_, err := connect(t, api).PutConfig(t.Context(), "acme", weekly, Precondition{IfNoneMatch: "*"})
	if !HasStatus(err, http.StatusPreconditionFailed) {
		t.Fatalf("got %v, want the 412", err)
	}
	wantEqual(t, "readings", api.Count(http.MethodGet, ""), 1)
}

func TestPutConfigRespelledAfterALostAnswer(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	two := v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{weekly.MaintenanceWindows[0], daily.MaintenanceWindows[0]}}
	api.Render(func(c v1.OSUpgrade) v1.OSUpgrade {
		return v1.OSUpgrade{
			WorkerApplications: []v1.WorkerApplication{},
			MaintenanceWindows: []v1.MaintenanceWindow{
				c.MaintenanceWindows[1], {DaysOfWeek: "saturday,friday", StartTime: "01:00", Timezone: "UTC", Duration: "240m"},
			},
		}
	})
	api.Inject(http.MethodPut, "", fakeapi.CloseAfter())
	etag, err := connect(t, api).PutConfig(t.Context(), "acme", two, Precondition{IfNoneMatch: "*"})
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := api.Config("acme")
	wantEqual(t, "ETag", etag, want)
}

func TestDeleteConfigUnderFaults(t *testing.T) {
	t.Parallel()
	type F = []fakeapi.Fault
	ifFirst := Precondition{IfMatch: `"1-1"`}
	for name, row := range map[string]fault{
		"there":                          {&daily, nil, ifFirst, 0, "", 1, nil},
		"not there":                      {nil, nil, Precondition{}, 0, "", 1, nil},
		"not there, with a condition":    {nil, nil, ifFirst, 0, "", 1, nil},
		"stale":                          {&daily, nil, Precondition{IfMatch: `"0"`}, 412, "412 Precondition Failed", 1, &daily},
		"answer lost":                    {&daily, F{fakeapi.CloseAfter()}, ifFirst, 0, "", 2, nil},
		"answer lost, without condition": {&daily, F{fakeapi.CloseAfter()}, Precondition{}, 0, "", 2, nil},
		"effect, but a server error":     {&daily, F{fakeapi.StatusAfter(500, "oops")}, ifFirst, 0, "", 2, nil},
		"lost before the effect":         {&daily, F{fakeapi.CloseBefore()}, ifFirst, 0, "", 2, nil},
		"a 404 of a proxy":               {&daily, F{fakeapi.Raw(404, "text/html", "<html>nothing here")}, ifFirst, 404, "404 Not Found: <html>nothing here", 1, &daily},
		"no right":                       {&daily, F{fakeapi.Status(403, "not yours")}, ifFirst, 403, "not yours", 1, &daily},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			if row.before != nil {
				api.SetConfig("acme", *row.before)
			}
			api.Inject(http.MethodDelete, "/os-upgrade", row.faults...)
			err := connect(t, api, retries(2)).DeleteConfig(t.Context(), "acme", row.when)
			row.check(t, api, http.MethodDelete, err)
		})
	}
}

func TestDeleteConfigOfNoTenant(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.OnlyTenants("other")
	err := connect(t, api).DeleteConfig(t.Context(), "acme", Precondition{})
	wantError(t, err, `tenant "acme" does not exist`)
}

func TestDeleteConfigDuringARun(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	etag := api.SetConfig("acme", weekly)
	id := api.AddRun("acme", v1.Run{Phase: "upgrading"})
	err := connect(t, api).DeleteConfig(t.Context(), "acme", Precondition{IfMatch: etag})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusPreconditionFailed || e.Errors[0].Info.Run != id {
		t.Errorf("got %v, want a 412 that names run %d", err, id)
	}
}

func TestValidateConfig(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.Accept(func(_ string, c v1.OSUpgrade) []v1.Error {
		if len(c.MaintenanceWindows) == 0 {
			return nil
		}
		return []v1.Error{{Message: "no windows here", Info: v1.ErrorInfo{Field: "maintenance-windows"}}}
	})
	c := connect(t, api)
	if _, err := Configs.Validate(t.Context(), c, "acme", Stored[v1.OSUpgrade]{}, v1.OSUpgrade{}, Precondition{}); err != nil {
		t.Error(err)
	}
	_, err := Configs.Validate(t.Context(), c, "acme", Stored[v1.OSUpgrade]{}, weekly, Precondition{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 400 || e.Errors[0].Info.Field != "maintenance-windows" {
		t.Errorf("got %v, want a 400 about the windows", err)
	}
	wantEqual(t, "dry runs", api.DryRuns(), 2)
	wantEqual(t, "writes", api.Count(http.MethodPut, ""), 0)
	if _, _, ok := api.Config("acme"); ok {
		t.Error("a dry run has stored something")
	}
}

func TestTenantThatIsNoName(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c := connect(t, api)
	for _, tenant := range []string{"", "..", "a/b", "A", "a?b", "a%2fb", "-a", strings.Repeat("a", names.MaxLength+1)} {
		_, _, err1 := c.Config(t.Context(), tenant)
		_, err2 := c.PutConfig(t.Context(), tenant, weekly, Precondition{})
		_, err3 := Configs.Validate(t.Context(), c, tenant, Stored[v1.OSUpgrade]{}, weekly, Precondition{})
		err4 := c.DeleteConfig(t.Context(), tenant, Precondition{})
		_, err5 := c.State(t.Context(), tenant, "")
		_, err6 := c.Hosts(t.Context(), tenant, "")
		_, err7 := c.Start(t.Context(), tenant, v1.Start{})
		_, err8 := c.Run(t.Context(), tenant, 1)
		_, err9 := c.Runs(t.Context(), tenant, v1.RunFilter{})
		err10 := c.Watch(t.Context(), tenant, func(v1.Run) bool { return false })
		_, _, err11 := c.Rollout(t.Context(), tenant)
		_, err12 := c.Pause(t.Context(), tenant, v1.Ask{})
		for _, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12} {
			wantError(t, err, "is not a name")
		}
	}
	wantEqual(t, "requests", len(api.Requests()), 0)
}
