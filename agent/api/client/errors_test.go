package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestErrorBodies(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body    string
		want    string
		foreign bool
	}{
		"ours": {
			`{"errors":[{"error-message":"no","error-info":{"field":"a","value":"b","run":7}}]}`,
			"[{Message:no Info:{Field:a Value:b Run:7 Frozen:false Missing: Full:false Choices:[]}}]", false,
		},
		"two problems": {
			`{"errors":[{"error-message":"one","error-info":{}},{"error-message":"two","error-info":{}}]}`,
			"[{Message:one Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}} {Message:two Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", false,
		},
		"an object is missing": {`{"errors":[{"error-message":"no","error-info":{"missing":"rollout"}}]}`, "[{Message:no Info:{Field: Value: Run:0 Frozen:false Missing:rollout Full:false Choices:[]}}]", false},
		"info as text":         {`{"errors":[{"error-message":"no","error-info":"sealed"}]}`, "[{Message:no Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", false},
		"info as a list":       {`{"errors":[{"error-message":"no","error-info":[1]}]}`, "[{Message:no Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", false},
		"info absent":          {`{"errors":[{"error-message":"no"}]}`, "[{Message:no Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", false},
		"info fits in part":    {`{"errors":[{"error-message":"no","error-info":{"value":5,"field":"a","run":7}}]}`, "[{Message:no Info:{Field:a Value: Run:7 Frozen:false Missing: Full:false Choices:[]}}]", false},
		"empty":                {"", "[{Message:the answer has no text Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", true},
		"no errors in it":      {`{"errors":[]}`, `[{Message:{"errors":[]} Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]`, true},
		"another form":         {`{"error":"x"}`, `[{Message:{"error":"x"} Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]`, true},
		"HTML":                 {"<html>\n\t<b>Bad</b>\x1b[31m</html>", "[{Message:<html> <b>Bad</b> [31m</html> Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", true},
		"the token repeated":   {"token sesame is not known", "[{Message:token (token) is not known Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", true},
		"the token in ours":    {`{"errors":[{"error-message":"sesame","error-info":{"value":"sesame"}}]}`, "[{Message:(token) Info:{Field: Value:(token) Run:0 Frozen:false Missing: Full:false Choices:[]}}]", false},
		"a screen in message":  {`{"errors":[{"error-message":"a\u001b[2Jb\nc"}]}`, "[{Message:a [2Jb c Info:{Field: Value: Run:0 Frozen:false Missing: Full:false Choices:[]}}]", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newError("GET", "/v1/x", 400, []byte(row.body), newSecret("sesame"))
			wantEqual(t, "errors", spelled(e.Errors), row.want)
			wantEqual(t, "foreign", e.foreign, row.foreign)
		})
	}
}

func TestExcerptIsShort(t *testing.T) {
	t.Parallel()
	got := excerpt([]byte(strings.Repeat("ä", 301)), newSecret("sesame"))
	wantEqual(t, "excerpt", got, strings.Repeat("ä", 300)+"…")
	// The token must be hidden before the cut, or half of it would be shown.
	got = excerpt([]byte(strings.Repeat("x", 297)+" sesame"), newSecret("sesame"))
	wantEqual(t, "excerpt with a token at the cut", got, strings.Repeat("x", 297)+" (t…")
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	e := newError("PUT", "/v1/x", 400, []byte(`{"errors":[{"error-message":"one"},{"error-message":"two"}]}`), newSecret("sesame"))
	wantEqual(t, "text", e.Error(), "cannot PUT /v1/x: 400 Bad Request: one; two")
	e.Status = 599
	wantEqual(t, "text of a status without a name", e.Error(), "cannot PUT /v1/x: 599: one; two")
}

func TestMissing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		body   string
		want   bool
	}{
		"no configuration":            {404, `{"errors":[{"error-message":"tenant \"a\" has no os-upgrade configuration"}]}`, true},
		"another server's":            {404, `{"errors":[{"error-message":"not found"}]}`, true},
		"no tenant":                   {404, `{"errors":[{"error-message":"tenant \"a\" does not exist","error-info":{"field":"tenant","value":"a"}}]}`, false},
		"no tenant, in prose":         {404, `{"errors":[{"error-message":"tenant \"a\" does not exist"}]}`, false},
		"no tenant, worded otherwise": {404, `{"errors":[{"error-message":"who is a?","error-info":{"field":"tenant"}}]}`, false},
		"the page of a proxy":         {404, "<html>404</html>", false},
		"an empty 404":                {404, "", false},
		"forbidden":                   {403, `{"errors":[{"error-message":"not found"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("outer: %w", newError("GET", "/", row.status, []byte(row.body), newSecret("sesame")))
			wantEqual(t, "missing", Missing(err), row.want)
			wantEqual(t, "has its status", HasStatus(err, row.status), true)
			wantEqual(t, "has another", HasStatus(err, 400), false)
		})
	}
	wantEqual(t, "no error", Missing(nil) || HasStatus(nil, 0), false)
	wantEqual(t, "another error", Missing(errors.New("x")) || HasStatus(errors.New("x"), 0), false)
}

func FuzzErrorBody(f *testing.F) {
	f.Add([]byte(`{"errors":[{"error-message":"no","error-info":{"run":7}}]}`))
	f.Add([]byte("<html>sesame</html>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		e := newError("GET", "/v1/x", 404, body, newSecret("sesame"))
		if len(e.Errors) == 0 {
			t.Fatal("there is no entry")
		}
		text := e.Error()
		if strings.Contains(text, "sesame") {
			t.Errorf("%q shows the token", text)
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%q is not fit to be shown", text)
		}
	})
}
