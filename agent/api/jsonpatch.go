package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// maxChanges is how many operations a JSON Patch may have.
const maxChanges = 1000

// changed returns an object with the changes of a JSON Patch (RFC 6902).
//
// An operation on the entry of a list names it by its index. A concurrent write may have
// made that of another entry, so such a patch names the revision that it is based on, or
// tests what it changes.
func (o *object[T]) changed(c *call, now v1.Kept[T], body []byte, keep bool) (v1.Kept[T], error) {
	var none v1.Kept[T]
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return none, problem(http.StatusBadRequest, "", "", "cannot read the JSON Patch: %v; write a list of operations (RFC 6902)", err)
	}
	if len(patch) > maxChanges {
		return none, problem(http.StatusBadRequest, "", "", "%d operations are too many; use at most %d", len(patch), maxChanges)
	}
	if n := valueless(patch); n >= 0 {
		return none, problem(http.StatusBadRequest, "value", "", "value: operation %d (test) has none; name the value that is expected, which may be null", n)
	}
	if path := indexed(patch); path != "" && !conditional(c.Header) {
		return none, problem(http.StatusPreconditionRequired, "path", path,
			"path: %q names an entry by its index, which another write may move; send If-Match with the ETag of the object, or a test operation first", path)
	}
	text, err := o.form.Text(now, keep)
	if err != nil {
		return none, err
	}
	result, err := patch.ApplyWithOptions(text, &jsonpatch.ApplyOptions{AccumulatedCopySizeLimit: v1.MaxBody})
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed), errors.Is(err, jsonpatch.ErrMissing), errors.Is(err, jsonpatch.ErrInvalidIndex):
		return none, problem(http.StatusConflict, "", "", "the JSON Patch does not fit the %s as it is: %v", o.noun, err)
	case err != nil:
		return none, problem(http.StatusBadRequest, "", "", "cannot apply the JSON Patch: %v", err)
	case len(result) > v1.MaxBody:
		return none, problem(http.StatusBadRequest, "", "", "the JSON Patch makes the %s longer than %d bytes", o.noun, v1.MaxBody)
	}
	return o.form.Decode(now, "application/json", result, keep)
}

// valueless returns which test has no value; -1 if each has one. The library refuses other
// operations without one, and panics at a test of the whole document.
func valueless(patch jsonpatch.Patch) int {
	return slices.IndexFunc(patch, func(operation jsonpatch.Operation) bool {
		_, has := operation["value"]
		return !has && operation.Kind() == "test"
	})
}

// indexed returns the path of the first operation that changes an entry of a list by its
// index though no operation before it has tested something; empty if there is none.
func indexed(patch jsonpatch.Patch) string {
	for _, operation := range patch {
		if operation.Kind() == "test" {
			return ""
		}
		path, _ := operation.Path() // What has no path is refused when it is applied.
		if from, err := operation.From(); err == nil {
			path = from + path
		}
		if slices.ContainsFunc(strings.Split(path, "/"), isIndex) {
			return fmt.Sprintf("%.200s", path)
		}
	}
	return ""
}

func isIndex(part string) bool {
	return part != "" && strings.Trim(part, "0123456789") == ""
}
