package api

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The paths that most operations begin with.
const (
	configPath = "/v1/config" + ofTenant + "/os-upgrade"
	statePath  = "/v1/state" + ofTenant + "/os-upgrade"

	// Those of users and approles are Avassa's.
	authentication = ofTenant + "/strongbox/authentication"
	usersPath      = "/v1/config" + authentication + "/userpass"
	approlesPath   = "/v1/config" + authentication + "/approles"
	policiesPath   = "/v1/config" + ofTenant + "/policy/policies"
	tenantsPath    = "/v1/config/tenants"
)

// groups are the chapters of the reference, in their order.
var groups = []string{groupConfig, groupState, groupRuns, groupHosts, groupWindows, groupJoin, groupTokens, groupLogins, groupTenants, groupNews, groupAudit, groupSite}

const (
	groupConfig  = "Configuration"
	groupState   = "State"
	groupRuns    = "Runs"
	groupHosts   = "Hosts"
	groupWindows = "Windows"
	groupJoin    = "Hosts that join"
	groupTokens  = "Tokens"
	groupLogins  = "Users, approles and policies"
	groupNews    = "News"
	groupTenants = "Tenants"
	groupAudit   = "Audit log"
	groupSite    = "Site"
)

// The parameters that several operations have.
var (
	fieldsParameter = parameter{
		name: "fields", schema: schema{"type": "string"},
		about: "The members to return, such as a,b or a/b or a/[b,c]. A list is restricted in each of its entries.",
	}
	siteParameter = parameter{
		name: "site", schema: schema{"type": "string"},
		about: "The name of the site. A site answers only for itself.",
	}
	validateParameter = flag("validate", "Check the request and change nothing.")
	unknownParameter  = oneOf(unknownMembers, "Whether to keep members that the site does not know. By default they are refused; with keep they are stored and returned, without effect. "+
		"A later write without keep preserves them. An entry of a list keeps them as long as its name, or the whole entry, stays the same.", "keep")
	ifMatch = parameter{
		name: "If-Match", schema: schema{"type": "string"},
		about: "The ETag of the revision that the request is based on. If the object has changed since, the request fails with 412.",
	}
	ifNoneMatch = parameter{
		name: "If-None-Match", schema: schema{"type": "string"},
		about: "With *, the object is created only if it does not exist. With GET and an ETag, the answer is 304 while the object still has that ETag.",
	}
)

// unknownMembers is the query parameter that says what becomes of unknown members.
const unknownMembers = "unknown"

// instantParameter is a query parameter with a time.
func instantParameter(name, about string) parameter {
	return parameter{name: name, about: about, schema: schema{"type": "string", "format": "date-time"}}
}

// reading are the query parameters of an operation that reads state.
func reading(more ...parameter) []parameter {
	return append([]parameter{fieldsParameter, siteParameter}, more...)
}

// selecting are the query parameters that choose hosts, as v1.Selector has them.
func selecting(more ...parameter) []parameter {
	list := func(name, about string) parameter {
		return parameter{name: name, about: about, repeats: true, schema: schema{"type": "array", "items": schema{"type": "string"}}}
	}
	return append([]parameter{
		list("host", "Only hosts of this name, or runs with such a host. Repeat the parameter for one of several names."),
		list("label", "Only hosts with this label, or runs with a host that has it now, as KEY=VALUE, or KEY=VALUE,VALUE for one of several values. Repeat the parameter for hosts that have all of several labels."),
		list("role", "Only hosts with this role, or runs with a host that has it now. Repeat the parameter for one of several roles."),
		list("environment", "Only hosts that are in this environment, or runs of it; default has the hosts that are in no other. Repeat the parameter for one of several environments."),
	}, more...)
}

// listing returns the operation that reads a list, with the parameters of lists.
func listing(r route) route {
	r.query = append(slices.Clone(r.query),
		parameter{name: "keys", about: "Return only the keys of the entries.", schema: schema{"type": "string", "enum": []string{"true", ""}}, check: func(value string) error {
			if value == "" || value == "true" {
				return nil
			}
			return badRequest("keys", value, `is invalid; use "true" or omit the parameter`)
		}},
		flag("count", "Return only the number of entries."))
	r.returns = ok(r.returns[0].about, anyOf{r.returns[0].body, []string{}, 0})
	return r
}

func ok(about string, body any) []response {
	return []response{{status: http.StatusOK, about: about, body: body}}
}

// routes returns the table of all operations.
func routes() []route {
	return slices.Concat(
		objectRoutes(objectPath{path: configPath, noun: "os-upgrade configuration", key: "config", warns: true, force: "Delete it even while a run is in progress. The run continues.", keeps: true}, (*server).configs),
		objectRoutes(objectPath{path: configPath + "/rollout", noun: "rollout", key: "rollout", warns: true, keeps: true}, only((*server).rollouts)),
		objectRoutes(objectPath{path: configPath + "/calendars/{name}", noun: "calendar", key: "calendar/{name}", several: true, keeps: true}, (*server).calendar),
		objectRoutes(objectPath{
			path: configPath + "/environments/{name}", noun: "environment", key: "environment/{name}", several: true, keeps: true, warns: true,
			force: "Delete it even while it has hosts or a run is in progress. The run continues.",
		}, (*server).environment),
		objectRoutes(objectPath{path: configPath + "/budgets/{name}", noun: "disruption budget", key: "budget/{name}", several: true, keeps: true, warns: true}, (*server).budget),
		releaseRoutes(),
		objectRoutes(objectPath{path: configPath + "/webhooks/{name}", noun: "webhook", key: "webhook/{name}", group: groupNews, several: true}, (*server).webhook),
		unserved(objectRoutes(objectPath{path: usersPath + "/{name}", noun: "user", key: "user/{name}", group: groupLogins, several: true}, (*server).user)),
		unserved(objectRoutes(objectPath{path: approlesPath + "/{name}", noun: "approle", key: "approle/{name}", group: groupLogins, several: true}, (*server).approle)),
		unserved(objectRoutes(objectPath{path: policiesPath + "/{name}", noun: "policy", key: "policy/{name}", group: groupLogins, force: "Delete it even if users, approles or tokens name it. It then grants them nothing.", several: true}, (*server).policy)),
		objectRoutes(objectPath{
			path: tenantsPath + "/{tenant}", noun: "tenant", key: "tenant/{tenant}", group: groupTenants, ofSite: true, several: true, created: []parameter{restoreParameter},
			force: "Remove it even if it has hosts or a run is in progress: the run is aborted and the keys of the hosts are revoked.",
		}, (*server).tenantObject),
		unserved(tenantRoutes()), unserved(loginRoutes()), configRoutes(), stateRoutes(), runRoutes(), fleetLockRoutes(), unserved(joinRoutes()), unserved(tokenRoutes()), unserved(credentialRoutes()),
		newsRoutes(), unserved(auditRoutes()), siteRoutes(), documentRoutes(),
	)
}

// unserved returns operations that commands on the site's machine may send for tenants that
// are not served, and that need no controller.
func unserved(all []route) []route {
	for i := range all {
		all[i].unserved = true
	}
	return all
}

// credentialRoutes are the operations on all credentials alike, and on the keys of hosts.
func credentialRoutes() []route {
	const credentials = "/v1/state" + ofTenant + "/strongbox/credentials"
	return []route{
		listing(route{
			method: http.MethodGet, path: credentials, own: true, group: groupTokens, handle: (*server).getCredentials,
			summary: "List the tokens, users, approles and host keys, without their secrets",
			about:   "The tenant * lists those of all tenants, including those whose files are damaged.",
			query:   reading(), returns: ok("The credentials, ordered by kind, tenant and owner.", []v1.Credential{}),
		}),
		{
			method: http.MethodDelete, path: credentials + "/{id}", own: true, group: groupTokens, handle: (*server).deleteCredential,
			action: "delete", object: "credential/{id}", summary: "Revoke a token, a user, an approle or a host key", query: []parameter{siteParameter},
			about:   "Revoking a user or an approle also ends its logins. A worker that is connected with a revoked host key is disconnected within a second.",
			returns: []response{{status: http.StatusNoContent, about: "The credential is revoked."}},
		},
		{
			method: http.MethodPost, path: statePath + "/hosts/{host}/keys", own: true, group: groupJoin, handle: (*server).postHostKey,
			action: "add-key", object: "host/{host}", summary: "Register the key of a host", query: []parameter{siteParameter},
			about: "The key is the public part of an Ed25519 key in the notation of NATS. The host proves that it has the seed when it connects. A host that joins with a join token does not need this.",
			takes: v1.NewHostKey{}, returns: []response{{status: http.StatusCreated, about: "The host may connect with the key.", body: v1.HostKey{}}},
			errors: []int{http.StatusConflict},
		},
	}
}

// objectPath describes the operations of an object of the configuration.
type objectPath struct {
	path, noun string
	// group is the chapter of the reference; empty means groupConfig.
	group string
	// key is what an audit record calls it.
	key string
	// force says what a deletion with force does; empty means that none needs it.
	force string
	// ofSite tells that it belongs to the site, created are the parameters of its creation.
	ofSite  bool
	created []parameter
	// several tells that a tenant has many, keeps that members which the site does not
	// know can be kept, warns that an answer may have warnings.
	several, keeps, warns bool
}

// objectRoutes are the operations of an object of the configuration.
func objectRoutes[T any](d objectPath, of func(*server, *call) (*object[T], error)) []route {
	var value T
	tag := map[string]string{"ETag": "The revision of the object."}
	written := []response{{status: http.StatusNoContent, about: "The object is replaced, or with validate=true the request is valid.", headers: tag}}
	created := response{
		status: http.StatusCreated, about: "The object is created.",
		headers: map[string]string{"ETag": tag["ETag"], "Location": "The path of the object."},
	}
	if d.warns {
		warned := maps.Clone(tag)
		warned[v1.WarningHeader] = "A part of the object that matches no known host: 299 - \"FIELD: TEXT\". There is one such header for each."
		created.headers[v1.WarningHeader], written[0].headers = warned[v1.WarningHeader], warned
	}
	deletion := []parameter{validateParameter}
	if d.force != "" {
		deletion = append(deletion, flag("force", d.force))
	}
	base := route{
		path: d.path, own: !d.ofSite, group: cmp.Or(d.group, groupConfig), query: []parameter{validateParameter},
		headers: []parameter{ifMatch, ifNoneMatch}, errors: []int{http.StatusPreconditionFailed},
	}
	get, put, patch, remove := base, base, base, base

	get.method, get.handle = http.MethodGet, answering(of, (*object[T]).answerGet)
	get.summary, get.query = "Read the "+d.noun, []parameter{fieldsParameter, validateParameter}
	get.returns = []response{
		{status: http.StatusOK, about: "The object.", body: value, headers: tag},
		{status: http.StatusNotModified, about: "The object still has the ETag of If-None-Match.", headers: tag},
	}

	if d.keeps {
		put.query = append(slices.Clone(put.query), unknownParameter)
		patch.query = put.query
	}
	put.query = append(slices.Clone(put.query), d.created...)
	put.method, put.handle, put.summary = http.MethodPut, answering(of, (*object[T]).answerPut), "Create or replace the "+d.noun
	put.takes, put.returns = value, append([]response{created}, written...)

	patch.method, patch.handle, patch.summary = http.MethodPatch, answering(of, (*object[T]).answerPatch), "Change members of the "+d.noun
	patch.takes, patch.returns, patch.errors = value, written, []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired}
	patch.about = "The body is an object to merge (RFC 7396), in which null removes a member, or a list of changes (RFC 6902). " +
		"A change that names a list entry by its index needs If-Match or a test operation."

	remove.method, remove.handle, remove.summary = http.MethodDelete, answering(of, (*object[T]).answerDelete), "Delete the "+d.noun
	put.action, patch.action, remove.action = "write", "change", "delete"
	put.object, patch.object, remove.object = d.key, d.key, d.key
	remove.query, remove.returns = deletion, []response{{status: http.StatusNoContent, about: "The object is deleted, or with validate=true it could be."}}
	if d.ofSite {
		put.errors, remove.errors = []int{http.StatusConflict, http.StatusPreconditionFailed}, []int{http.StatusConflict, http.StatusPreconditionFailed}
	}
	return []route{get, put, patch, remove}
}

// releaseRoutes are the operations on a release, which never changes but for two of its members.
func releaseRoutes() []route {
	all := objectRoutes(objectPath{path: configPath + "/releases/{name}", noun: "release", key: "release/{name}", several: true, keeps: true}, (*server).release)
	for i := range all {
		switch all[i].method {
		case http.MethodPut:
			all[i].summary, all[i].about = "Create the release, or change its description or withdrawal", "Nothing else of a release can change: a body that differs in another member is refused with 412. A body without withdrawn undoes a withdrawal."
		case http.MethodPatch:
			all[i].summary = "Change the description or the withdrawal of the release"
			all[i].about = "Nothing else of a release can change. " + all[i].about
		}
	}
	return all
}

func configRoutes() []route {
	list := func(path, nouns string, handle func(*server, *call) error, body any) route {
		return listing(route{
			method: http.MethodGet, path: configPath + path, own: true, group: groupConfig, handle: handle, summary: "List the " + nouns,
			query:   []parameter{fieldsParameter, flag("content", "Return each "+strings.TrimSuffix(nouns, "s")+" with its content.")},
			returns: ok("The "+nouns+", ordered by name.", body),
		})
	}
	create := func(path, object, noun string, handle func(*server, *call) error, takes any) route {
		one := "a " + noun
		if strings.ContainsAny(noun[:1], "aeiou") {
			one = "an " + noun
		}
		return route{
			method: http.MethodPost, path: configPath + path, own: true, group: groupConfig, handle: handle, action: "create", object: object,
			summary: "Create " + one, about: "PUT to the path of " + one + " creates or replaces it.",
			query: []parameter{validateParameter, unknownParameter}, takes: takes, errors: []int{http.StatusConflict, http.StatusPreconditionFailed},
			returns: []response{
				{status: http.StatusCreated, about: "The " + noun + " is created.", headers: map[string]string{"ETag": "The revision of the object.", "Location": "The path of the object."}},
				{status: http.StatusNoContent, about: "With validate=true: the request is valid."},
			},
		}
	}
	return []route{
		list("/calendars", "calendars", (*server).getCalendars, []v1.CalendarInfo{}),
		create("/calendars", "calendar", "calendar", (*server).postCalendar, v1.NewCalendar{}),
		list("/environments", "environments", (*server).getEnvironments, []v1.EnvironmentInfo{}),
		create("/environments", "environment", "environment", (*server).postEnvironment, v1.NewEnvironment{}),
		list("/budgets", "disruption budgets", (*server).getBudgets, []v1.BudgetInfo{}),
		create("/budgets", "budget", "disruption budget", (*server).postBudget, v1.NewBudget{}),
		list("/releases", "releases", (*server).getReleases, []v1.ReleaseInfo{}),
		create("/releases", "release", "release", (*server).postRelease, v1.NewRelease{}),
	}
}

// stateGet makes the operation that reads a part of the state.
type stateGet func(path, group, summary string, handle func(*server, *call) error, body any, query ...parameter) route

// listOfEnvironments is the operation that lists what environments are doing.
func listOfEnvironments(get stateGet) route {
	environments := listing(get("/environments", groupState, "List the environments and what each is doing", (*server).getEnvironmentStates, []v1.EnvironmentStatus{},
		parameter{name: "after", about: "Return only environments after this name (for paging).", schema: schema{"type": "string"}},
		parameter{name: "limit", about: "The largest number of environments to return; all if absent.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxEnvironments}}))
	environments.about = "Environments are ordered by name, with default among them. With limit they are returned in pages: the header Link has the next page, if there is one. " +
		"count=true counts all of them and cannot be combined with after and limit."
	environments.returns[0].headers = map[string]string{"Link": "The next page, as rel=\"next\"; absent on the last page."}
	return environments
}

// environmentWindows are the parameters that say whose windows are meant.
var environmentWindows = []parameter{
	{name: "environment", about: "Only the windows of this environment; those of the tenant if absent.", schema: schema{"type": "string"}},
	flag("environments", "Also the windows of environments that have their own; each says whose it is."),
}

func stateRoutes() []route {
	get := func(path, group, summary string, handle func(*server, *call) error, body any, query ...parameter) route {
		return route{
			method: http.MethodGet, path: statePath + path, own: true, group: group, handle: handle,
			summary: summary, query: reading(query...), returns: ok("The answer.", body),
		}
	}
	feed := get("/windows.ics", groupWindows, "Subscribe to the windows of the next twelve months", (*server).getFeed, nil)
	feed.query = []parameter{siteParameter, {
		name: urlToken, schema: schema{"type": "string"},
		about: "A token whose only role is calendar, for programs that cannot send an Authorization header.",
	}, environmentWindows[0], environmentWindows[1]}
	feed.returns = []response{{status: http.StatusOK, about: "An iCalendar text (RFC 5545).", contentType: "text/calendar", headers: map[string]string{"Content-Disposition": "The name of the file."}}}
	events := get("/events", groupNews, "Follow changes as server-sent events", (*server).getEvents, nil)
	events.query = []parameter{
		siteParameter, oneOf("hosts", "Send all hosts of a run once, and after that only those that have changed.", "changed"),
		{name: "environment", about: "Send the situation and the runs of this environment only; default has the hosts that are in no other.", schema: schema{"type": "string"}},
	}
	events.headers = []parameter{{
		name: lastEventID, schema: schema{"type": "string"},
		about: "The id of the last event that a reconnecting client has seen. Ids stay valid when the site restarts.",
	}}
	events.about = "The first events describe the current state: situation, and run if there has been one. Each is sent again whenever it changes. " +
		"With hosts=changed, a run is sent once; after that, changes has the run with only the hosts that have changed. versions is a report of a host. " +
		"news is an entry of the list of news. A client that reconnects with Last-Event-ID receives the news that it has missed, as far back as the 1,000 that are kept. " +
		"If Last-Event-ID belongs to another log or is too old, reset comes first: discard what you know, because events may be missing before it. " +
		"A comment is sent every 3 seconds. A client that does not read for 10 seconds is disconnected."
	events.returns = []response{{status: http.StatusOK, about: "Events until the client disconnects or its token expires. Their names are reset, news, situation, run, changes and versions.", contentType: "text/event-stream"}}
	hosts := listing(get("/hosts", groupHosts, "List the hosts", (*server).getHosts, []v1.Host{}, selecting(
		parameter{name: "after", about: "Return only hosts after this name (for paging).", schema: schema{"type": "string"}},
		parameter{name: "limit", about: "The largest number of hosts to return; all if absent.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxHosts}},
		flag("inventory", "Include the inventory of each host: what its machine consists of."))...))
	hosts.about = "Hosts are ordered by name. With limit they are returned in pages: the header Link has the next page, if there is one. " +
		"A host that appears or disappears in between does not shift the others between pages. count=true counts the hosts that are chosen and cannot be combined with after and limit."
	hosts.returns[0].headers = map[string]string{
		"Link":           "The next page, as rel=\"next\"; absent on the last page.",
		v1.WarningHeader: "If no host is chosen: what of host, label, role and environment no host has, and what hosts have: 299 - \"PARAMETER: TEXT\". There is one such header for each.",
	}
	return slices.Concat([]route{
		get("", groupState, "Read the state", (*server).getState, anyOf{v1.State{}, v1.OSUpgrade{}},
			oneOf("content", "config returns only the configuration, nonconfig everything else.", "config", "nonconfig")),
		listOfEnvironments(get),
		missingToo(get("/environments/{name}", groupState, "Read what an environment is doing", (*server).getEnvironmentState, v1.EnvironmentStatus{})),
		events,
		hosts,
		get("/hosts/{host}", groupHosts, "Read a host with its inventory and its last reports of versions", (*server).getHost, v1.Host{}),
		get("/hosts/{host}/offer", groupHosts, "Read what an upgrade of a host would change now", (*server).getOffer, v1.HostPlan{}),
	}, changingHosts(), []route{
		get("/windows", groupWindows, "List upcoming windows", (*server).getWindows, []v1.Window{},
			instantParameter("from", "Only windows that end after this time; now if absent."),
			instantParameter("to", "Only windows that begin before this time."),
			parameter{name: "count", about: "The largest number of windows to return.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxWindowsListed, "default": v1.DefaultWindows}},
			environmentWindows[0], environmentWindows[1]),
		feed,
	}, skippingWindows(), []route{
		listing(get("/calendars", groupWindows, "List the calendars with a URL, and their last fetch", (*server).getCalendarStates, []v1.CalendarState{})),
		missingToo(get("/calendars/{name}", groupWindows, "Read a calendar with a URL: its last fetch and its events", (*server).getCalendarState, v1.CalendarState{})),
		{
			method: http.MethodPost, path: statePath + "/calendars/{name}/refresh", own: true, group: groupWindows, handle: (*server).refreshCalendar,
			action: "refresh", object: "calendar/{name}", summary: "Fetch a calendar with a URL now",
			about: "Waits for the fetch. If it fails, error says why, and the events fetched earlier stay in force.",
			query: []parameter{siteParameter}, returns: ok("What was fetched.", v1.CalendarState{}), errors: []int{http.StatusNotFound, http.StatusServiceUnavailable},
		},
	})
}

// skippingWindows are the operations that skip windows.
func skippingWindows() []route {
	return []route{
		{
			method: http.MethodPost, path: statePath + "/skip-window", own: true, group: groupWindows, handle: (*server).postSkipWindow,
			action: "skip", object: "window", summary: "Skip a window",
			about: "The next window, or the one that opens at window-start, opens no run by itself. Skipping it again changes nothing. If an edit moves the window, it is no longer skipped.",
			query: []parameter{siteParameter}, takes: v1.SkipWindow{}, returns: ok("The skipped window.", v1.SkippedWindow{}), errors: []int{http.StatusNotFound, http.StatusPreconditionFailed},
		},
		{
			method: http.MethodDelete, path: statePath + "/skip-window", own: true, group: groupWindows, handle: (*server).deleteSkipWindow,
			action: "unskip", object: "window", summary: "Let a skipped window open its run",
			query: []parameter{
				siteParameter,
				{name: "environment", about: "The environment; default if absent.", schema: schema{"type": "string"}},
				instantParameter("window-start", "When the window opens; the next one that is skipped if absent."),
			},
			returns: []response{{status: http.StatusNoContent, about: "The window is not skipped any more."}}, errors: []int{http.StatusNotFound, http.StatusPreconditionFailed},
		},
	}
}

// changingHosts are the operations that change what is so for a host.
func changingHosts() []route {
	return []route{
		{
			method: http.MethodDelete, path: statePath + "/hosts/{host}", own: true, group: groupHosts, handle: (*server).deleteHost,
			action: "forget", object: "host/{host}",
			summary: "Forget a host that will not come back", errors: []int{http.StatusPreconditionFailed},
			query:   []parameter{siteParameter, {name: "reason", about: "The reason; it is stored with the current run.", schema: schema{"type": "string", "maxLength": v1.MaxReason}}},
			returns: []response{{status: http.StatusNoContent, about: "The host is deleted."}},
		},
		{
			method: http.MethodPut, path: statePath + "/hosts/{host}/environment", own: true, group: groupHosts, handle: (*server).putHostEnvironment,
			action: "move", object: "host/{host}", summary: "Move a host into an environment",
			about: "The host is assigned to the environment, whatever matches it, until it is moved again or the environment is deleted. With an empty name, the matches decide again. " +
				"A member of a run in progress moves when that run has ended.",
			query: []parameter{siteParameter}, takes: v1.Move{}, returns: ok("Where the host is now.", v1.HostEnvironment{}), errors: []int{http.StatusNotFound},
		},
		{
			method: http.MethodPost, path: statePath + "/refresh", own: true, group: groupHosts, handle: (*server).postHostsRefresh,
			action: "refresh", object: "hosts", optional: true,
			summary: "Make hosts check what an upgrade would change",
			about:   "A host that is asked fetches its lists of packages and reports what an upgrade would change. The answer does not wait for that. A host is asked at most once a minute.",
			query:   []parameter{siteParameter}, takes: v1.Refresh{}, returns: ok("How many hosts look.", v1.Refreshed{}), errors: []int{http.StatusNotFound, http.StatusPreconditionFailed},
		},
	}
}

// missingToo returns a route whose object may be missing.
func missingToo(r route) route {
	r.errors = append(r.errors, http.StatusNotFound)
	return r
}

func runRoutes() []route {
	get := func(path, summary string, handle func(*server, *call) error, body any, query ...parameter) route {
		return route{
			method: http.MethodGet, path: statePath + "/runs" + path, own: true, group: groupRuns, handle: handle,
			summary: summary, query: reading(query...), returns: ok("The answer.", body),
		}
	}
	post := func(operation, summary string, handle func(*server, *call) error, takes any) route {
		return route{
			method: http.MethodPost, path: statePath + "/" + operation, own: true, group: groupRuns, handle: handle,
			summary: summary, query: []parameter{siteParameter}, takes: takes, returns: ok("The run.", v1.Run{}), errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
			action: operation, object: "run",
		}
	}
	start := post("start", "Start a run", (*server).postStart, v1.Start{})
	start.optional = true
	start.query = append(start.query, flag("validate", "Start nothing; return what a start would do."))
	start.returns = []response{{status: http.StatusOK, about: "The run, or with validate=true what a start would do.", body: anyOf{v1.Run{}, v1.Preflight{}}}}
	start.about = "While the run still asks what has to pass before it prepares any host, the answer comes after 20 s at the latest: its phase is open, and it can be read by this id until it has its own."
	health := post("health", "Ask what a run would ask before it prepares any host", (*server).postHealth, v1.AskHealth{})
	health.optional, health.action, health.object = true, "ask", "health"
	health.about = "Asks the checks.start of the rollout, at the site and on the hosts that each matches, without a run. The answer has what has come out within 20 s; read the rest by its id."
	health.returns = ok("What has come out.", v1.HealthReport{})
	healthOf := route{
		method: http.MethodGet, path: statePath + "/health/{id}", own: true, group: groupRuns, handle: (*server).getHealth,
		summary: "Read how a request for the health came out", about: "Waits until all has come out, for at most 20 s. The site keeps the last 16 requests, until it restarts.",
		query: []parameter{siteParameter}, returns: ok("What has come out.", v1.HealthReport{}), errors: []int{http.StatusNotFound},
	}
	list := []route{
		health, healthOf,
		listing(get("", "List runs, newest first", (*server).getRuns, []v1.Run{}, selecting(
			parameter{name: "result", about: "Only runs with this result.", schema: schema{"type": "string"}},
			instantParameter("since", "Only runs that were opened at this time or later."),
			instantParameter("until", "Only runs that were opened before this time."),
			parameter{name: "limit", about: "The largest number of runs to return.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxRuns, "default": v1.DefaultRuns}})...)),
		get("/{id}", "Read a run", (*server).getRun, v1.Run{}),
		get("/{id}/installed", "Read what a run has installed, as a release", (*server).getInstalled, v1.Installed{}),
		get("/{id}/hosts/{host}/output", "Read the output of the actions of a host", (*server).getOutput, []v1.ActionOutput{}),
		get("/{id}/hosts/{host}/plan", "Read what a run changes on a host", (*server).getPlan, v1.HostPlan{}),
		start,
	}
	for _, o := range []struct {
		ask     run.Ask
		summary string
	}{
		{run.Pause, "Pause the current run"},
		{run.Resume, "Resume the current run"},
		{run.Abort, "Abort the current run"},
		{run.Approve, "Approve a stage"},
		{run.Release, "Release the slot of a host"},
	} {
		r := post(string(o.ask), o.summary, postAsk(o.ask), v1.Ask{})
		if o.ask == run.Abort {
			r.returns = ok("The run; with all, the list of the runs that were in progress.", anyOf{v1.Run{}, []v1.Run{}})
		}
		list = append(list, r)
	}
	return list
}

// joinPath is where a host joins. Its request has a join token.
const joinPath = "/v1/join"

func joinRoutes() []route {
	const tokens = statePath + "/join-tokens"
	base := route{own: true, group: groupJoin, query: []parameter{siteParameter}}
	list, create, remove := base, base, base
	list.method, list.path, list.handle, list.query = http.MethodGet, tokens, joining((*server).getJoinTokens), reading()
	list.summary, list.returns = "List join tokens, without their secrets", ok("The tokens.", []v1.JoinToken{})
	create.method, create.path, create.handle, create.takes = http.MethodPost, tokens, joining((*server).postJoinToken), v1.NewJoinToken{}
	create.summary, create.action, create.object = "Create a join token", "create", "join-token"
	remove.action, remove.object = "delete", "join-token/{id}"
	create.returns = []response{{status: http.StatusCreated, about: "The token. Its text is returned only in this answer.", body: v1.JoinToken{}, headers: map[string]string{"Location": "The path of the token."}}}
	remove.method, remove.path, remove.handle = http.MethodDelete, tokens+"/{id}", joining((*server).deleteJoinToken)
	remove.summary, remove.returns = "Revoke a join token", []response{{status: http.StatusNoContent, about: "The token is revoked."}}
	const waiting = statePath + "/waiting-hosts"
	decide := func(what string, handle func(*server, *call) error, about string) route {
		r := base
		r.method, r.path, r.handle, r.takes = http.MethodPost, waiting+"/{host}/"+what, joining(handle), v1.HostVerdict{}
		r.action, r.object, r.errors = what+"-host", "host/{host}", []int{http.StatusNotFound, http.StatusConflict}
		r.summary = strings.ToUpper(what[:1]) + what[1:] + " a host that waits for approval"
		r.returns = []response{{status: http.StatusNoContent, about: about}}
		return r
	}
	waits := base
	waits.method, waits.path, waits.handle, waits.query = http.MethodGet, waiting, joining((*server).getWaitingHosts), reading()
	waits.summary, waits.returns = "List hosts that wait for approval", ok("The hosts.", []v1.WaitingHost{})
	return []route{
		{
			method: http.MethodGet, path: "/v1/join/ca", public: true, group: groupJoin, handle: joining((*server).getAuthority),
			summary: "Read the certificates to trust for the site", returns: ok("The certificates.", v1.Authority{}), errors: []int{http.StatusNotFound},
		},
		{
			method: http.MethodPost, path: joinPath, public: true, group: groupJoin, handle: joining((*server).postJoin),
			summary: "Join the site as a host", about: "The Authorization header carries a join token.",
			takes: v1.Join{}, action: "join", object: "host",
			returns: append(ok("Everything that the worker of the host needs.", v1.Joined{}), response{status: http.StatusAccepted, about: "The same, and the host waits for approval.", body: v1.Joined{}}),
			errors:  []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests},
		},
		listing(list), create, remove, listing(waits),
		decide("approve", decideHost(true), "The host is let in."), decide("refuse", decideHost(false), "The host is not let in with this key and join token."),
	}
}

func tokenRoutes() []route {
	const tokens = "/v1/state" + ofTenant + "/strongbox/tokens"
	at := map[string]string{"Location": "The path of the token."}
	base := route{path: tokens + "/{id}", own: true, group: groupTokens, query: []parameter{siteParameter}}
	list, create, get, remove, rotate := base, base, base, base, base
	list.method, list.path, list.handle, list.query = http.MethodGet, tokens, (*server).getTokens, reading()
	list.summary, list.returns = "List the tokens, without their texts", ok("The tokens.", []v1.Token{})
	create.method, create.path, create.handle, create.takes = http.MethodPost, tokens, (*server).postToken, v1.NewToken{}
	create.summary, create.action, create.object = "Create a token", "create", "token"
	remove.action, remove.object = "delete", "token/{id}"
	rotate.action, rotate.object = "rotate", "token/{id}"
	create.returns = []response{{status: http.StatusCreated, about: "The token. Its text is returned only in this answer.", body: v1.Token{}, headers: at}}
	get.method, get.handle, get.query = http.MethodGet, (*server).getToken, reading()
	get.summary, get.returns = "Read a token, without its text", ok("The token.", v1.Token{})
	remove.method, remove.handle = http.MethodDelete, (*server).deleteToken
	remove.summary, remove.returns = "Revoke a token", []response{{status: http.StatusNoContent, about: "The token is revoked: further requests with it are refused, and its event streams end."}}
	rotate.method, rotate.path, rotate.handle, rotate.takes = http.MethodPost, tokens+"/{id}/rotate", (*server).postRotate, v1.Rotation{}
	rotate.optional, rotate.errors = true, []int{http.StatusConflict}
	rotate.summary = "Replace a token with a new one"
	rotate.returns = []response{{status: http.StatusCreated, about: "The new token, with the properties of the old one. Its text is returned only in this answer.", body: v1.Token{}, headers: at}}
	login := route{
		method: http.MethodPost, path: "/v1/login", public: true, group: groupTokens, handle: (*server).postLogin,
		summary: "Log a user in", about: "The token expires after a while; a refresh extends it.",
		takes: v1.Login{}, action: "login", object: "token", returns: ok("The token.", v1.LoggedIn{}), errors: []int{http.StatusUnauthorized, http.StatusTooManyRequests},
	}
	approle := login
	approle.path, approle.handle, approle.summary, approle.takes = "/v1/approle-login", (*server).postApproleLogin, "Log an approle in", v1.ApproleLogin{}
	refresh := route{
		method: http.MethodPost, path: refreshPath, group: groupTokens, handle: (*server).postRefresh,
		summary: "Extend the life of your own token", about: "The token must come from a login. The body is empty or {}.",
		query: []parameter{siteParameter}, returns: ok("The token, with its new expiry.", v1.LoggedIn{}), action: "refresh", object: "token",
	}
	password := route{
		method: http.MethodPost, path: "/v1/state/strongbox/password", group: groupTokens, handle: loggingIn((*server).postPassword),
		summary: "Change your own password", about: "The token must come from the login of a user; no role is needed. It stays valid; the tokens of the user's other logins are revoked.",
		query: []parameter{siteParameter}, takes: v1.PasswordChange{}, returns: ok("The password is changed.", v1.PasswordChanged{}), action: "change-password", object: "user",
		errors: []int{http.StatusForbidden, http.StatusConflict, http.StatusTooManyRequests},
	}
	return []route{listing(list), create, get, remove, rotate, login, approle, refresh, password}
}

// refreshPath is where the life of a token is extended; a certificate is of no use there.
const refreshPath = "/v1/state/strongbox/token/refresh"

// loginRoutes are the operations on users, approles and secret-ids that objectRoutes does
// not have.
func loginRoutes() []route {
	list := func(path, summary string, handle func(*server, *call) error, body any) route {
		return listing(route{
			method: http.MethodGet, path: path, own: true, group: groupLogins, handle: loggingIn(handle), summary: summary,
			query: []parameter{fieldsParameter}, returns: ok("The list, ordered by name.", body),
		})
	}
	read := func(path, summary string, handle func(*server, *call) error, body any) route {
		return route{
			method: http.MethodGet, path: path, own: true, group: groupLogins, handle: loggingIn(handle), summary: summary, query: reading(), returns: ok("The answer.", body),
		}
	}
	create := func(kind, path, summary, about string, handle func(*server, *call) error, takes, returns any) route {
		return route{
			method: http.MethodPost, path: path, own: true, group: groupLogins, handle: loggingIn(handle), summary: summary, about: about, action: "create", object: kind,
			query: []parameter{validateParameter}, takes: takes, errors: []int{http.StatusConflict},
			returns: []response{
				{status: http.StatusCreated, about: "Created.", body: returns, headers: map[string]string{"Location": "Its path.", "ETag": "Its revision."}},
				{status: http.StatusNoContent, about: "With validate=true, the request is valid."},
			},
		}
	}
	const users, approles = "/v1/state" + authentication + "/userpass", "/v1/state" + authentication + "/approles"
	const secrets = approles + "/{name}/secret-ids"
	secret := create("secret-id", secrets, "Create a secret-id", "Anyone who can create a secret-id can act with the rights of the approle.", (*server).postSecret, v1.NewSecretID{}, v1.SecretID{})
	secret.query, secret.optional, secret.errors = []parameter{siteParameter}, true, nil
	secret.returns = []response{{status: http.StatusCreated, about: "The secret-id. Its text is returned only in this answer.", body: v1.SecretID{}, headers: map[string]string{"Location": "Its path."}}}
	return []route{
		list(usersPath, "List the users", (*server).getUsers, []v1.User{}),
		create("user", usersPath, "Create a user", "If the body has no password, the site generates one and returns it only in this answer. You can grant only rights that you have.",
			(*server).postUser, v1.User{}, v1.User{}),
		list(policiesPath, "List the policies", (*server).getPolicies, []v1.Policy{}),
		create("policy", policiesPath, "Create a policy", "You can grant only rights that you have.", (*server).postPolicy, v1.Policy{}, v1.Policy{}),
		listing(read(users, "List the users with their state", (*server).getUserStates, []v1.UserState{})),
		read(users+"/{name}", "Read a user with its state", (*server).getUserState, v1.UserState{}),
		list(approlesPath, "List the approles", (*server).getApproles, []v1.Approle{}),
		create("approle", approlesPath, "Create an approle", "You can grant only rights that you have.", (*server).postApprole, v1.Approle{}, v1.ApproleState{}),
		listing(read(approles, "List the approles with their role-ids", (*server).getApproleStates, []v1.ApproleState{})),
		read(approles+"/{name}", "Read an approle with its role-id", (*server).getApproleState, v1.ApproleState{}),
		listing(read(secrets, "List the secret-ids of an approle, without their texts", (*server).getSecrets, []v1.SecretID{})),
		secret,
		{
			method: http.MethodDelete, path: secrets + "/{id}", own: true, group: groupLogins, handle: loggingIn((*server).deleteSecret), query: []parameter{siteParameter},
			action: "delete", object: "secret-id/{id}",
			summary: "Revoke a secret-id", returns: []response{{status: http.StatusNoContent, about: "The secret-id is revoked: no login with it succeeds any more."}},
		},
	}
}

func newsRoutes() []route {
	get := func(path, summary string, handle func(*server, *call) error, body any) route {
		return route{
			method: http.MethodGet, path: statePath + path, own: true, group: groupNews, handle: handle, summary: summary, query: reading(), returns: ok("The answer.", body),
		}
	}
	post := func(operation, summary, about string, handle func(*server, *call) error, body any) route {
		return route{
			method: http.MethodPost, path: statePath + "/webhooks/{name}/" + operation, own: true, group: groupNews, handle: handle, summary: summary, about: about,
			action: operation, object: "webhook/{name}", query: []parameter{siteParameter}, returns: ok("The result.", body), errors: []int{http.StatusNotFound},
		}
	}
	resend := post("resend", "Resend news that a webhook gave up", "They are sent in order until one fails. News that the receiver accepts are removed from the list.", onWebhook((*server).resendWebhook), v1.WebhookResent{})
	resend.takes, resend.optional = v1.WebhookResend{}, true
	configured := get("", "List the webhooks, without their secrets", (*server).getWebhooks, []v1.WebhookInfo{})
	configured.path = configPath + "/webhooks"
	one := get("/webhooks/{name}", "Read the delivery state of a webhook, with the news that it gave up", onWebhook((*server).webhookState), v1.WebhookState{})
	one.errors = []int{http.StatusNotFound}
	return []route{
		listing(get("/news", "List the news, oldest first", (*server).getNews, []v1.News{})),
		listing(configured),
		listing(get("/webhooks", "List the delivery state of the webhooks", (*server).getWebhookStates, []v1.WebhookState{})),
		one,
		post("test", "Send a test event to a webhook", "It is sent immediately and tried only once, even while the webhook is disabled.", onWebhook((*server).testWebhook), v1.WebhookTest{}),
		resend,
	}
}

func auditRoutes() []route {
	return []route{{
		method: http.MethodGet, path: "/v1/state" + ofTenant + "/audit", own: true, group: groupAudit, handle: (*server).getAudit,
		summary: "Read the audit log",
		about: "The newest records, or those after a given one, oldest first. The tenant * has the records of what belongs to all tenants. " +
			"damage lists records that were changed or are missing, among those that were read. To check the whole log, page through it from after=0.",
		query: reading(
			parameter{name: "after", about: "Return the records after this number, oldest first; if absent, the newest records.", schema: schema{"type": "integer", "minimum": 0}},
			parameter{name: "limit", about: "The largest number of records to return.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxAudit, "default": v1.DefaultAudit}},
			parameter{name: "by", about: "Only records of this user, approle, token or host.", schema: schema{"type": "string"}},
			parameter{name: "object", about: "Only records of this object, such as config, calendar/holidays or run/57, or of all objects of a kind, such as calendar.", schema: schema{"type": "string"}},
			instantParameter("since", "Only records of this time or later."),
			instantParameter("until", "Only records from before this time."),
		),
		returns: ok("The records.", v1.AuditLog{}), errors: []int{http.StatusNotFound},
	}}
}

// restoreParameter takes up what is kept of a removed tenant.
var restoreParameter = flag("restore", "Restore the log and the other stored data of the removed tenant of this name.")

// tenantRoutes are the operations on tenants that objectRoutes does not have.
func tenantRoutes() []route {
	const states = "/v1/state/tenants"
	return []route{
		listing(route{
			method: http.MethodGet, path: tenantsPath, group: groupTenants, handle: (*server).getTenants, summary: "List the tenants",
			query: []parameter{fieldsParameter}, returns: ok("The tenants, ordered by name.", []v1.Tenant{}),
		}),
		{
			method: http.MethodPost, path: tenantsPath, group: groupTenants, handle: (*server).postTenant, summary: "Create a tenant", action: "create", object: "tenant",
			about: "The tenant is in service as soon as the answer arrives; no restart is needed.", query: []parameter{validateParameter, restoreParameter}, takes: v1.Tenant{}, errors: []int{http.StatusConflict},
			returns: []response{
				{status: http.StatusCreated, about: "Created.", headers: map[string]string{"Location": "Its path.", "ETag": "Its revision."}},
				{status: http.StatusNoContent, about: "With validate=true, the request is valid."},
			},
		},
		listing(route{
			method: http.MethodGet, path: states, group: groupTenants, handle: (*server).getTenantStates, summary: "List the tenants with their state, including removed ones",
			query: reading(), returns: ok("The tenants, ordered by name.", []v1.TenantState{}),
		}),
		{
			method: http.MethodGet, path: states + "/{tenant}", group: groupTenants, handle: (*server).getTenantState, summary: "Read a tenant with its state",
			query: reading(), returns: ok("The tenant.", v1.TenantState{}),
		},
	}
}

func siteRoutes() []route {
	unseal := route{
		method: http.MethodPost, path: "/v1/state/strongbox/system/unseal", public: true, unseals: true, group: groupSite, handle: (*server).postUnseal,
		summary: "Unseal the site", about: "While the strongbox of the site is sealed, every other operation is answered with 503 \"strongbox sealed\".",
		takes: v1.Unseal{}, action: "unseal", object: "strongbox", errors: []int{http.StatusForbidden, http.StatusConflict, http.StatusTooManyRequests},
		returns: []response{{status: http.StatusNoContent, about: "The site is unsealed. If it already was, the passphrase was not checked."}},
	}
	onMachine := func(operation, action, object, summary string, handle func(*server, *call) error, takes, returns any) route {
		return route{
			method: http.MethodPost, path: "/v1/state/machine/" + operation, unserved: true, group: groupSite, handle: onlyOnMachine(handle), summary: summary,
			about: "Accepted only from commands on the site's machine, over the socket of the site.",
			takes: takes, action: action, object: object, query: []parameter{siteParameter}, returns: ok("The result.", returns), errors: []int{http.StatusConflict},
		}
	}
	strongbox := onMachine("", "", "", "Read how the strongbox is opened", (*server).getStrongbox, nil, v1.Strongbox{})
	strongbox.method, strongbox.path, strongbox.errors, strongbox.query = http.MethodGet, "/v1/state/machine/strongbox", nil, reading()
	return []route{
		strongbox,
		onMachine("strongbox/rewrap", "seal", "strongbox", "Change how the strongbox is opened", (*server).postRewrap, v1.Rewrap{}, v1.Strongbox{}),
		onMachine("strongbox/rotate", "rotate", "strongbox", "Create a new key to seal secrets", (*server).postRotateKey, v1.CurrentSecret{}, v1.Strongbox{}),
		onMachine("strongbox/reset", "reset", "strongbox", "Discard the secrets in the strongbox of a stopped site", (*server).postReset, nil, v1.StrongboxReset{}),
		onMachine("certificate", "init", "site", "Issue a certificate of the site's own authority", (*server).postSiteCertificate, v1.NewSiteCertificate{}, v1.SiteCertificate{}),
		{
			method: http.MethodGet, path: "/healthz", public: true, group: groupSite, handle: (*server).healthz,
			summary: "Check whether the process is healthy", returns: ok("It is.", v1.Health{}),
		},
		{
			method: http.MethodGet, path: "/readyz", public: true, group: groupSite, handle: (*server).readyz,
			summary: "Check whether all controllers may send commands", returns: ok("All may.", v1.Health{}),
		},
		{
			method: http.MethodGet, path: "/metrics", group: groupSite, handle: (*server).getMetrics,
			summary: "Read the metrics of the site and of the tenants that the token may read",
			returns: []response{{status: http.StatusOK, about: "Metrics in the Prometheus text format.", contentType: "text/plain"}},
			errors:  []int{http.StatusNotFound},
		},
		listing(route{
			method: http.MethodGet, path: "/v1/state/status", group: groupTenants, handle: (*server).getStatus,
			summary: "Read the status of all tenants whose state the token may read", query: reading(), returns: ok("The tenants, ordered by name.", []v1.TenantStatus{}),
			about: "One request tells what is in progress in each tenant. A tenant that does not answer within seconds has only its trouble.",
		}),
		unseal,
	}
}

// anyOf is a body of one of several types.
type anyOf []any
