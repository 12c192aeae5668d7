package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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
		about: "The name of the site that is asked. A site answers for itself alone.",
	}
	validateParameter = flag("validate", "Check the request and change nothing.")
	unknownParameter  = oneOf(unknownMembers, "What becomes of members that the site does not know: they are refused, or with keep stored and returned, and mean nothing. "+
		"They stay when the object is written without keep. An entry of a list keeps them while it has the same name, or is the same.", "keep")
	ifMatch = parameter{
		name: "If-Match", schema: schema{"type": "string"},
		about: "The ETag of the revision that the request is based on. The request fails with 412 when the object has another one.",
	}
	ifNoneMatch = parameter{
		name: "If-None-Match", schema: schema{"type": "string"},
		about: "* creates the object only if there is none. With GET, an ETag answers 304 while the object still has it.",
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

// listing returns the operation that reads a list, with the parameters of lists.
func listing(r route) route {
	r.query = append(slices.Clone(r.query),
		parameter{name: "keys", about: "Return the keys of the entries alone.", schema: schema{"type": "string", "enum": []string{"true", ""}}, check: func(value string) error {
			if value == "" || value == "true" {
				return nil
			}
			return badRequest("keys", value, `is invalid; use "true" or omit the parameter`)
		}},
		flag("count", "Return the number of entries alone."))
	r.returns = ok(r.returns[0].about, anyOf{r.returns[0].body, []string{}, 0})
	return r
}

func ok(about string, body any) []response {
	return []response{{status: http.StatusOK, about: about, body: body}}
}

// routes returns the table of all operations.
func routes() []route {
	return slices.Concat(
		objectRoutes(objectPath{path: configPath, noun: "os-upgrade configuration", key: "config", force: "Delete it though a run is under way, which goes on.", keeps: true}, only((*server).configs)),
		objectRoutes(objectPath{path: configPath + "/rollout", noun: "rollout", key: "rollout", keeps: true}, only((*server).rollouts)),
		objectRoutes(objectPath{path: configPath + "/calendars/{name}", noun: "calendar", key: "calendar/{name}", several: true, keeps: true}, (*server).calendar),
		objectRoutes(objectPath{path: configPath + "/webhooks/{name}", noun: "webhook", key: "webhook/{name}", group: groupNews, several: true}, (*server).webhook),
		objectRoutes(objectPath{path: usersPath + "/{name}", noun: "user", key: "user/{name}", group: groupLogins, several: true}, (*server).user),
		objectRoutes(objectPath{path: approlesPath + "/{name}", noun: "approle", key: "approle/{name}", group: groupLogins, several: true}, (*server).approle),
		objectRoutes(objectPath{path: policiesPath + "/{name}", noun: "policy", key: "policy/{name}", group: groupLogins, force: "Delete it though users, approles or tokens name it. It allows them nothing then.", several: true}, (*server).policy),
		objectRoutes(objectPath{
			path: tenantsPath + "/{tenant}", noun: "tenant", key: "tenant/{tenant}", group: groupTenants, ofSite: true, several: true, created: []parameter{restoreParameter},
			force: "Remove it though a run is under way, which is aborted, or it has hosts, whose keys are withdrawn.",
		}, (*server).tenantObject),
		tenantRoutes(), loginRoutes(), configRoutes(), stateRoutes(), runRoutes(), joinRoutes(), tokenRoutes(), newsRoutes(), auditRoutes(), siteRoutes(), documentRoutes(),
	)
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
	// know can be kept.
	several, keeps bool
}

// objectRoutes are the operations of an object of the configuration.
func objectRoutes[T any](d objectPath, of func(*server, *call) (*object[T], error)) []route {
	var value T
	tag := map[string]string{"ETag": "The revision of the object."}
	written := []response{{status: http.StatusNoContent, about: "The object is replaced, or with validate=true the request is right.", headers: tag}}
	created := response{
		status: http.StatusCreated, about: "The object is created.",
		headers: map[string]string{"ETag": tag["ETag"], "Location": "The path of the object."},
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
	patch.about = "A body is a merge (RFC 7396), in which a member that is null is removed, or with application/json-patch+json a list of changes (RFC 6902). " +
		"Changes of a list by index need If-Match or a test operation."

	remove.method, remove.handle, remove.summary = http.MethodDelete, answering(of, (*object[T]).answerDelete), "Delete the "+d.noun
	put.action, patch.action, remove.action = "write", "change", "delete"
	put.object, patch.object, remove.object = d.key, d.key, d.key
	remove.query, remove.returns = deletion, []response{{status: http.StatusNoContent, about: "The object is deleted, or with validate=true could be."}}
	if d.ofSite {
		put.errors, remove.errors = []int{http.StatusConflict, http.StatusPreconditionFailed}, []int{http.StatusConflict, http.StatusPreconditionFailed}
	}
	return []route{get, put, patch, remove}
}

func configRoutes() []route {
	return []route{listing(route{
		method: http.MethodGet, path: configPath + "/calendars", own: true, group: groupConfig, handle: (*server).getCalendars,
		summary: "List the calendars",
		query:   []parameter{fieldsParameter, flag("content", "Return each calendar with its content.")},
		returns: ok("The calendars by name.", []v1.CalendarInfo{}),
	}), {
		method: http.MethodPost, path: configPath + "/calendars", own: true, group: groupConfig, handle: (*server).postCalendar, action: "create", object: "calendar",
		summary: "Create a calendar", about: "PUT of its path creates or replaces one.",
		query: []parameter{validateParameter, unknownParameter}, takes: v1.NewCalendar{}, errors: []int{http.StatusConflict},
		returns: []response{
			{status: http.StatusCreated, about: "The calendar is created.", headers: map[string]string{"ETag": "The revision of the object.", "Location": "The path of the object."}},
			{status: http.StatusNoContent, about: "With validate=true: the request is right."},
		},
	}}
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
		about: "A token of the role calendar alone, for programs that send no Authorization header.",
	}}
	feed.returns = []response{{status: http.StatusOK, about: "An iCalendar text (RFC 5545).", contentType: "text/calendar", headers: map[string]string{"Content-Disposition": "The name of the file."}}}
	events := get("/events", groupNews, "Follow what happens, as server-sent events", (*server).getEvents, nil)
	events.query = []parameter{siteParameter, oneOf("hosts", "Send all hosts of a run once, and then those that have changed.", "changed")}
	events.headers = []parameter{{
		name: lastEventID, schema: schema{"type": "string"},
		about: "The id of the last event that was seen, from a client that comes back. Ids mean the same after a restart of the site.",
	}}
	events.about = "The first events are what is true now: situation, and run if there was one. They come again whenever they change. " +
		"With hosts=changed a run is sent once, and then changes: the run with those hosts alone that have changed. versions is a report of a host. " +
		"news is an entry of the list of news. A client that comes back with Last-Event-ID is sent those that it has missed, of the 1,000 that are kept. " +
		"reset comes first when Last-Event-ID is of another log, or too old: what the client was told before has no connection with what follows. " +
		"A comment comes every 15 seconds. A client that does not read for 10 seconds is disconnected."
	events.returns = []response{{status: http.StatusOK, about: "Events until the client goes or its token ends. Their names are reset, news, situation, run, changes and versions.", contentType: "text/event-stream"}}
	hosts := listing(get("/hosts", groupHosts, "List the hosts", (*server).getHosts, []v1.Host{},
		parameter{name: "after", about: "Hosts behind this name alone: the last one of the part before.", schema: schema{"type": "string"}},
		parameter{name: "limit", about: "How many hosts at most; all if absent.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxHosts}},
		flag("inventory", "Return each host with its inventory: what its machine consists of.")))
	hosts.about = "Hosts are in the order of their names. With limit they come in parts: the header Link leads to the next part while there is one. " +
		"A host that comes or goes meanwhile moves no other from one part to the next. With count=true, after and limit are refused: it is the number of all."
	hosts.returns[0].headers = map[string]string{"Link": "The next part, as rel=\"next\"; absent in the last one."}
	return []route{
		get("", groupState, "Read the state", (*server).getState, anyOf{v1.State{}, v1.OSUpgrade{}},
			oneOf("content", "Return what is configured alone, or all but that.", "config", "nonconfig")),
		events,
		hosts,
		get("/hosts/{host}", groupHosts, "Read a host with its inventory and its last reports of versions", (*server).getHost, v1.Host{}),
		get("/hosts/{host}/offer", groupHosts, "Read what an upgrade of a host would change now", (*server).getOffer, v1.HostPlan{}),
		{
			method: http.MethodDelete, path: statePath + "/hosts/{host}", own: true, group: groupHosts, handle: (*server).deleteHost,
			action: "forget", object: "host/{host}",
			summary: "Forget a host that will not come back", errors: []int{http.StatusPreconditionFailed},
			query:   []parameter{siteParameter, {name: "reason", about: "Why; it is stored with the run under way.", schema: schema{"type": "string", "maxLength": v1.MaxReason}}},
			returns: []response{{status: http.StatusNoContent, about: "The host is deleted."}},
		},
		get("/windows", groupWindows, "List the windows ahead", (*server).getWindows, []v1.Window{},
			instantParameter("from", "Windows that end after this time; now if absent."),
			instantParameter("to", "Windows that begin before this time."),
			parameter{name: "count", about: "How many windows at most.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxWindowsListed, "default": v1.DefaultWindows}}),
		feed,
	}
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
			summary: summary, query: []parameter{siteParameter}, takes: takes, returns: ok("The run.", v1.Run{}), errors: []int{http.StatusPreconditionFailed},
			action: operation, object: "run",
		}
	}
	start := post("start", "Start a run", (*server).postStart, v1.Start{})
	start.optional = true
	start.query = append(start.query, flag("validate", "Start nothing, and return what a start would do."))
	start.returns = []response{{status: http.StatusOK, about: "The run, or with validate=true what a start would do.", body: anyOf{v1.Run{}, v1.Preflight{}}}}
	list := []route{
		listing(get("", "List runs, newest first", (*server).getRuns, []v1.Run{},
			parameter{name: "result", about: "Runs with this result.", schema: schema{"type": "string"}},
			parameter{name: "host", about: "Runs of this host.", schema: schema{"type": "string"}},
			instantParameter("since", "Runs that were opened at this time or later."),
			instantParameter("until", "Runs that were opened before this time."),
			parameter{name: "limit", about: "How many runs at most.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxRuns, "default": v1.DefaultRuns}})),
		get("/{id}", "Read a run", (*server).getRun, v1.Run{}),
		get("/{id}/hosts/{host}/output", "Read what the steps of a host have printed", (*server).getOutput, []v1.StepOutput{}),
		get("/{id}/hosts/{host}/plan", "Read what a run changes on a host", (*server).getPlan, v1.HostPlan{}),
		start,
	}
	for _, o := range []struct {
		ask     run.Ask
		summary string
	}{
		{run.Pause, "Pause the run under way"},
		{run.Resume, "Resume the run under way"},
		{run.Abort, "Abort the run under way"},
		{run.Approve, "Approve a stage"},
		{run.Release, "Free the slot of a host by force"},
	} {
		list = append(list, post(string(o.ask), o.summary, postAsk(o.ask), v1.Ask{}))
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
	create.summary, create.action, create.object = "Make a join token", "create", "join-token"
	remove.action, remove.object = "delete", "join-token/{id}"
	create.returns = []response{{status: http.StatusCreated, about: "The token, whose text is in this answer alone.", body: v1.JoinToken{}, headers: map[string]string{"Location": "The path of the token."}}}
	remove.method, remove.path, remove.handle = http.MethodDelete, tokens+"/{id}", joining((*server).deleteJoinToken)
	remove.summary, remove.returns = "Withdraw a join token", []response{{status: http.StatusNoContent, about: "The token is withdrawn."}}
	return []route{
		{
			method: http.MethodGet, path: "/v1/join/ca", public: true, group: groupJoin, handle: joining((*server).getAuthority),
			summary: "Read the certificates to trust for the site", returns: ok("The certificates.", v1.Authority{}), errors: []int{http.StatusNotFound},
		},
		{
			method: http.MethodPost, path: joinPath, public: true, group: groupJoin, handle: joining((*server).postJoin),
			summary: "Join the site as a host", about: "The Authorization header has a join token.",
			takes: v1.Join{}, action: "join", object: "host", returns: ok("All that the worker of the host needs.", v1.Joined{}),
			errors: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests},
		},
		listing(list), create, remove,
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
	create.summary, create.action, create.object = "Make a token", "create", "token"
	remove.action, remove.object = "delete", "token/{id}"
	rotate.action, rotate.object = "rotate", "token/{id}"
	create.returns = []response{{status: http.StatusCreated, about: "The token, whose text is in this answer alone.", body: v1.Token{}, headers: at}}
	get.method, get.handle, get.query = http.MethodGet, (*server).getToken, reading()
	get.summary, get.returns = "Read a token, without its text", ok("The token.", v1.Token{})
	remove.method, remove.handle = http.MethodDelete, (*server).deleteToken
	remove.summary, remove.returns = "Withdraw a token", []response{{status: http.StatusNoContent, about: "The token is withdrawn: the next request with it is refused, and its event streams end."}}
	rotate.method, rotate.path, rotate.handle, rotate.takes = http.MethodPost, tokens+"/{id}/rotate", (*server).postRotate, v1.Rotation{}
	rotate.optional, rotate.errors = true, []int{http.StatusConflict}
	rotate.summary = "Make a token in place of another"
	rotate.returns = []response{{status: http.StatusCreated, about: "The new token, with the properties of the old one. Its text is in this answer alone.", body: v1.Token{}, headers: at}}
	login := route{
		method: http.MethodPost, path: "/v1/login", public: true, group: groupTokens, handle: (*server).postLogin,
		summary: "Log a user in", about: "The token is good for a while; a refresh extends that.",
		takes: v1.Login{}, action: "login", object: "token", returns: ok("The token.", v1.LoggedIn{}), errors: []int{http.StatusUnauthorized, http.StatusTooManyRequests},
	}
	approle := login
	approle.path, approle.handle, approle.summary, approle.takes = "/v1/approle-login", (*server).postApproleLogin, "Log an approle in", v1.ApproleLogin{}
	refresh := route{
		method: http.MethodPost, path: refreshPath, group: groupTokens, handle: (*server).postRefresh,
		summary: "Extend the life of the own token", about: "The token is that of a login. The body is empty or {}.",
		query: []parameter{siteParameter}, returns: ok("The token, with its new end.", v1.LoggedIn{}), action: "refresh", object: "token",
	}
	password := route{
		method: http.MethodPost, path: "/v1/state/strongbox/password", group: groupTokens, handle: loggingIn((*server).postPassword),
		summary: "Change the own password", about: "The token is that of the login of a user, who needs no role for this. It stays good; the tokens of the other logins of the user are withdrawn.",
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
			query: []parameter{fieldsParameter}, returns: ok("The list, by name.", body),
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
				{status: http.StatusCreated, about: "It is made.", body: returns, headers: map[string]string{"Location": "Its path.", "ETag": "Its revision."}},
				{status: http.StatusNoContent, about: "With validate=true, the request is right."},
			},
		}
	}
	const users, approles = "/v1/state" + authentication + "/userpass", "/v1/state" + authentication + "/approles"
	const secrets = approles + "/{name}/secret-ids"
	secret := create("secret-id", secrets, "Make a secret-id", "Whoever makes it has the rights of the approle.", (*server).postSecret, v1.NewSecretID{}, v1.SecretID{})
	secret.query, secret.optional, secret.errors = []parameter{siteParameter}, true, nil
	secret.returns = []response{{status: http.StatusCreated, about: "The secret-id, whose text is in this answer alone.", body: v1.SecretID{}, headers: map[string]string{"Location": "Its path."}}}
	return []route{
		list(usersPath, "List the users", (*server).getUsers, []v1.User{}),
		create("user", usersPath, "Make a user", "Without a password the site makes one, which is in this answer alone. Nobody makes a user with more rights than its own.",
			(*server).postUser, v1.User{}, v1.User{}),
		list(policiesPath, "List the policies", (*server).getPolicies, []v1.Policy{}),
		create("policy", policiesPath, "Make a policy", "Nobody makes a policy that allows more than its own roles and policies do.", (*server).postPolicy, v1.Policy{}, v1.Policy{}),
		listing(read(users, "List the users with what the site knows of them", (*server).getUserStates, []v1.UserState{})),
		read(users+"/{name}", "Read a user with what the site knows of it", (*server).getUserState, v1.UserState{}),
		list(approlesPath, "List the approles", (*server).getApproles, []v1.Approle{}),
		create("approle", approlesPath, "Make an approle", "Nobody makes an approle with more rights than its own.", (*server).postApprole, v1.Approle{}, v1.ApproleState{}),
		listing(read(approles, "List the approles with their role-ids", (*server).getApproleStates, []v1.ApproleState{})),
		read(approles+"/{name}", "Read an approle with its role-id", (*server).getApproleState, v1.ApproleState{}),
		listing(read(secrets, "List the secret-ids of an approle, without their texts", (*server).getSecrets, []v1.SecretID{})),
		secret,
		{
			method: http.MethodDelete, path: secrets + "/{id}", own: true, group: groupLogins, handle: loggingIn((*server).deleteSecret), query: []parameter{siteParameter},
			action: "delete", object: "secret-id/{id}",
			summary: "Withdraw a secret-id", returns: []response{{status: http.StatusNoContent, about: "Nobody logs in with it any more."}},
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
			action: operation, object: "webhook/{name}", query: []parameter{siteParameter}, returns: ok("What came of it.", body), errors: []int{http.StatusNotFound},
		}
	}
	resend := post("resend", "Send dead news again", "They are sent in their order until one fails. What is accepted is dead no more.", onWebhook((*server).resendWebhook), v1.WebhookResent{})
	resend.takes, resend.optional = v1.WebhookResend{}, true
	configured := get("", "List the webhooks, without their secrets", (*server).getWebhooks, []v1.WebhookInfo{})
	configured.path = configPath + "/webhooks"
	one := get("/webhooks/{name}", "Read how a webhook fares, with the news that it has given up", onWebhook((*server).webhookState), v1.WebhookState{})
	one.errors = []int{http.StatusNotFound}
	return []route{
		listing(get("/news", "List the news: what was told as it happened, oldest first", (*server).getNews, []v1.News{})),
		listing(configured),
		listing(get("/webhooks", "List how the webhooks fare", (*server).getWebhookStates, []v1.WebhookState{})),
		one,
		post("test", "Send a test to a webhook", "It is sent at once and once, also while the webhook is disabled.", onWebhook((*server).testWebhook), v1.WebhookTest{}),
		resend,
	}
}

func auditRoutes() []route {
	return []route{{
		method: http.MethodGet, path: "/v1/state" + ofTenant + "/audit", own: true, group: groupAudit, handle: (*server).getAudit,
		summary: "Read who did what",
		about: "The newest records, or those after one, oldest first. The tenant * has the records of what belongs to all tenants. " +
			"Damage is what is not as it was written, of all that was read: with after=0 and on, the whole log is.",
		query: reading(
			parameter{name: "after", about: "Records after the one of this number, the oldest first; without it the newest records are returned.", schema: schema{"type": "integer", "minimum": 0}},
			parameter{name: "limit", about: "How many records at most.", schema: schema{"type": "integer", "minimum": 1, "maximum": v1.MaxAudit, "default": v1.DefaultAudit}},
			parameter{name: "by", about: "Records of this user, approle, token or host.", schema: schema{"type": "string"}},
			parameter{name: "object", about: "Records of this object, such as config, calendar/holidays or run/57, or of all of a kind, such as calendar.", schema: schema{"type": "string"}},
			instantParameter("since", "Records of this time or later."),
			instantParameter("until", "Records of before this time."),
		),
		returns: ok("The records.", v1.AuditLog{}), errors: []int{http.StatusNotFound},
	}}
}

// restoreParameter takes up what is kept of a removed tenant.
var restoreParameter = flag("restore", "Take up the log and all that was stored of the removed tenant of this name.")

// tenantRoutes are the operations on tenants that objectRoutes does not have.
func tenantRoutes() []route {
	const states = "/v1/state/tenants"
	return []route{
		listing(route{
			method: http.MethodGet, path: tenantsPath, group: groupTenants, handle: (*server).getTenants, summary: "List the tenants",
			query: []parameter{fieldsParameter}, returns: ok("The tenants by name.", []v1.Tenant{}),
		}),
		{
			method: http.MethodPost, path: tenantsPath, group: groupTenants, handle: (*server).postTenant, summary: "Make a tenant", action: "create", object: "tenant",
			about: "It is served when the answer comes, without a restart.", query: []parameter{validateParameter, restoreParameter}, takes: v1.Tenant{}, errors: []int{http.StatusConflict},
			returns: []response{
				{status: http.StatusCreated, about: "It is made.", headers: map[string]string{"Location": "Its path.", "ETag": "Its revision."}},
				{status: http.StatusNoContent, about: "With validate=true, the request is right."},
			},
		},
		listing(route{
			method: http.MethodGet, path: states, group: groupTenants, handle: (*server).getTenantStates, summary: "List the tenants with what the site knows of them, also those that were removed",
			query: reading(), returns: ok("The tenants by name.", []v1.TenantState{}),
		}),
		{
			method: http.MethodGet, path: states + "/{tenant}", group: groupTenants, handle: (*server).getTenantState, summary: "Read a tenant with what the site knows of it",
			query: reading(), returns: ok("The tenant.", v1.TenantState{}),
		},
	}
}

func siteRoutes() []route {
	unseal := route{
		method: http.MethodPost, path: "/v1/state/strongbox/system/unseal", public: true, unseals: true, group: groupSite, handle: (*server).postUnseal,
		summary: "Unseal the site", about: "While the strongbox of the site is sealed, every other operation is answered with 503 \"strongbox sealed\".",
		takes: v1.Unseal{}, action: "unseal", object: "strongbox", errors: []int{http.StatusForbidden, http.StatusConflict, http.StatusTooManyRequests},
		returns: []response{{status: http.StatusNoContent, about: "The site is open, or was before: then the passphrase was not looked at."}},
	}
	return []route{
		{
			method: http.MethodGet, path: "/healthz", public: true, group: groupSite, handle: (*server).healthz,
			summary: "Ask whether the process works", returns: ok("It does.", v1.Health{}),
		},
		{
			method: http.MethodGet, path: "/readyz", public: true, group: groupSite, handle: (*server).readyz,
			summary: "Ask whether each controller may send commands", returns: ok("Each may.", v1.Health{}),
		},
		{
			method: http.MethodGet, path: "/metrics", group: groupSite, handle: (*server).getMetrics,
			summary: "Read the metrics of the site and of the tenants that the token may read",
			returns: []response{{status: http.StatusOK, about: "Metrics in the format of Prometheus.", contentType: "text/plain"}},
			errors:  []int{http.StatusNotFound},
		},
		unseal,
	}
}

// anyOf is a body of one of several types.
type anyOf []any
