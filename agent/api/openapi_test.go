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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format/formattest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Where the OpenAPI text and the reference page are. The server serves the first.
const (
	servedText    = "openapi.json"
	publishedText = "../../docs/openapi.json"
	referencePage = "../../templates/guides/api.md"
)

// TestOpenAPI checks that the OpenAPI text and the reference page are what the table of
// routes and the types say; -update writes them.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	text, err := json.MarshalIndent(newDocument(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	for path, want := range map[string][]byte{servedText: text, publishedText: text, referencePage: reference(t)} {
		formattest.Golden(t, path, want)
	}
	if t.Failed() {
		t.Log("run: go test ./agent/api -run TestOpenAPI -update, then: make docs")
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
	all := content(s.change(t), append(v1.BodyTypes(), document.MergePatch)...)
	all[v1.JSONPatch] = schema{"schema": schema{"type": "array", "items": schema{
		"type": "object", "required": []string{"op", "path"}, "properties": schema{
			"op": schema{"enum": []string{"add", "remove", "replace", "move", "copy", "test"}}, "path": schema{"type": "string"}, "from": schema{"type": "string"}, "value": schema{},
		},
	}}}
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
		fmt.Fprintf(&page, "\n## %s\n", g)
		for _, r := range routes() {
			if r.group == g {
				r.describe(&page)
			}
		}
	}
	page.WriteString("\n## Statuses of failure\n\n| status | meaning |\n|---|---|\n")
	for _, status := range slices.Sorted(maps.Keys(aboutFailure)) {
		fmt.Fprintf(&page, "| %d | %s |\n", status, aboutFailure[status])
	}
	return page.Bytes()
}

// describe writes the part of the page about an operation.
func (r route) describe(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n### %s\n\n", r.summary)
	for _, path := range r.paths() {
		fmt.Fprintf(page, "`%s %s`  \n", r.method, path)
	}
	if r.about != "" {
		fmt.Fprintf(page, "\n%s\n", r.about)
	}
	page.WriteByte('\n')
	switch {
	case r.path == joinPath:
	case r.public:
		page.WriteString("It needs no token.\n")
	default:
		fmt.Fprintf(page, "The token needs one of the roles %s.\n", "`"+strings.Join(rolesOf(r), "`, `")+"`")
	}
	if r.takes != nil {
		optional := ""
		if r.optional {
			optional = ", which may be left out"
		}
		fmt.Fprintf(page, "The body is `%s`%s.\n", typeName(r.takes), optional)
	}
	if len(r.query)+len(r.headers) > 0 {
		page.WriteString("\n| parameter | meaning |\n|---|---|\n")
		for _, p := range r.query {
			fmt.Fprintf(page, "| `%s` | %s |\n", p.name, p.about)
		}
		for _, p := range r.headers {
			fmt.Fprintf(page, "| header `%s` | %s |\n", p.name, p.about)
		}
	}
	page.WriteString("\n| status | answer |\n|---|---|\n")
	for _, a := range r.returns {
		body := ""
		if a.body != nil {
			body = " `" + typeName(a.body) + "`"
		}
		fmt.Fprintf(page, "| %d | %s%s |\n", a.status, a.about, body)
	}
	var others []string
	for _, status := range r.failures() {
		others = append(others, strconv.Itoa(status))
	}
	fmt.Fprintf(page, "| %s | see below |\n", strings.Join(others, ", "))
}

// typeName names the type of a body.
func typeName(value any) string {
	if several, ok := value.(anyOf); ok {
		var list []string
		for _, v := range several {
			list = append(list, typeName(v))
		}
		return strings.Join(list, " or ")
	}
	switch t := reflect.TypeOf(value); {
	case t == reflect.TypeFor[json.RawMessage]():
		return "object"
	case t.Kind() == reflect.Slice:
		return "[]" + t.Elem().Name()
	default:
		return t.Name()
	}
}

const referenceHead = `---
page_title: "The REST API"
description: |-
  Each path of the REST API, with its parameters, bodies and answers.
---

# The REST API

` + "`" + `osupgrade-agent` + "`" + ` serves this API, and describes it itself: ` + "`" + `GET /v1/openapi.json` + "`" + ` is its OpenAPI 3.1 text, which is
also [in this folder](https://github.com/osupgrade/terraform-provider-osupgrade/blob/main/docs/openapi.json) and has each type that is named below. The server is built from the same table
as this page, and the tests of the API check each request and each answer against that text.

- Intent is under ` + "`" + `/v1/config` + "`" + `, what is under ` + "`" + `/v1/state` + "`" + `. A path with ` + "`" + `/tenants/{tenant}` + "`" + ` is mostly also there without it, for the tenant of the token.
- Send ` + "`" + `Authorization: Bearer TOKEN` + "`" + `.
- Bodies are JSON or YAML in both directions, by ` + "`" + `Content-Type` + "`" + ` and ` + "`" + `Accept` + "`" + `; JSON is the default.
- A failure is ` + "`" + `{"errors": [{"error-message": "...", "error-info": {"field": "...", "value": "..."}}]}` + "`" + `. A query parameter or a member that is not known is refused.
- A client that is newer than the site writes with ` + "`" + `unknown=keep` + "`" + `: members that the site does not know are stored and returned, and mean nothing. They stay when somebody else writes the object.
- Answers are compressed for a client that takes gzip. ` + "`" + `X-Request-Id` + "`" + ` is in each answer and in the log of the site; a client may send its own. Over TLS there is HTTP/2.
- A list has ` + "`" + `keys=true` + "`" + ` for its keys and ` + "`" + `count=true` + "`" + ` for its length alone.
- ` + "`" + `OPTIONS` + "`" + ` tells the methods of a path, and ` + "`" + `HEAD` + "`" + ` is there where ` + "`" + `GET` + "`" + ` is.
`
