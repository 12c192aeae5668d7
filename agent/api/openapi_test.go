package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Where the OpenAPI text, which the server serves, and the page about the API are.
const (
	servedText    = "openapi.json"
	referencePage = "../../docs/guides/api.md"
)

// TestOpenAPI checks that the OpenAPI text and the page about the API are what the table of
// routes and the types say; -update writes them.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	text, err := json.MarshalIndent(newDocument(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	for path, want := range map[string][]byte{servedText: text, referencePage: reference(t)} {
		formattest.Golden(t, path, want)
	}
	if t.Failed() {
		t.Log("run: make generate")
	}
}

// newDocument returns the OpenAPI text of the table of routes.
func newDocument(t *testing.T) schema {
	t.Helper()
	s, paths := newSchemas(t), map[string]schema{}
	for _, r := range routes() {
		for _, path := range r.paths() {
			if paths[path] == nil {
				paths[path] = schema{}
			}
			paths[path][strings.ToLower(r.method)] = operation(s, r, path)
		}
	}
	tags := make([]schema, len(groups))
	for i, g := range groups {
		tags[i] = schema{"name": g}
	}
	return schema{
		"openapi": "3.1.1",
		"info": schema{
			"title": "OS upgrades", "version": "1", "license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The REST API of osupgrade-agent. Bodies are JSON or YAML in both directions. Each path answers OPTIONS with its methods, " +
				"and HEAD where it answers GET.",
		},
		"servers": []schema{{"url": "/"}}, "tags": tags, "paths": paths,
		"components": schema{
			"schemas":   s.made,
			"responses": failures(),
			"securitySchemes": schema{
				"token": schema{"type": "http", "scheme": "bearer"},
				"clientCertificate": schema{
					"type": "mutualTLS", "description": "A client certificate of an authority of the site's client-ca-file, whose CN is the name of a user and whose O is the tenant of that, * for all. " +
						"It is asked for only if the site has such a file, and a token in the request decides.",
				},
			},
		},
	}
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// aboutPath says what the parameters of paths are.
var aboutPath = map[string]string{
	"tenant": "The name of a tenant.", "host": "The name of a host.", "name": "The name of the object.", "id": "The id of the object.",
}

func operation(s *schemas, r route, path string) schema {
	parameters := []schema{}
	for _, found := range pathParameter.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, schema{"name": found[1], "in": "path", "required": true, "description": aboutPath[found[1]], "schema": schema{"type": "string"}})
	}
	for _, p := range r.query {
		parameters = append(parameters, schema{"name": p.name, "in": "query", "description": p.about, "schema": p.schema})
	}
	for _, p := range r.headers {
		parameters = append(parameters, schema{"name": p.name, "in": "header", "description": p.about, "schema": p.schema})
	}
	o := schema{"operationId": operationID(r.method, path), "tags": []string{r.group}, "summary": r.summary, "responses": responses(s, r)}
	if r.about != "" {
		o["description"] = r.about
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if r.takes != nil {
		o["requestBody"] = schema{"required": !r.optional, "content": requestContent(s, r)}
	}
	if !r.public || r.path == joinPath {
		o["security"] = []schema{{"token": []string{}}}
		if !r.public && r.path != refreshPath {
			o["security"] = []schema{{"token": []string{}}, {"clientCertificate": []string{}}}
		}
	}
	return o
}

// requestContent returns the bodies that an operation takes by content type.
func requestContent(s *schemas, r route) schema {
	t := reflect.TypeOf(r.takes)
	if r.method != http.MethodPatch {
		return content(s.of(t), v1.BodyTypes()...)
	}
	all := content(s.change(t), v1.BodyTypes()...)
	either := schema{"oneOf": []schema{s.change(t), {"type": "array", "items": schema{
		"type": "object", "required": []string{"op", "path"}, "properties": schema{
			"op": schema{"enum": []string{"add", "remove", "replace", "move", "copy", "test"}}, "path": schema{"type": "string"}, "from": schema{"type": "string"}, "value": schema{},
		},
	}}}}
	maps.Copy(all, content(either, document.MergePatch, v1.JSONPatch))
	return all
}

// operationID names an operation, such as getStateTenantsTenantOsUpgradeHosts.
func operationID(method, path string) string {
	id := strings.ToLower(method)
	for word := range strings.FieldsFuncSeq(strings.TrimPrefix(path, "/v1"), func(r rune) bool { return strings.ContainsRune("/{}-.", r) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

func content(s schema, types ...string) schema {
	all := schema{}
	for _, t := range types {
		all[t] = schema{"schema": s}
	}
	return all
}

func responses(s *schemas, r route) schema {
	all := schema{}
	for _, a := range r.returns {
		one := schema{"description": a.about}
		switch several, isAny := a.body.(anyOf); {
		case a.contentType != "":
			one["content"] = content(schema{"type": "string"}, a.contentType)
		case isAny:
			var list []schema
			for _, v := range several {
				list = append(list, s.of(reflect.TypeOf(v)))
			}
			one["content"] = content(schema{"anyOf": list}, v1.BodyTypes()...)
		case a.body != nil:
			one["content"] = content(s.of(reflect.TypeOf(a.body)), v1.BodyTypes()...)
		}
		headers := schema{}
		for name, about := range a.headers {
			headers[name] = schema{"description": about, "schema": schema{"type": "string"}}
		}
		if len(headers) > 0 {
			one["headers"] = headers
		}
		all[strconv.Itoa(a.status)] = one
	}
	for _, status := range r.failures() {
		if r.failure != nil {
			all[strconv.Itoa(status)] = schema{"description": aboutFailure[status], "content": content(s.of(reflect.TypeOf(r.failure)), document.JSON)}
			continue
		}
		all[strconv.Itoa(status)] = schema{"$ref": "#/components/responses/" + strconv.Itoa(status)}
	}
	return all
}

// failures returns the statuses of an operation that are no success.
func (r route) failures() []int {
	all := []int{http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusInternalServerError, http.StatusServiceUnavailable}
	if !r.public {
		all = append(all, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound)
	}
	if r.takes != nil {
		all = append(all, http.StatusRequestEntityTooLarge)
	}
	all = append(all, r.errors...)
	slices.Sort(all)
	return slices.Compact(all)
}

// aboutFailure says what a status means.
var aboutFailure = map[int]string{
	http.StatusBadRequest:            "The request is wrong: each error names the field, its value and what would be right.",
	http.StatusUnauthorized:          "The request has no valid token.",
	http.StatusForbidden:             "The token does not permit the request.",
	http.StatusNotFound:              "There is no such object, or it is of a tenant that does not exist.",
	http.StatusConflict:              "The state of the site does not permit the request.",
	http.StatusPreconditionFailed:    "The object has another ETag, or the state of the run does not permit the request.",
	http.StatusRequestEntityTooLarge: "The body is too large.",
	http.StatusUnsupportedMediaType:  "The content type or the content coding of the body is not read here.",
	http.StatusPreconditionRequired:  "The change names entries of a list by index, and no revision: send If-Match.",
	http.StatusTooManyRequests:       "There were too many attempts; Retry-After says when to try again.",
	http.StatusInternalServerError:   "What is stored cannot be read.",
	http.StatusServiceUnavailable:    "The site cannot answer now; Retry-After says when to try again.",
}

// failures are the responses of failure, which all have the same body.
func failures() schema {
	all := schema{}
	for status, about := range aboutFailure {
		one := schema{"description": about, "content": content(schema{"$ref": "#/components/schemas/ErrorBody"}, v1.BodyTypes()...)}
		switch status {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			one["headers"] = schema{"Retry-After": schema{"description": "Seconds until the request may succeed.", "schema": schema{"type": "integer"}}}
		case http.StatusUnauthorized:
			one["headers"] = schema{"WWW-Authenticate": schema{"description": "The scheme of the token.", "schema": schema{"type": "string"}}}
		}
		all[strconv.Itoa(status)] = one
	}
	return all
}

// reference returns the page about the API.
func reference(t *testing.T) []byte {
	t.Helper()
	var page bytes.Buffer
	page.WriteString(referenceHead)
	for _, g := range groups {
		fmt.Fprintf(&page, "\n### %s\n\n| | path | does | token |\n|---|---|---|---|\n", g)
		for _, r := range routes() {
			if r.group == g {
				fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s |\n", r.method, r.paths()[0], r.summary, r.needs())
			}
		}
	}
	page.WriteString("\n## Statuses of failure\n\n| status | meaning |\n|---|---|\n")
	for _, status := range slices.Sorted(maps.Keys(aboutFailure)) {
		fmt.Fprintf(&page, "| %d | %s |\n", status, aboutFailure[status])
	}
	return page.Bytes()
}

// needs returns the rights or roles of which a token needs one. Admin may do everything,
// and several roles have the right to read, so neither is repeated.
func (r route) needs() string {
	if r.public {
		return "none"
	}
	roles, of := rolesOf(r), ""
	if roles[0] == ofAllTenants {
		roles, of = roles[1:], " of all tenants"
	}
	if slices.Contains(roles, access.Reads) {
		roles = slices.DeleteFunc(roles, func(role access.Role) bool {
			return role == access.Operator || role == access.Approver || role == access.Viewer
		})
	}
	if len(roles) > 1 {
		roles = slices.DeleteFunc(roles, func(role access.Role) bool { return role == access.Admin })
	}
	return "`" + strings.Join(roles, "`, `") + "`" + of
}

const referenceHead = `---
page_title: "The REST API"
subcategory: "osupgrade-agent"
description: |-
  The conventions of the REST API: bodies, errors, ETags, and a table of all paths.
---

# The REST API

` + "`" + `osupgrade-agent` + "`" + ` describes its API itself: ` + "`" + `GET /v1/openapi.json` + "`" + ` is an OpenAPI 3.1 text with each parameter, body and answer. It needs no token, and a generator makes a client from it. It is also
[in the repository](https://github.com/osupgrade/terraform-provider-osupgrade/blob/main/agent/api/openapi.json). This page has what you need to read that text. Server, text and page are made from one table,
and the tests of the API check each request and each answer against the text.

` + "```" + `sh
curl -s "$OSUPGRADE_ENDPOINT/v1/openapi.json"
curl -s -H "Authorization: Bearer $OSUPGRADE_TOKEN" "$OSUPGRADE_ENDPOINT/v1/state/os-upgrade?fields=status,next-upgrade-at"
` + "```" + `

## Conventions

- **Paths.** What you declare is under ` + "`" + `/v1/config` + "`" + `, what is so now under ` + "`" + `/v1/state` + "`" + `. Most paths with ` + "`" + `/tenants/{tenant}` + "`" + ` also exist without it, for the tenant of the token. Operations on runs are POST requests below ` + "`" + `/v1/state` + "`" + `.
- **Token.** Send ` + "`" + `Authorization: Bearer TOKEN` + "`" + `, or use a [client certificate](client-certificates.md). [Who may do what](access.md) explains roles and rights.
- **Bodies** are JSON or YAML in both directions, by ` + "`" + `Content-Type` + "`" + ` and ` + "`" + `Accept` + "`" + `; JSON is the default. A query parameter or a member that the site does not know is refused.
- **PATCH** takes an object to merge (RFC 7396), in which ` + "`" + `null` + "`" + ` removes a member, or a list of changes (RFC 6902). ` + "`" + `application/merge-patch+json` + "`" + ` and ` + "`" + `application/json-patch+json` + "`" + ` may name either: the body tells which it is.
- **Newer clients.** With ` + "`" + `unknown=keep` + "`" + ` a write may have members that the site does not know. They are stored and returned, have no effect, and stay when somebody else writes the object.
- **Parts.** ` + "`" + `fields=a,b/c` + "`" + ` returns only these members. A list has ` + "`" + `keys=true` + "`" + ` for its keys and ` + "`" + `count=true` + "`" + ` for its length. Lists of hosts come in parts with ` + "`" + `limit` + "`" + ` and ` + "`" + `after` + "`" + `; the header ` + "`" + `Link` + "`" + ` leads to the next part.
- **Selectors.** ` + "`" + `label=shop=basel` + "`" + `, ` + "`" + `role=till` + "`" + ` and ` + "`" + `host=h01` + "`" + ` choose hosts, as the match of a stage does: all labels, one of the roles and one of the hosts. Each may be repeated, and ` + "`" + `label=shop=basel,bern` + "`" + ` accepts either value. If no host fits, a header ` + "`" + `Warning` + "`" + ` says which labels or roles there are. In the body of a POST they are the members ` + "`" + `labels` + "`" + `, ` + "`" + `roles` + "`" + ` and ` + "`" + `hosts` + "`" + `.
- **Trying.** ` + "`" + `validate=true` + "`" + ` checks a request and changes nothing.
- **Methods.** ` + "`" + `OPTIONS` + "`" + ` names the methods of a path, and ` + "`" + `HEAD` + "`" + ` works where ` + "`" + `GET` + "`" + ` does.
- **Transport.** Answers are compressed for a client that accepts gzip. ` + "`" + `X-Request-Id` + "`" + ` is in each answer and in the site's log; a client may send its own. Over TLS there is HTTP/2.

## ETags

Each object that you declare has a strong ETag, which changes with every write. Three headers prevent lost updates:

| header | on | meaning |
|---|---|---|
| ` + "`" + `If-Match: ETAG` + "`" + ` | PUT, PATCH, DELETE | write only if the object still has this ETag; otherwise 412 |
| ` + "`" + `If-None-Match: *` + "`" + ` | PUT | create the object only if there is none; otherwise 412 |
| ` + "`" + `If-None-Match: ETAG` + "`" + ` | GET | 304 while the object still has this ETag |

A write without ` + "`" + `If-Match` + "`" + ` overwrites what is there. A JSON Patch that names entries of a list by index is refused with 428 unless it has ` + "`" + `If-Match` + "`" + ` or a ` + "`" + `test` + "`" + ` operation.

## Errors

Every failure has the same body. ` + "`" + `error-info` + "`" + ` names the field and the value, if one is to blame. It has ` + "`" + `"full": true` + "`" + ` if there are as many objects of the kind as there may be:

` + "```" + `json
{"errors": [{"error-message": "...", "error-info": {"field": "...", "value": "..."}}]}
` + "```" + `

A 503 or 429 has ` + "`" + `Retry-After` + "`" + `. The statuses are listed at the end.

## Paths

The last column is what the token must be allowed: one of these rights or roles. ` + "`" + `admin` + "`" + ` allows everything. ` + "`" + `operator` + "`" + `, ` + "`" + `approver` + "`" + ` and ` + "`" + `viewer` + "`" + ` include ` + "`" + `read` + "`" + `.
`
