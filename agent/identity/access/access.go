// Package access decides who may do what over REST.
//
// Decide is the one place of that decision: a principal, a method and a path go in,
// and nil or the reason why not comes out. What no rule allows is refused. It reads no
// clock, no file and no request; who a principal is was proved before.
package access

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Operation is what a request does to that which its path names.
type Operation string

// The operations: PUT and PATCH update, POST creates an entry of the
// configuration and executes anything else.
const (
	Create  Operation = "create"
	Read    Operation = "read"
	Update  Operation = "update"
	Delete  Operation = "delete"
	Execute Operation = "execute"
)

// Rule says of the paths that match a pattern which operations on them are allowed
// and which rejected. It is silent about all others.
type Rule struct {
	// Path is a pattern of whole segments: "*" is any one of them, "**" at the end is
	// any number of them, none included.
	Path          string
	Allow, Reject []Operation
}

// AnyTenant is the tenant of a principal that is valid for all tenants.
const AnyTenant = "*"

// Principal is who sends a request.
type Principal struct {
	Name string
	// As is what the name is that of, for people; empty means a token.
	As string
	// Tenant is the one tenant that it is valid for, or AnyTenant.
	Tenant string
	// Roles are names of roles and of Policies.
	Roles []Role
	// Policies are the rules of those of its roles that are policies of its tenant.
	Policies map[Role][]Rule
}

// title says who the principal is.
func (p Principal) title() string { return fmt.Sprintf("%s %q", cmp.Or(p.As, "token"), p.Name) }

// TenantError means that the path must name a tenant: the principal is valid for all.
type TenantError struct{}

// Error implements error.
func (TenantError) Error() string {
	return "a token or a user of all tenants has no tenant of its own, so the path must name one: use /v1/…/tenants/NAME/os-upgrade"
}

// ForeignError means that a principal is not valid for what a path belongs to: another
// tenant, whether that exists or not, or the site.
type ForeignError struct{ Who, Tenant string }

// Error implements error.
func (e *ForeignError) Error() string {
	if e.Tenant == "" {
		return e.Who + " is valid for one tenant, and this belongs to the whole site; use a token of all tenants"
	}
	return fmt.Sprintf("%s is not valid for tenant %q", e.Who, e.Tenant)
}

// RefusedError means that none of the roles of a principal allows an operation.
type RefusedError struct {
	Who       string
	Roles     []Role
	Operation Operation
	// Allowed are the roles that allow it.
	Allowed []Role
}

// Error implements error.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s (%s) does not have the right to %s this", e.Who, list(e.Roles), e.Operation)
	if len(e.Allowed) == 0 {
		return text + "; no role has"
	}
	return text + "; use a token with " + strings.Join(e.Allowed, " or ")
}

func list(roles []Role) string {
	if len(roles) == 0 {
		return "no role"
	}
	return strings.Join(roles, ", ")
}

// Decide returns nil if a principal may send a request of this method and path, and
// otherwise a TenantError, a ForeignError or a RefusedError. The path is the escaped
// one: an escaped slash is part of a segment, for the handlers as well.
func Decide(who Principal, method, path string) error {
	segments, ok := split(path)
	if !ok {
		return refused(who, method, nil)
	}
	segments, err := located(who, segments)
	if err != nil {
		return err
	}
	if operation := operationOf(method, segments); !allowed(who.sets(), operation, segments) {
		return refused(who, method, segments)
	}
	return nil
}

// located returns a path with the tenant that it belongs to, and a TenantError or a
// ForeignError if a principal has no business there, whatever its roles.
func located(who Principal, segments []string) ([]string, error) {
	segments, tenant := inTenant(segments, who.Tenant)
	switch {
	case ofCaller(segments):
	case tenant == "" && who.Tenant != AnyTenant:
		return nil, &ForeignError{Who: who.title()}
	case tenant == AnyTenant && who.Tenant == AnyTenant && needsTenant(segments):
		return nil, TenantError{}
	case tenant != "" && who.Tenant != AnyTenant && who.Tenant != tenant:
		return nil, &ForeignError{Who: who.title(), Tenant: tenant}
	}
	return segments, nil
}

// sets returns the rules of each role, and those of everybody.
func (p Principal) sets() [][]Rule {
	all := append(make([][]Rule, 0, 1+len(p.Roles)), everybody)
	for _, role := range p.Roles {
		set, builtIn := rules[role]
		switch {
		case role == Machine:
			set = ofMachine
		case !builtIn:
			set = p.Policies[role]
		}
		all = append(all, set)
	}
	return all
}

// allowed reports whether any set of rules allows an operation.
func allowed(sets [][]Rule, operation Operation, segments []string) bool {
	return slices.ContainsFunc(sets, func(set []Rule) bool { return allows(set, operation, segments) })
}

// refused returns the error that names the roles which would do.
func refused(who Principal, method string, segments []string) error {
	e := &RefusedError{Who: who.title(), Roles: who.Roles, Operation: operationOf(method, segments)}
	for _, role := range Roles() {
		if segments != nil && allows(rules[role], e.Operation, segments) {
			e.Allowed = append(e.Allowed, role)
		}
	}
	return e
}

// Tenant returns the tenant that a path belongs to, for a principal of a tenant; empty
// if it belongs to the site.
func Tenant(path, own string) string {
	segments, _ := split(path)
	_, tenant := inTenant(segments, own)
	return tenant
}

// split returns the segments of an escaped path. A path that is not in its shortest form
// has none: what would be matched is then not what is served.
func split(path string) (segments []string, ok bool) {
	rest, rooted := strings.CutPrefix(path, "/")
	if !rooted {
		return nil, false
	}
	segments = make([]string, 0, strings.Count(rest, "/")+1)
	for segment := range strings.SplitSeq(rest, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" || plain == "." || plain == ".." {
			return nil, false
		}
		segments = append(segments, plain)
	}
	return segments, true
}

// ownTrees are what a tenant has, below /v1/config and /v1/state: a path without a
// tenant is that of the own one.
var ownTrees = []string{"os-upgrade", "strongbox", "policy", "audit"}

// inTenant returns the path with the tenant in it, and the tenant; empty if the path
// belongs to the site.
func inTenant(segments []string, own string) (whole []string, tenant string) {
	switch {
	case len(segments) < 3 || segments[0] != "v1" || segments[1] != "config" && segments[1] != "state" || ofCaller(segments):
		return segments, ""
	case segments[2] == "tenants" && len(segments) > 4:
		return segments, segments[3] // The tenant itself belongs to the site.
	case slices.Contains(ownTrees, segments[2]):
		return slices.Concat(segments[:2], []string{"tenants", own}, segments[2:]), own
	}
	return segments, ""
}

// ofCaller reports whether a path is about the principal itself, whatever its tenant: its
// own token or password, or the metrics or the status of all that it may read.
func ofCaller(segments []string) bool {
	path := "/" + strings.Join(segments, "/")
	return path == metrics || path == statuses || path == password || path == ownToken || strings.HasPrefix(path, ownToken+"/")
}

// needsTenant reports whether a path of all tenants at once means nothing. There are
// tokens, users, approles and policies of all tenants, an audit log of what belongs to
// all, and one list of all join tokens; there is no upgrade of all.
func needsTenant(segments []string) bool {
	switch {
	case len(segments) < 5:
		return true
	case segments[4] == "os-upgrade":
		return len(segments) < 6 || segments[5] != "join-tokens"
	}
	return !slices.Contains([]string{"strongbox", "policy", "audit"}, segments[4])
}

func operationOf(method string, segments []string) Operation {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return Read
	case http.MethodPut, http.MethodPatch:
		return Update
	case http.MethodDelete:
		return Delete
	case http.MethodPost:
		if len(segments) > 1 && segments[1] == "config" {
			return Create
		}
	}
	return Execute
}

// allows reports whether rules allow an operation. Of those that match, the most
// specific one that is not silent decides.
func allows(rules []Rule, operation Operation, segments []string) bool {
	var most []string
	verdict := false
	for _, rule := range rules {
		allowed, rejected := slices.Contains(rule.Allow, operation), slices.Contains(rule.Reject, operation)
		if !allowed && !rejected || !rule.matches(segments) {
			continue
		}
		pattern := patternOf(rule)
		switch order := compare(pattern, most); {
		case most == nil || order > 0:
			most, verdict = pattern, !rejected
		case order == 0:
			verdict = verdict && !rejected
		}
	}
	return verdict
}

func patternOf(rule Rule) []string {
	return strings.Split(strings.TrimPrefix(rule.Path, "/"), "/")
}

// matches reports whether the path of a rule matches a path.
func (r Rule) matches(path []string) bool { return r.matchesSome(path, len(path)) }

// matchesSome reports whether the path of a rule matches a path for some value of its
// parameters, which are from the n-th segment on.
func (r Rule) matchesSome(path []string, n int) bool {
	i := 0
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Path, "/"), "/") {
		switch {
		case part == "**":
			return true
		case i >= len(path), part != "*" && part != path[i] && (i < n || !isParameter(path[i])):
			return false
		}
		i++
	}
	return i == len(path)
}

// compare orders two patterns that match the same path: the more specific is greater.
func compare(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if d := weight(a[i]) - weight(b[i]); d != 0 {
			return d
		}
	}
	return len(a) - len(b)
}

// weight is how specific a segment of a pattern is.
func weight(segment string) int {
	switch segment {
	case "**":
		return 0
	case "*":
		return 1
	}
	return 2
}
