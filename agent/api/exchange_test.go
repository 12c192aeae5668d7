package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	validation "github.com/pb33f/libopenapi-validator/errors"
)

// judges check exchanges against the OpenAPI text: whole has the required members,
// partial has not, for answers that "fields" has restricted. Neither permits a member that
// the text does not have.
var judges = sync.OnceValues(func() (whole, partial validator.Validator) {
	return newJudge(func(s map[string]any) { closed(s) }), newJudge(func(s map[string]any) {
		closed(s)
		delete(s, "required")
	})
})

// closed has a schema of an object refuse other members.
func closed(s map[string]any) {
	if s["properties"] != nil {
		s["additionalProperties"] = false
	}
}

// newJudge returns a validator of the OpenAPI text after a change of each schema.
func newJudge(change func(map[string]any)) validator.Validator {
	document, err := libopenapi.NewDocument(changed(openAPI, change))
	if err != nil {
		panic(err)
	}
	v, errs := validator.NewValidator(document, config.WithFormatAssertions(), config.WithoutSecurityValidation(), config.WithStandardBodyDecoders())
	if len(errs) > 0 {
		panic(fmt.Sprint(errs))
	}
	return v
}

// changed returns an OpenAPI text after a change of each schema.
func changed(text []byte, change func(map[string]any)) []byte {
	var all map[string]json.RawMessage
	var components map[string]json.RawMessage
	var schemas map[string]map[string]any
	err := json.Unmarshal(text, &all)
	if err == nil {
		err = json.Unmarshal(all["components"], &components)
	}
	if err == nil {
		err = json.Unmarshal(components["schemas"], &schemas)
	}
	for _, s := range schemas {
		change(s)
	}
	if err == nil {
		components["schemas"], err = json.Marshal(schemas)
	}
	if err == nil {
		all["components"], err = json.Marshal(components)
	}
	if err == nil {
		text, err = json.Marshal(all)
	}
	if err != nil {
		panic(err)
	}
	return text
}

// operations are the methods and patterns of all operations.
var operations = sync.OnceValue(func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes() {
		for _, path := range r.paths() {
			mux.Handle(r.method+" "+path, http.NotFoundHandler())
		}
	}
	return mux
})

// Exchange is a request and its answer.
type Exchange struct {
	Method, Target string
	Header         http.Header
	Body           []byte
	Status         int
	AnswerHeader   http.Header
	Answer         []byte
}

// CheckExchange returns what of an exchange the OpenAPI text does not have. A request
// that the text does not permit must not succeed.
func CheckExchange(e Exchange) []string {
	request := httptest.NewRequest(e.Method, e.Target, bytes.NewReader(e.Body))
	request.Header = maps.Clone(e.Header)
	if request.Header.Get("Content-Type") == "" && len(e.Body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if _, pattern := operations().Handler(request); pattern == "" || e.Method == http.MethodHead {
		return notThere(e)
	}
	whole, partial := judges()
	response := &http.Response{StatusCode: e.Status, Header: maps.Clone(e.AnswerHeader), Body: io.NopCloser(bytes.NewReader(e.Answer)), Request: request}
	v := whole
	if request.URL.Query().Has("fields") {
		v = partial
	}
	var found []string
	if right, problems := v.ValidateHttpRequestSync(request); !right && e.Status < 300 {
		found = append(found, "the request is not in the OpenAPI text, but succeeds: "+texts(problems))
	}
	if len(e.Answer) == 0 {
		response.Header.Del("Content-Type")
	}
	if right, problems := v.ValidateHttpResponse(request, response); !right {
		found = append(found, "the answer is not in the OpenAPI text: "+texts(problems))
	}
	return found
}

// notThere checks the answer to a request for what is no operation.
func notThere(e Exchange) []string {
	if e.Method == http.MethodOptions && e.Status == http.StatusNoContent || e.Method == http.MethodHead ||
		slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed}, e.Status) {
		return nil
	}
	return []string{fmt.Sprintf("the OpenAPI text has no such operation, but the answer is %d", e.Status)}
}

func texts(problems []*validation.ValidationError) string {
	var all []string
	for _, p := range problems {
		text := p.Message + ": " + p.Reason
		for _, s := range p.SchemaValidationErrors {
			text += fmt.Sprintf(" [%s: %s]", s.FieldPath, s.Reason)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// checked returns a handler that has each exchange checked.
func checked(t *testing.T, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
		e := Exchange{r.Method, r.URL.String(), r.Header, body, recorder.Code, recorder.Header(), recorder.Body.Bytes()}
		for _, wrong := range CheckExchange(e) {
			t.Errorf("%s %s %.200s, answered %d %.300s: %s", e.Method, e.Target, e.Body, e.Status, e.Answer, wrong)
		}
	})
}
