package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

// TestMergePatch checks RFC 7396 over HTTP: null removes, objects are merged.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads, access.Writes)
	const merge = "application/merge-patch+json"
	s.want("PUT", rolloutPath, `{"splay":"1h","paused":true,"timeouts":{"upgrade":"2h","reboot":"5m"}}`, 201, "")
	s.want("PATCH", rolloutPath, `{"splay":null,"timeouts":{"reboot":null,"prepare":"3h"}}`, 204, "", "Content-Type", merge)
	s.want("GET", rolloutPath, "", 200, `{"paused":true,"timeouts":{"prepare":"3h","upgrade":"2h"}}`)
	s.want("PATCH", rolloutPath, "timeouts: null\n", 204, "", "Content-Type", "application/yaml")
	s.want("GET", rolloutPath, "", 200, `{"paused":true}`)
	s.want("PATCH", rolloutPath, `{"timeout":null}`, 400, "timeout: unknown key", "Content-Type", merge)
	s.want("PUT", rolloutPath, `{"splay":null}`, 400, "splay: null is not a value")
	s.want("PUT", rolloutPath, `{}`, 415, "is not a content type", "Content-Type", merge)
}

// TestJSONPatch checks RFC 6902 over HTTP: operations in their order, all or none of them.
func TestJSONPatch(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads, access.Writes)
	patch := func(body string, status int, part string, headers ...string) http.Header {
		t.Helper()
		return s.want("PATCH", rolloutPath, body, status, part, append(headers, "Content-Type", "application/json-patch+json")...)
	}
	patch(`[]`, 404, "create it with PUT")
	tag := s.want("PUT", rolloutPath, `{"stages":[{"name":"canary","match":{"hosts":["h01"]}},{"name":"rest"}],"splay":"1h"}`, 201, "").Get("ETag")
	patch(`[{"op":"remove","path":"/stages/0"}]`, 428, `path: \"/stages/0\" names an entry by its index`)
	tag = patch(`[{"op":"remove","path":"/stages/0"}]`, 204, "", "If-Match", tag).Get("ETag")
	s.want("GET", rolloutPath, "", 200, `{"stages":[{"name":"rest"}],"splay":"1h"}`)
	patch(`[{"op":"test","path":"/stages/0/name","value":"rest"},{"op":"replace","path":"/stages/0/name","value":"all"},{"op":"remove","path":"/splay"}]`, 204, "")
	s.want("GET", rolloutPath, "", 200, `{"stages":[{"name":"all"}]}`)
	patch(`[{"op":"remove","path":"/splay"}]`, 409, "does not fit the rollout as it is")
	patch(`[{"op":"add","path":"/paused","value":true},{"op":"test","path":"/paused","value":false}]`, 409, "does not fit")
	patch(`[{"op":"replace","path":"/stages/7","value":{}}]`, 409, "does not fit", "If-Match", "*")
	s.want("GET", rolloutPath, "", 200, `{"stages":[{"name":"all"}]}`)
	patch(`[{"op":"add","path":"/splya","value":"1h"}]`, 400, "splya: unknown key; did you mean splay?")
	patch(`[{"op":"add","path":"/paused","value":1}]`, 400, "paused: 1 is not a boolean")
	patch(`"splay"`, 400, "is not an object")
	patch(`{"splay":null,"paused":1}`, 400, "paused: 1 is not a boolean")
	patch(` {"splay":"3h"}`, 204, "")
	s.want("GET", rolloutPath, "", 200, `{"stages":[{"name":"all"}],"splay":"3h"}`)
	const merge = "application/merge-patch+json; charset=utf-8"
	s.want("PATCH", rolloutPath, "\n"+`[{"op":"remove","path":"/splay"},{"op":"add","path":"/splay","value":"2h"}]`, 204, "", "Content-Type", merge)
	s.want("PATCH", rolloutPath, `[{"op":"grow","path":"/splay"}]`, 400, "unsupported operation", "Content-Type", merge)
	s.want("PATCH", rolloutPath, `[{"op":"remove","path":"/splay"}]`, 400, "", "Content-Type", "application/yaml")
	patch(`[{"op":"remove","path":"/splay"}]`, 204, "")
	patch(`[{"op":"test","path":"/stages","value":[]},{"op":"test","path":""}]`, 400, "value: operation 1 (test) has none")
	patch(`[{"op":"add","path":"/splay"}]`, 400, "missing value")
	patch(`[{"op":"test","path":"","value":null}]`, 409, "does not fit")
	patch(`[{"op":"grow","path":"/splay"}]`, 400, "unsupported operation")
	patch(`[{"op":"add","path":"/splay","value":"2h"}]`, 412, "has ETag", "If-Match", tag)
	patch("["+strings.Repeat(`{"op":"test","path":"/paused","value":true},`, 1000)+`{"op":"remove","path":"/paused"}]`, 400, "1001 operations are too many")
	// Each copy doubles what it copies.
	bomb := `{"op":"add","path":"/x","value":["` + strings.Repeat("x", 1000) + `"]}` + strings.Repeat(`,{"op":"copy","from":"/x","path":"/x/-"}`, 40)
	patch("["+bomb+"]", 400, "cannot apply the JSON Patch")
}

// TestLists checks keys=true and count=true of a list.
func TestLists(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads, access.Writes)
	const runs = acmeState + "/runs"
	s.want("GET", runs+"?keys=", "", 200, `["41"]`)
	s.want("GET", runs+"?keys=true", "", 200, `["41"]`)
	s.want("GET", runs+"?count=true", "", 200, `1`)
	s.want("GET", runs+"?keys=yes", "", 400, `\"yes\"`)
	s.want("GET", runs+"?count=1", "", 400, `\"1\"`)
}
