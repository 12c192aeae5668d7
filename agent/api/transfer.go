package api

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// compressed returns a handler that compresses answers that are worth it for a client that
// takes gzip.
var compressed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(1<<10),
		gzhttp.ContentTypes([]string{"application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/calendar"}),
	)
	if err != nil {
		panic(err) // The options are constants.
	}
	return wrap
}()

// streams tells that an answer goes on until the client goes: each part of it must reach
// the client at once, so it is not compressed.
func (r route) streams() bool {
	return slices.ContainsFunc(r.returns, func(a response) bool { return a.contentType == "text/event-stream" })
}

// requestIDHeader names a request in the log of the site; a client may choose the id.
const requestIDHeader = "X-Request-Id"

// maxRequestID is the length of the longest id of a request that is taken.
const maxRequestID = 128

// requestID returns the id of a request: that of the client if it can be logged, else a
// new one.
func requestID(r *http.Request) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"
	id := r.Header.Get(requestIDHeader)
	if id == "" || len(id) > maxRequestID || strings.Trim(id, letters) != "" {
		return rand.Text()
	}
	return id
}

// plainBody refuses a body that is compressed: no content coding is read.
func plainBody(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(http.StatusUnsupportedMediaType, "Content-Encoding", coding, "Content-Encoding: %.100q is not read here; send the body as it is", coding)
	}
	return nil
}
