package window

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// now is a Monday.
var now = time.Date(2026, 12, 14, 12, 0, 0, 0, time.UTC)

const tenant = "acme"

func connect(t *testing.T) (*fakeapi.Server, *client.Client) {
	t.Helper()
	server := fakeapi.New(t)
	api, err := client.New(client.Options{Endpoint: server.URL, Token: server.Token, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return server, api
}

// fridays opens on Fridays from 22:00 to 02:00, next on 2026-12-18.
func fridays() v1.OSUpgrade {
	return v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday", StartTime: "22:00", Timezone: "UTC", Duration: "4h"}}}
}

// longFridays is fridays with windows of six hours.
func longFridays() *v1.OSUpgrade {
	long := fridays()
	long.MaintenanceWindows[0].Duration = "6h"
	return &long
}

// fridayNight is within a window of fridays.
var fridayNight = time.Date(2026, 12, 18, 23, 0, 0, 0, time.UTC)

// christmas freezes from 2026-12-18 to 2027-01-06.
func christmas() v1.Calendar {
	return v1.Calendar{Kind: "freeze", Events: []v1.Event{{Summary: "Christmas", Start: "2026-12-18", End: "2027-01-07", AllDay: true, Timezone: "UTC"}}}
}

func event(kind, start, length string) v1.Calendar {
	return v1.Calendar{Kind: kind, Events: []v1.Event{{Start: start, Duration: length, Timezone: "Europe/Stockholm"}}}
}

// took returns a completed run of some duration.
func took(length time.Duration) v1.Run {
	ended := now.Add(length - 30*24*time.Hour)
	return v1.Run{Phase: "finished", Result: "completed", OpenedAt: ended.Add(-length), EndedAt: &ended}
}

// says checks that there are exactly these warnings and no error.
func says(t *testing.T, name string, diags diag.Diagnostics, want ...string) {
	t.Helper()
	if diags.HasError() || len(diags) != len(want) {
		t.Errorf("%s: got %v, want %d warnings", name, diags, len(want))
		return
	}
	for i, d := range diags {
		if text := d.Summary() + ": " + d.Detail(); !strings.Contains(text, want[i]) {
			t.Errorf("%s: got %q, want %q", name, text, want[i])
		}
	}
}

func TestOfConfig(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config   v1.OSUpgrade
		prior    *v1.OSUpgrade
		created  bool
		calendar v1.Calendar
		// basel is an environment of the server, if it has a match.
		basel v1.Environment
		run   time.Duration
		now   time.Time
		want  []string
	}{
		"all is well":                      {config: fridays(), run: 4 * time.Hour},
		"somebody else's":                  {config: v1.OSUpgrade{}},
		"no window":                        {config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}, want: []string{"No window lies ahead"}},
		"no window, created":               {config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}, created: true, want: []string{"No window lies ahead"}},
		"an environment has windows":       {config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}, basel: environment(fridays().MaintenanceWindows)},
		"it has, and this is created":      {config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}, basel: environment(fridays().MaintenanceWindows), created: true},
		"an environment has the tenant's":  {config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}, basel: environment(nil), want: []string{"No window lies ahead"}},
		"an environment has none":          {config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}, basel: environment([]v1.MaintenanceWindow{}), want: []string{"No window lies ahead"}},
		"a calendar opens":                 {config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}, calendar: event("allow", "2026-12-20T10:00", "1h")},
		"frozen":                           {config: fridays(), calendar: christmas(), want: []string{"The next window is frozen: From 2026-12-18T22:00:00Z to 2026-12-19T02:00:00Z no run may be in progress: calendar extra (Christmas) freezes it until 2027-01-07T00:00:00Z. The next open one begins at 2027-01-08T22:00:00Z and lasts 4h."}},
		"what is left frozen":              {config: fridays(), calendar: christmas(), now: fridayNight, want: []string{"The next window is frozen"}},
		"cut in part":                      {config: fridays(), calendar: event("freeze", "2026-12-18T23:00", "1h")},
		"frozen, not asked for a creation": {config: fridays(), calendar: christmas(), created: true},
		"opens at once":                    {config: fridays(), now: fridayNight, want: []string{"A run starts as soon as this is applied: A window is open until 2026-12-19T02:00:00Z"}},
		"opens at once, created":           {config: fridays(), created: true, now: fridayNight, want: []string{"A run starts as soon as this is applied"}},
		"was open before":                  {config: fridays(), prior: new(fridays()), now: fridayNight},
		"short":                            {config: fridays(), prior: longFridays(), run: 5 * time.Hour, want: []string{"The next window is shorter than any run so far: It lasts 4h, from 2026-12-18T22:00:00Z to 2026-12-19T02:00:00Z; the shortest of the completed runs took 5h."}},
		"start moved": {
			config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Sunday", StartTime: "02:30", Timezone: "Europe/Stockholm", Duration: "1h"}}},
			now:    time.Date(2027, 3, 27, 0, 0, 0, 0, time.UTC),
			want:   []string{"moves the start of the next window", "moves the end of the next window"},
		},
		"end moved": {
			config: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Saturday", StartTime: "23:00", Timezone: "Europe/Stockholm", Duration: "5h"}}},
			now:    time.Date(2027, 3, 27, 0, 0, 0, 0, time.UTC),
			want:   []string{"moves the end of the next window: It lasts 5h of elapsed time, from 2027-03-27T22:00:00Z to 2027-03-28T03:00:00Z"},
		},
	} {
		server, api := connect(t)
		if row.calendar.Kind != "" {
			server.SetCalendar(tenant, "extra", row.calendar)
		}
		if row.basel.Match.Hosts != nil {
			server.SetEnvironment(tenant, "basel", row.basel)
		}
		if row.run > 0 {
			server.AddRun(tenant, took(row.run))
			server.AddRun(tenant, took(row.run+time.Hour))
		}
		if row.now.IsZero() {
			row.now = now
		}
		var diags diag.Diagnostics
		if row.prior == nil && !row.created {
			row.prior = &v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}
		}
		WarnOfConfig(t.Context(), tenantobject.Change[v1.OSUpgrade]{API: api, Now: row.now, At: tenantobject.Key{Tenant: tenant}, Prior: row.prior, Want: row.config}, &diags)
		says(t, name, diags, row.want...)
		most := 1
		if len(row.config.MaintenanceWindows) == 0 {
			most = 2
		}
		if n := len(server.Requests()); n > most {
			t.Errorf("%s: %d requests, want %d at most", name, n, most)
		}
	}
}

// environment is one with these windows.
func environment(windows []v1.MaintenanceWindow) v1.Environment {
	return v1.Environment{Match: v1.Match{Hosts: []string{"h01"}}, MaintenanceWindows: windows}
}

// TestOfConfig_environmentsOfTheSamePlan: an environment that the same plan makes, changes or deletes
// counts as it will be, in whatever order Terraform plans the two.
func TestOfConfig_environmentsOfTheSamePlan(t *testing.T) {
	t.Parallel()
	open, closed := environment(fridays().MaintenanceWindows), environment(nil)
	for name, row := range map[string]struct {
		server *v1.Environment
		change tenantobject.Change[v1.Environment]
		warns  []string
	}{
		"made":    {change: tenantobject.Change[v1.Environment]{Want: open}},
		"opened":  {server: &closed, change: tenantobject.Change[v1.Environment]{Prior: &closed, Want: open}},
		"closed":  {server: &open, change: tenantobject.Change[v1.Environment]{Prior: &open, Want: closed}, warns: []string{"No window lies ahead"}},
		"deleted": {server: &open, change: tenantobject.Change[v1.Environment]{Prior: &open, Deletion: true}, warns: []string{"No window lies ahead"}},
	} {
		server, api := connect(t)
		if row.server != nil {
			server.SetEnvironment(tenant, "basel", *row.server)
		}
		data := providerdata.New(api, nil)
		var diags, others diag.Diagnostics
		later := make(chan struct{})
		go func() {
			defer close(later)
			time.Sleep(50 * time.Millisecond)
			row.change.At, row.change.Data, row.change.Now = tenantobject.Key{Tenant: tenant, Name: "basel"}, data, now
			WarnOfEnvironment(t.Context(), row.change, &others)
		}()
		WarnOfConfig(t.Context(), tenantobject.Change[v1.OSUpgrade]{
			API: api, Data: data, Now: now, At: tenantobject.Key{Tenant: tenant}, Want: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}},
		}, &diags)
		<-later
		says(t, name, diags, row.warns...)
	}
}

// TestOfEnvironment: an environment is warned of by its own windows, the freezes of the tenant and the
// calendars that it names.
func TestOfEnvironment(t *testing.T) {
	t.Parallel()
	own := func(windows ...v1.MaintenanceWindow) v1.Environment {
		return v1.Environment{MaintenanceWindows: append([]v1.MaintenanceWindow{}, windows...)}
	}
	friday := fridays().MaintenanceWindows[0]
	named, held := own(), own(friday)
	named.Calendars = []string{"extra"}
	held.Rollout = &v1.Rollout{Paused: true}
	soon := event("allow", "2026-12-20T10:00", "1h")
	for name, row := range map[string]struct {
		want     v1.Environment
		prior    *v1.Environment
		calendar v1.Calendar
		now      time.Time
		warns    []string
		requests int
	}{
		"all is well":               {want: own(friday)},
		"the windows of the tenant": {want: v1.Environment{}, now: fridayNight},
		"no window":                 {want: own(), warns: []string{"No window lies ahead"}, requests: 1},
		"a calendar that it names":  {want: named, calendar: soon, requests: 1},
		"a calendar of others":      {want: own(), calendar: soon, warns: []string{"No window lies ahead"}, requests: 1},
		"opens at once":             {want: own(friday), now: fridayNight, warns: []string{"A run starts as soon as this is applied: A window is open until 2026-12-19T02:00:00Z"}, requests: 1},
		"opens at once but is held": {want: held, now: fridayNight, requests: 1},
		"was open before":           {want: own(friday), prior: new(own(friday)), now: fridayNight, requests: 1},
		"had none of its own":       {want: own(friday), prior: &v1.Environment{}, now: fridayNight, warns: []string{"A run starts"}, requests: 1},
		"frozen":                    {want: own(friday), prior: new(own()), calendar: christmas(), warns: []string{"The next window is frozen"}, requests: 1},
	} {
		server, api := connect(t)
		if row.calendar.Kind != "" {
			server.SetCalendar(tenant, "extra", row.calendar)
		}
		if row.now.IsZero() {
			row.now = now
		}
		var diags diag.Diagnostics
		WarnOfEnvironment(t.Context(), tenantobject.Change[v1.Environment]{API: api, Now: row.now, At: tenantobject.Key{Tenant: tenant, Name: "basel"}, Prior: row.prior, Want: row.want}, &diags)
		says(t, name, diags, row.warns...)
		if n := len(server.Requests()); n != row.requests {
			t.Errorf("%s: %d requests, want %d", name, n, row.requests)
		}
	}
}

func TestOfCalendar(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		calendar, prior, other v1.Calendar
		run                    time.Duration
		want                   []string
	}{
		"freeze that closes nothing": {calendar: event("freeze", "2026-12-20T00:00", "1h")},
		"freeze that closes the next": {calendar: christmas(), want: []string{
			"The next window is frozen: From 2026-12-18T22:00:00Z to 2026-12-19T02:00:00Z no run may be in progress: calendar extra freezes it until 2027-01-07T00:00:00Z",
		}},
		"which another closes already": {calendar: christmas(), other: christmas()},
		"freeze that is over":          {calendar: event("freeze", "2026-12-01T00:00", "1h"), want: []string{"No event of calendar extra lies ahead"}},
		"freeze without events":        {calendar: v1.Calendar{Kind: "freeze"}, want: []string{"No event of calendar extra lies ahead"}},
		"freeze of which a part never happens": {calendar: v1.Calendar{Kind: "freeze", ICS: new("BEGIN:VCALENDAR\r\n" +
			"BEGIN:VEVENT\r\nDTSTART:20261220T000000Z\r\nDURATION:PT1H\r\nEND:VEVENT\r\n" +
			"BEGIN:VEVENT\r\nSUMMARY:reminder\r\nDTSTART:20261221T000000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")}, want: []string{
			"Part of the iCalendar text is left out: ics.VEVENT[1].DTSTART: line 8: \"20261221T000000Z\" has neither DTEND nor DURATION",
		}},
		"freeze that the clock moves": {calendar: event("freeze", "2027-03-28T02:30", "10m"), want: []string{"moves the start of the next event of calendar extra", "moves the end"}},
		"event":                       {calendar: event("allow", "2026-12-20T00:00", "1h"), run: time.Hour},
		"event that is in progress":   {calendar: event("allow", "2026-12-14T12:30", "1h"), want: []string{"A run starts as soon as this is applied"}},
		"event that becomes short":    {calendar: event("allow", "2026-12-20T00:00", "1h"), prior: event("allow", "2026-12-20T00:00", "3h"), run: 2 * time.Hour, want: []string{"The next event of calendar extra is shorter than any run so far"}},
		"event that is frozen": {calendar: event("allow", "2026-12-20T00:00", "1h"), other: christmas(), run: 2 * time.Hour, want: []string{
			"The next event of calendar extra is frozen: From 2026-12-19T23:00:00Z to 2026-12-20T00:00:00Z no run may be in progress: calendar other (Christmas) freezes it until 2027-01-07T00:00:00Z. None of the next ten years is open.",
		}},
	} {
		server, api := connect(t)
		server.SetConfig(tenant, fridays())
		server.SetCalendar(tenant, "extra", row.prior)
		if row.other.Kind != "" {
			server.SetCalendar(tenant, "other", row.other)
		}
		if row.run > 0 {
			server.AddRun(tenant, took(row.run))
		}
		var diags diag.Diagnostics
		WarnOfCalendar(t.Context(), tenantobject.Change[v1.Calendar]{API: api, Now: now, At: tenantobject.Key{Tenant: tenant, Name: "extra"}, Prior: &row.prior, Want: row.calendar}, &diags)
		says(t, name, diags, row.want...)
		most := 1
		if strings.Contains(strings.Join(row.want, ""), "A run starts") {
			most = 2
		}
		if n := len(server.Requests()); n > most {
			t.Errorf("%s: %d requests, want %d at most", name, n, most)
		}
	}
}

// TestJoins: the warning of an event that opens a window now names the end of all that
// overlaps it, and there is none if something else is open already.
func TestJoins(t *testing.T) {
	t.Parallel()
	window := func(start string) v1.OSUpgrade {
		return v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday", StartTime: start, Timezone: "UTC", Duration: "1h"}}}
	}
	until := func(end string) []string {
		return []string{"A run starts as soon as this is applied: A window is open until " + end + ", with site-local taken for UTC."}
	}
	for name, row := range map[string]struct {
		config   v1.OSUpgrade
		other    v1.Calendar
		want     []string
		requests int
	}{
		"alone":                          {want: until("2026-12-18T23:30:00Z"), requests: 2},
		"a window begins in it":          {config: window("23:15"), want: until("2026-12-19T00:15:00Z"), requests: 2},
		"a window begins at its end":     {config: window("23:30"), want: until("2026-12-19T00:30:00Z"), requests: 2},
		"a window begins after it":       {config: window("23:31"), want: until("2026-12-18T23:30:00Z"), requests: 2},
		"a window is open":               {config: window("22:45"), requests: 2},
		"another calendar opens in it":   {other: event("allow", "2026-12-19T00:10", "2h"), want: until("2026-12-19T01:10:00Z"), requests: 2},
		"another calendar is open":       {other: event("allow", "2026-12-18T23:10", "2h"), requests: 2},
		"a freeze begins in the windows": {config: window("23:15"), other: event("freeze", "2026-12-19T01:00", "2h"), want: until("2026-12-19T00:00:00Z"), requests: 2},
	} {
		server, api := connect(t)
		if row.config.MaintenanceWindows != nil {
			server.SetConfig(tenant, row.config)
		}
		if row.other.Kind != "" {
			server.SetCalendar(tenant, "other", row.other)
		}
		var diags diag.Diagnostics
		WarnOfCalendar(t.Context(), tenantobject.Change[v1.Calendar]{
			API: api, Now: fridayNight, At: tenantobject.Key{Tenant: tenant, Name: "extra"}, Want: event("allow", "2026-12-18T23:30", "1h"),
		}, &diags)
		says(t, name, diags, row.want...)
		if n := len(server.Requests()); n != row.requests {
			t.Errorf("%s: %d requests, want %d", name, n, row.requests)
		}
	}
}

// TestReopens: a change that ends a freeze in force is warned of if a window is open that
// nothing else closes.
func TestReopens(t *testing.T) {
	t.Parallel()
	const at = "A run starts as soon as this is applied: A window is open until 2026-12-19T02:00:00Z, with site-local taken for UTC, and nothing but calendar extra of tenant acme closes it now."
	later := v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2027-03-01", AllDay: true, Timezone: "UTC"}}}
	others := christmas()
	others.Events[0].Start = "2026-12-10"
	for name, row := range map[string]struct {
		want, other v1.Calendar
		deletion    bool
		config      v1.OSUpgrade
		now         time.Time
		warns       []string
		requests    int
	}{
		"deleted":                    {deletion: true, config: fridays(), warns: []string{at}, requests: 2},
		"its event is":               {want: later, config: fridays(), warns: []string{at}, requests: 2},
		"all its events are":         {want: v1.Calendar{Kind: "freeze"}, config: fridays(), warns: []string{at}, requests: 2},
		"it opens instead":           {want: event("allow", "2026-12-18T12:00", "1d"), warns: []string{"A run starts as soon as this is applied: A window is open until 2026-12-19T11:00:00Z"}, requests: 2},
		"another freeze closes":      {deletion: true, config: fridays(), other: others, requests: 2},
		"no window":                  {deletion: true, requests: 2},
		"an allow calendar opens":    {deletion: true, other: event("allow", "2026-12-18T23:00", "3h"), warns: []string{"A run starts as soon as this is applied: A window is open until 2026-12-19T01:00:00Z"}, requests: 2},
		"no window is open yet":      {deletion: true, config: fridays(), now: fridayNight.Add(-2 * time.Hour), requests: 2},
		"a freeze that has not come": {deletion: true, config: fridays(), now: now},
		"still in force":             {want: others, config: fridays(), requests: 1},
	} {
		server, api := connect(t)
		if row.config.MaintenanceWindows != nil {
			server.SetConfig(tenant, row.config)
		}
		server.SetCalendar(tenant, "extra", christmas())
		if row.other.Kind != "" {
			server.SetCalendar(tenant, "other", row.other)
		}
		if row.now.IsZero() {
			row.now = fridayNight
		}
		var diags diag.Diagnostics
		WarnOfCalendar(t.Context(), tenantobject.Change[v1.Calendar]{
			API: api, Now: row.now, At: tenantobject.Key{Tenant: tenant, Name: "extra"}, Prior: new(christmas()), Want: row.want, Deletion: row.deletion,
		}, &diags)
		says(t, name, diags, row.warns...)
		if n := len(server.Requests()); n != row.requests {
			t.Errorf("%s: %d requests, want %d", name, n, row.requests)
		}
	}
}

// TestNextWindow_neverFailsAPlan checks that without a server, with a failing server
// and with a server that does not return contents, only the warnings that need no
// server are given.
func TestNextWindow_neverFailsAPlan(t *testing.T) {
	t.Parallel()
	at := tenantobject.Key{Tenant: tenant, Name: "extra"}
	empty := v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}
	for name, connected := range map[string]func() *client.Client{
		"no server": func() *client.Client { return nil },
		"a server that fails": func() *client.Client {
			server, api := connect(t)
			for range 10 {
				server.Inject(http.MethodGet, "", fakeapi.Status(http.StatusInternalServerError, "broken"))
			}
			return api
		},
	} {
		var diags diag.Diagnostics
		api := connected()
		for _, config := range []v1.OSUpgrade{fridays(), empty, {MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Frday"}}}} {
			WarnOfConfig(t.Context(), tenantobject.Change[v1.OSUpgrade]{API: api, Now: now, At: at, Prior: &empty, Want: config}, &diags)
		}
		warn := func(calendar v1.Calendar) {
			WarnOfCalendar(t.Context(), tenantobject.Change[v1.Calendar]{API: api, Now: now, At: at, Prior: &v1.Calendar{}, Want: calendar}, &diags)
		}
		warn(christmas())
		warn(event("allow", "2026-12-20T00:00", "1h"))
		warn(v1.Calendar{Kind: "freese"})
		WarnOfCalendar(t.Context(), tenantobject.Change[v1.Calendar]{API: api, Now: fridayNight, At: at, Prior: new(christmas()), Deletion: true}, &diags)
		says(t, name, diags)
		warn(v1.Calendar{Kind: "allow"})
		says(t, name, diags, "No event of calendar extra lies ahead")
	}
}
