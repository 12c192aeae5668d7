package api

import (
	"net/http"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// etag is the strong entity tag of a revision.
func etag(r store.Revision) string { return `"` + r.String() + `"` }

// precondition evaluates If-Match and If-None-Match against what is there
// (RFC 9110 13.2.2). It returns 0 when the request goes on, else 304 or 412.
func precondition(method string, header http.Header, exists bool, tag string) int {
	if match := header.Values("If-Match"); len(match) > 0 && !lists(match, exists, tag) {
		return http.StatusPreconditionFailed
	}
	if none := header.Values("If-None-Match"); len(none) > 0 && lists(none, exists, tag) {
		if method == http.MethodGet || method == http.MethodHead {
			return http.StatusNotModified
		}
		return http.StatusPreconditionFailed
	}
	return 0
}

// conditional reports whether a request names the revision that it is based
// on.
func conditional(header http.Header) bool {
	return len(header.Values("If-Match")) > 0 || len(header.Values("If-None-Match")) > 0
}

// lists reports whether a list of entity tags names what is there. A weak tag
// never does: ours are strong.
func lists(values []string, exists bool, tag string) bool {
	for _, value := range values {
		for _, part := range strings.Split(value, ",") {
			switch strings.TrimSpace(part) {
			case "*":
				return exists
			case tag:
				return exists
			}
		}
	}
	return false
}
