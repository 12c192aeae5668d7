package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
)

// openAPI is the OpenAPI 3.1 text of the API. openapi_test.go makes it of the table of
// routes and of the types of package v1, and checks that it is up to date.
//
//go:embed openapi.json
var openAPI []byte

// openAPIPath is where the server has the OpenAPI text.
const openAPIPath = "/v1/openapi.json"

func documentRoutes() []route {
	return []route{{
		method: http.MethodGet, path: openAPIPath, public: true, group: groupSite, handle: (*server).getOpenAPI,
		summary: "Read the OpenAPI text of this API", about: "OpenAPI 3.1, as JSON or YAML according to the Accept header.",
		returns: ok("The text.", json.RawMessage{}),
	}}
}

// getOpenAPI returns the OpenAPI text. It needs no token: it is the same at each site.
func (s *server) getOpenAPI(c *call) error {
	s.send(c.w, c.Request, http.StatusOK, json.RawMessage(openAPI))
	return nil
}
