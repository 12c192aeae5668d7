package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func TestState(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	etag := api.SetConfig("acme", weekly)
	api.SetHosts("acme", v1.Host{Hostname: "h01", Application: "os-upgrade-debian"})
	got, err := connect(t, api).State(t.Context(), "acme", "north")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "state", spelled(got), spelled(v1.State{
		OSUpgrade: weekly, ConfigETag: etag, Situation: v1.Situation{Status: "idle", Hosts: 1}, ScheduledWorkers: []v1.ScheduledWorker{{Host: "h01", Application: "os-upgrade-debian"}},
	}))
	wantEqual(t, "site asked for", api.Requests()[0].Query.Get("site"), "north")
}

func TestHosts(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	want := []v1.Host{{Hostname: "h01", Application: "a", Online: true, Versions: map[string]string{"linux": "6.1"}}, {Hostname: "h02"}}
	api.SetHosts("acme", want...)
	got, err := connect(t, api).Hosts(t.Context(), "acme", "")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "hosts", spelled(got), spelled(want))
	wantEqual(t, "a site is asked for", api.Requests()[0].Query.Has("site"), false)
}

// TestHostParts reads all hosts part by part, also while some appear and disappear, and
// checks that a server without parts is read as well.
func TestHostParts(t *testing.T) {
	t.Parallel()
	var all []v1.Host
	for i := range 2*hostsInPart + 1 {
		all = append(all, v1.Host{Hostname: fmt.Sprintf("h%04d", 2*i)})
	}
	last := len(all) - 1
	for name, row := range map[string]struct {
		hosts []v1.Host
		// between changes the hosts after the first part.
		between func([]v1.Host) []v1.Host
		whole   bool
		want    []v1.Host
		parts   int
	}{
		"none":          {want: nil, parts: 1},
		"one part":      {hosts: all[:hostsInPart], want: all[:hostsInPart], parts: 1},
		"one more":      {hosts: all[:hostsInPart+1], want: all[:hostsInPart+1], parts: 2},
		"three parts":   {hosts: all, want: all, parts: 3},
		"without parts": {hosts: all, whole: true, want: all, parts: 1},
		"one appears in the part that was read": {hosts: all, want: all, parts: 3, between: func(hosts []v1.Host) []v1.Host {
			return append(hosts, v1.Host{Hostname: "h0001"})
		}},
		"one appears in the next part": {hosts: all, want: slices.Concat(all[:last], []v1.Host{{Hostname: "h1999"}}, all[last:]), parts: 3, between: func(hosts []v1.Host) []v1.Host {
			return append(hosts, v1.Host{Hostname: "h1999"})
		}},
		"the last of a part is removed": {hosts: all, want: all, parts: 3, between: func(hosts []v1.Host) []v1.Host {
			return slices.Delete(hosts, hostsInPart-1, hostsInPart)
		}},
		"all others are removed": {hosts: all, want: all[:hostsInPart], parts: 2, between: func([]v1.Host) []v1.Host { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.SetHosts("acme", row.hosts...)
			if row.whole {
				api.Whole()
			}
			var got []v1.Host
			parts := 0
			for part, err := range connect(t, api).HostParts(t.Context(), "acme", HostQuery{Site: "north", Inventories: true}) {
				if err != nil {
					t.Fatal(err)
				}
				if parts++; parts == 1 && row.between != nil {
					api.SetHosts("acme", row.between(slices.Clone(row.hosts))...)
				}
				got = append(got, part...)
			}
			wantEqual(t, "hosts", spelled(got), spelled(row.want))
			wantEqual(t, "parts", parts, row.parts)
			for _, r := range api.Requests() {
				wantEqual(t, "site and inventory", r.Query.Get("site")+" "+r.Query.Get("inventory"), "north true")
			}
		})
	}
}

// TestHostPartsOfOddServers checks a server that refuses a query parameter which it does not
// know, and those whose header Link does not lead on: no list is read for ever.
func TestHostPartsOfOddServers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		link   string
		strict bool
		want   string
	}{
		"it refuses limit":          {strict: true, want: "h01"},
		"it has another link":       {link: `</x>; rel="prev"`, want: "h01"},
		"what is no link":           {link: `next`, want: "h01"},
		"to the same part":          {link: `</v1/state/tenants/acme/os-upgrade/hosts?limit=500>; rel="next"`, want: "does not lead to the next part"},
		"to the same part for ever": {link: `</v1/state/tenants/acme/os-upgrade/hosts?after=h01>; rel=next`, want: "does not lead to the next part"},
		"to another place":          {link: `<https://elsewhere.example/hosts?after=h01>; rel="next"`, want: "does not lead to the next part"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if row.strict && r.URL.RawQuery != "" {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Link", row.link)
				_, _ = io.WriteString(w, `[{"hostname":"h01"}]`)
			}))
			t.Cleanup(server.Close)
			c, err := New(Options{Endpoint: server.URL, Token: "x"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			var got []string
			for part, err := range c.HostParts(t.Context(), "acme", HostQuery{}) {
				if err != nil {
					got = []string{err.Error()}
				}
				for _, h := range part {
					got = append(got, h.Hostname)
				}
			}
			if len(got) != 1 || !strings.Contains(got[0], row.want) {
				t.Errorf("it is read as %q", got)
			}
		})
	}
}

// TestHostsPart checks that a part of the hosts is asked for, and nothing that is left open.
func TestHostsPart(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	shop := func(name string) map[string]string { return map[string]string{"shop": name} }
	api.SetHosts("acme", v1.Host{Hostname: "h01", Labels: shop("basel")}, v1.Host{Hostname: "h02", Labels: shop("basel")}, v1.Host{Hostname: "h03", Labels: shop("bern")})
	c := connect(t, api)
	basel := v1.Selector{Labels: shop("basel")}
	for _, row := range []struct {
		filter    v1.HostFilter
		want, why string
	}{
		{v1.HostFilter{}, "h01 h02 h03", ""},
		{v1.HostFilter{Limit: 2}, "h01 h02", ""},
		{v1.HostFilter{After: "h01"}, "h02 h03", ""},
		{v1.HostFilter{After: "h01", Limit: 1}, "h02", ""},
		{v1.HostFilter{After: "h03", Limit: 1}, "", ""},
		{v1.HostFilter{Selector: basel}, "h01 h02", ""},
		{v1.HostFilter{Selector: basel, After: "h01", Limit: 1}, "h02", ""},
		{v1.HostFilter{Selector: v1.Selector{Labels: shop("chur")}}, "", `[selector.label: no known host has "chur" as label shop; hosts have basel, bern]`},
	} {
		got, why, err := c.HostsPart(t.Context(), "acme", row.filter)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, h := range got {
			names = append(names, h.Hostname)
		}
		wantEqual(t, fmt.Sprintf("hosts of %+v", row.filter), strings.Join(names, " "), row.want)
		if row.why != "" || len(why) > 0 {
			wantEqual(t, fmt.Sprintf("warnings of %+v", row.filter), fmt.Sprint(why), row.why)
		}
	}
	_, _, err := c.HostsPart(t.Context(), "acme", v1.HostFilter{Limit: -1})
	wantError(t, err, "400")
}

// TestHost checks that one host is got by its name, and that a name that is none is
// refused before anything is sent.
func TestHost(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	want := v1.Host{Hostname: "h.01", Reports: []v1.VersionReport{{Changed: 1, Changes: []v1.VersionChange{{Package: "linux", To: "6.1"}}}}}
	api.SetHosts("acme", v1.Host{Hostname: "h00"}, want)
	c := connect(t, api)
	got, err := c.Host(t.Context(), "acme", "h.01")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "host", spelled(got), spelled(want))
	for host, part := range map[string]string{"h77": `404 Not Found: host "h77" is not known`, "..": `host ".." is not the name of a host`, "": "is not the name of a host"} {
		_, err := c.Host(t.Context(), "acme", host)
		wantError(t, err, part)
	}
}

func TestDeleteHost(t *testing.T) {
	t.Parallel()
	type F = []fakeapi.Fault
	for name, row := range map[string]struct {
		host   string
		faults []fakeapi.Fault
		want   string
		left   int
	}{
		"a host that is gone": {"h.01", nil, "", 1},
		"answer lost":         {"h.01", F{fakeapi.CloseAfter()}, "", 1},
		"request lost":        {"h.01", F{fakeapi.CloseBefore()}, "", 1},
		"not known":           {"h77", nil, `404 Not Found: host "h77" is not known`, 2},
		"online":              {"h02", nil, "412 Precondition Failed: host h02 is online", 2},
		"no name":             {"", nil, `host "" is not the name of a host`, 2},
		"a path":              {"..", nil, `host ".." is not the name of a host`, 2},
		"a longer path":       {"h02/x", nil, `host "h02/x" is not the name of a host`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.SetHosts("acme", v1.Host{Hostname: "h.01"}, v1.Host{Hostname: "h02", Online: true})
			api.Inject(http.MethodDelete, "/hosts/"+row.host, row.faults...)
			c := connect(t, api, retries(2))
			err := c.DeleteHost(t.Context(), "acme", row.host, "")
			if row.want != "" {
				wantError(t, err, row.want)
			} else if err != nil {
				t.Fatal(err)
			}
			left, err := c.Hosts(t.Context(), "acme", "")
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "hosts left", len(left), row.left)
		})
	}
}

func TestAnswersOfAnotherServer(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.Inject("GET", "/os-upgrade", fakeapi.Raw(200, "application/json; charset=utf-8",
		` {"status":"sleeping","unknown":{"a":[1]},"scheduled-workers":[{"host":"h01","rank":3}]} `))
	got, err := connect(t, api).State(t.Context(), "acme", "")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "state", spelled(got), spelled(v1.State{Situation: v1.Situation{Status: "sleeping"}, ScheduledWorkers: []v1.ScheduledWorker{{Host: "h01"}}}))
}

func TestReadingsUnderFaults(t *testing.T) {
	t.Parallel()
	const big = maxBody + 1
	type F = []fakeapi.Fault
	for name, row := range map[string]struct {
		faults []fakeapi.Fault
		want   []string
		tries  int
	}{
		"another content type":     {F{fakeapi.ContentType("text/plain")}, nil, 1},
		"cut once":                 {F{fakeapi.Cut()}, nil, 2},
		"lost once":                {F{fakeapi.CloseBefore()}, nil, 2},
		"cut for good":             {F{fakeapi.Cut(), fakeapi.Cut(), fakeapi.Cut()}, []string{"200 OK: the body was cut after", "unexpected EOF", "after 3 tries"}, 3},
		"half of the JSON":         {F{fakeapi.Truncate()}, []string{"200 OK", "not the JSON that belongs there", `[{"hostname":"h01"`}, 1},
		"HTML":                     {F{fakeapi.Raw(200, "text/html", "<html>Login</html>")}, []string{"200 OK", `content type "text/html"`, "<html>Login</html>"}, 1},
		"garbage":                  {F{fakeapi.Raw(200, "application/json", "\x00\xff\x1b[2J")}, []string{"200 OK", "not the JSON that belongs there"}, 1},
		"null":                     {F{fakeapi.Raw(200, "application/json", "null\n")}, []string{"null stands for nothing known"}, 1},
		"an object for a list":     {F{fakeapi.Raw(200, "application/json", "{}")}, []string{"cannot unmarshal object"}, 1},
		"nothing":                  {F{fakeapi.Raw(200, "application/json", "")}, []string{"unexpected end of JSON input", "the answer has no text"}, 1},
		"more after the JSON":      {F{fakeapi.Raw(200, "application/json", "[] []")}, []string{"after top-level value"}, 1},
		"huge":                     {F{fakeapi.Huge(big)}, []string{"200 OK: the body is larger than 16 MiB"}, 1},
		"huge, but allowed":        {F{fakeapi.Huge(maxBody)}, []string{"cannot unmarshal string"}, 1},
		"a huge error":             {F{fakeapi.Status(400, strings.Repeat("x", maxErrorBody))}, []string{`400 Bad Request: {"errors":[{"error-message":"xxx`, "xxx…"}, 1},
		"a redirect":               {F{redirect}, []string{`302 Found: the API is at "http://elsewhere.example/"`}, 1},
		"a server error that ends": {F{fakeapi.Status(500, "oops"), fakeapi.Status(502, "oops")}, nil, 3},
		"a status from nowhere":    {F{fakeapi.Raw(299, "application/json", "[]")}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.SetHosts("acme", v1.Host{Hostname: "h01", Application: "os-upgrade-debian"})
			api.Inject("GET", "/hosts", row.faults...)
			_, err := connect(t, api, retries(2)).Hosts(t.Context(), "acme", "")
			if row.want == nil && err != nil {
				t.Fatalf("got %v, want success", err)
			}
			if row.want != nil {
				wantError(t, err, append(row.want, "cannot GET /v1/state/tenants/acme/os-upgrade/hosts: ")...)
			}
			wantEqual(t, "requests", api.Count("GET", "/hosts"), row.tries)
		})
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.SetHosts("acme", v1.Host{Hostname: "h01"})
	c, ctx := connect(t, api), t.Context()
	run, err := c.Start(ctx, "acme", v1.Start{OverrideWindow: true, Reason: "urgent"})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "reason", run.RequestReason, "urgent")
	wantEqual(t, "hosts", spelled(run.Hosts), spelled([]v1.RunHost{{Hostname: "h01", Status: "preparing"}}))

	_, err = c.Start(ctx, "acme", v1.Start{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 412 || e.Errors[0].Info.Run != run.ID {
		t.Errorf("got %v, want a 412 that names run %d", err, run.ID)
	}
	got, err := c.Run(ctx, "acme", run.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "run", spelled(got), spelled(run))
	_, err = c.Run(ctx, "acme", run.ID+1)
	wantEqual(t, "a run that is not there is missing", Missing(err), true)
}

func TestStartUnderFaults(t *testing.T) {
	t.Parallel()
	type F = []fakeapi.Fault
	for name, row := range map[string]struct {
		faults []fakeapi.Fault
		want   []string
		tries  int
		runs   int
	}{
		"too many requests":        {F{fakeapi.RetryAfter(429, "0")}, nil, 2, 1},
		"unavailable":              {F{fakeapi.RetryAfter(503, "0")}, nil, 2, 1},
		"server error":             {F{fakeapi.Status(500, "oops")}, []string{"500 Internal Server Error: oops"}, 1, 0},
		"bad gateway after effect": {F{fakeapi.StatusAfter(502, "oops")}, []string{"502 Bad Gateway: oops"}, 1, 1},
		"lost before the effect":   {F{fakeapi.CloseBefore()}, []string{"EOF"}, 1, 0},
		"lost after the effect":    {F{fakeapi.CloseAfter()}, []string{"EOF"}, 1, 1},
		"cut answer":               {F{fakeapi.Cut()}, []string{"the body was cut"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.Inject("POST", "/start", row.faults...)
			_, err := connect(t, api).Start(t.Context(), "acme", v1.Start{})
			if row.want == nil && err != nil {
				t.Fatalf("got %v, want success", err)
			}
			if row.want != nil {
				wantError(t, err, append(row.want, "cannot POST /v1/state/tenants/acme/os-upgrade/start: ")...)
			}
			wantEqual(t, "requests", api.Count(http.MethodPost, ""), row.tries)
			wantEqual(t, "runs", len(api.Runs("acme")), row.runs)
		})
	}
}

func TestRunsComeNewestFirst(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	for _, id := range []uint64{3, 7, 9} {
		api.AddRun("acme", v1.Run{ID: id, Phase: "finished", Result: "completed", Hosts: []v1.RunHost{{Hostname: "h01"}}})
	}
	runs, err := connect(t, api).Runs(t.Context(), "acme", v1.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	ids := []uint64{}
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	if !slices.Equal(ids, []uint64{9, 7, 3}) {
		t.Errorf("got runs %v", ids)
	}
}

// FuzzNextLink checks that no header leads to a link without an end, and that a login with
// any answer has a token that can be sent, or none.
func FuzzNextLink(f *testing.F) {
	f.Add(`</v1/x?after=a&limit=2>; rel="next"`, []byte(`{"token":"osu_1","expires-in":60}`))
	f.Add(`<:>; rel=next, <x`, []byte(`{"token":"a\nb"}`))
	f.Fuzz(func(t *testing.T, value string, body []byte) {
		if link := nextLink(http.Header{"Link": {value}}); link != nil && !strings.Contains(value, ">") {
			t.Errorf("%q leads to %s", value, link)
		}
		if g, err := readGrant(body); err == nil && (g.token == "" || strings.ContainsAny(g.token, " \r\n") || g.life < 0) {
			t.Errorf("%s is read as %+v", body, g)
		}
	})
}
