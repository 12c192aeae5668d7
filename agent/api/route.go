package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// route is one operation of the API. The server's mux and the OpenAPI text are both
// made of the table of routes: nothing is served that is not described.
type route struct {
	method string
	// path has parameters as http.ServeMux has them, such as {host}.
	path string
	// own tells that the operation is also at the path without "/tenants/{tenant}", for
	// the tenant of the token.
	own bool
	// public tells that it needs no token. Who may send any other is decided by package
	// access, by its method and path.
	public bool
	// unseals tells that a sealed site carries it out, too.
	unseals bool
	// unserved tells that commands on the site's machine may send it for a tenant that the
	// site does not serve: credentials can be made before.
	unserved bool
	// group is the chapter of the reference, summary its line there, and about what else
	// a caller has to know.
	group, summary, about string
	// query are the query parameters. Any other is refused.
	query []parameter
	// headers are the request headers that it looks at, beside those of all.
	headers []parameter
	// takes is a value of the type of the request body; nil when there is none.
	takes any
	// optional tells that the body may be left out.
	optional bool
	// returns are the statuses of success, errors those of failure beside the ones that
	// each operation has.
	returns []response
	errors  []int
	// failure is a value of the type of the body of a failure; nil for that of all others.
	failure any
	// action and object are those of the audit record of a request that changes something:
	// a verb, and a kind with the parameters of the path, such as calendar/{name}.
	action, object string

	handle func(*server, *call) error
}

// response is an answer of success.
type response struct {
	status int
	about  string
	// body is a value of the type of the body; nil when there is none.
	body any
	// contentType is that of the body, when it is neither JSON nor YAML.
	contentType string
	// headers are the response headers by name, with what each says.
	headers map[string]string
}

// parameter is a query parameter or a header.
type parameter struct {
	name, about string
	schema      schema
	// repeats tells that it may be given more than once.
	repeats bool
	// check returns why a value is wrong; nil means that the handler reads it.
	check func(value string) error
}

// schema is a JSON Schema (2020-12), as OpenAPI 3.1 has them.
type schema map[string]any

// mux returns the handler of a table of routes. The methods of a path that are in no
// route are answered with 405, and OPTIONS with those that are.
func (s *server) mux(table []route) http.Handler {
	mux, routes := http.NewServeMux(), map[string][]route{}
	for _, r := range table {
		for _, path := range r.paths() {
			handler := http.Handler(s.serving(r))
			if !r.streams() {
				handler = compressed(handler)
			}
			mux.Handle(r.method+" "+path, handler)
			routes[path] = append(routes[path], r)
		}
	}
	for path, same := range routes {
		mux.HandleFunc(path, s.otherMethod(same))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, &call{Request: r, w: w}, problem(http.StatusNotFound, "", "", "there is nothing at %q", r.URL.Path))
	})
	return mux
}

// ofTenant is the part of a path that names the tenant.
const ofTenant = "/tenants/{tenant}"

// paths returns the paths of the operation.
func (r route) paths() []string {
	if r.own {
		return []string{r.path, strings.Replace(r.path, ofTenant, "", 1)}
	}
	return []string{r.path}
}

// requestsOf returns the requests of a table of routes that need a right.
func requestsOf(table []route) (all []access.Request) {
	for _, r := range table {
		if !r.public {
			all = append(all, access.Request{Method: r.method, Path: r.path})
		}
	}
	return all
}

// serving returns the handler of a route: it admits the request, checks its query and
// answers its error. A request that changes something is answered once its audit record
// is on disk.
func (s *server) serving(route route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, route: route}
		if route.action != "" && s.Audit != nil {
			s.audited(route, c)
			return
		}
		err := s.enter(route, c)
		if err == nil {
			err = route.handle(s, c)
		}
		if err != nil {
			s.fail(w, c, err)
		}
	}
}

// enter admits a request and checks what all have in common.
func (s *server) enter(route route, c *call) error {
	err := s.sealed(route, c.Request)
	if err == nil {
		err = plainBody(c.Request)
	}
	if err == nil && !route.public {
		err = s.admit(c)
	}
	if err == nil {
		err = c.readQuery(route.query)
	}
	if err == nil {
		err = s.onSite(c)
	}
	return err
}

// otherMethod answers OPTIONS with the methods of the routes of a path, and any other method
// with 405. Neither needs a token: the OpenAPI text tells as much.
func (s *server) otherMethod(routes []route) http.HandlerFunc {
	methods := make([]string, len(routes))
	for i, r := range routes {
		methods[i] = r.method
	}
	allowed := slices.Clone(methods)
	if slices.Contains(methods, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	allowed = append(allowed, http.MethodOptions)
	slices.SortFunc(allowed, func(a, b string) int { return slices.Index(inOrder, a) - slices.Index(inOrder, b) })
	list := strings.Join(allowed, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", list)
		if slices.Contains(methods, http.MethodPatch) {
			w.Header().Set("Accept-Patch", strings.Join(v1.PatchTypes(), ", "))
		}
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.fail(w, &call{Request: r, w: w, route: routes[0]}, problem(http.StatusMethodNotAllowed, "", "", "method %s is not supported here; use %s", r.Method, list))
	}
}

// inOrder is the order in which methods are listed.
var inOrder = []string{
	http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodPost, http.MethodOptions,
}

// readQuery parses the query and refuses parameters other than the known ones. A
// malformed query is an error: URL.Query would ignore it, so that "validate=true;"
// would write instead of validate.
func (c *call) readQuery(known []parameter) (err error) {
	if c.query, err = url.ParseQuery(c.URL.RawQuery); err != nil {
		shown := c.URL.RawQuery
		if strings.Contains(shown, urlToken) {
			shown = "?"
		}
		return problem(http.StatusBadRequest, "", shown,
			"cannot parse query %q: %v; use NAME=VALUE joined by \"&\", each percent-encoded", shown, err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		i := slices.IndexFunc(known, func(p parameter) bool { return p.name == name })
		switch values := c.query[name]; {
		case i < 0 && len(known) == 0:
			return badRequest(name, "", "is not a query parameter here; this operation has none")
		case i < 0:
			return badRequest(name, "", fmt.Sprintf("is not a query parameter here; use %s", strings.Join(parameterNames(known), ", ")))
		case len(values) > 1 && !known[i].repeats:
			return badRequest(name, values[1], "is given more than once")
		case known[i].check != nil:
			if err := known[i].check(values[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

func parameterNames(all []parameter) []string {
	list := make([]string, len(all))
	for i, p := range all {
		list[i] = p.name
	}
	return list
}

// flag is a query parameter that is "true" or absent.
func flag(name, about string) parameter {
	return oneOf(name, about, "true")
}

// oneOf is a query parameter that has one of some values.
func oneOf(name, about string, values ...string) parameter {
	return parameter{
		name: name, about: about, schema: schema{"type": "string", "enum": values},
		check: func(value string) error {
			if slices.Contains(values, value) {
				return nil
			}
			return badRequest(name, value, fmt.Sprintf(`is invalid; use "%s" or omit the parameter`, strings.Join(values, `" or "`)))
		},
	}
}

// has reports whether a flag or another parameter is in the query.
func (c *call) has(name string) bool { return c.query.Has(name) }
