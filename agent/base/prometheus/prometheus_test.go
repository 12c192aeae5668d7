package prometheus_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/prometheus"
)

// vector is an answer with a vector of these elements.
func vector(elements ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(elements, ",") + `]}}`
}

const (
	alert  = `{"metric":{"__name__":"ALERTS","alertname":"DiskFull","severity":"page"},"value":[1764300000.1,"1"]}`
	second = `{"metric":{"__name__":"up","job":"ceph"},"value":[1764300000,"0.5"]}`
	scalar = `{"status":"success","data":{"resultType":"scalar","result":[1764300000,"3"]}}`
	noName = `{"metric":{"job":"a\"b"},"value":[1764300000,"7"]}`
	summed = `{"metric":{},"value":[1764300000,"2"]}`
	nan    = `{"metric":{},"value":[1764300000,"NaN"]}`
)

func bound(n float64) *float64 { return &n }

// TestJudge checks what an answer means: the error, or nothing when all is well.
func TestJudge(t *testing.T) {
	t.Parallel()
	none, below, above := prometheus.Bounds{}, prometheus.Bounds{Below: bound(2)}, prometheus.Bounds{Above: bound(0.5)}
	between := prometheus.Bounds{Below: bound(5), Above: bound(1)}
	for name, row := range map[string]struct {
		body   string
		bounds prometheus.Bounds
		want   string
	}{
		"nothing":                     {vector(), none, ""},
		"one series":                  {vector(alert), none, `the query returned 1 series, and should return nothing: ALERTS{alertname="DiskFull", severity="page"} is 1`},
		"two series":                  {vector(alert, second), none, `the query returned 2 series, and should return nothing: ALERTS{alertname="DiskFull", severity="page"} is 1 and 1 more`},
		"without a name":              {vector(noName), none, `the query returned 1 series, and should return nothing: {job="a\"b"} is 7`},
		"a number without bounds":     {scalar, none, `the query returned the number 3, which is never nothing; give below or above, or use a query that returns series`},
		"below":                       {vector(second, alert), below, ""},
		"equal is not below":          {vector(summed), below, "2, which is not below 2"},
		"one of two is not below":     {vector(alert, noName), below, `{job="a\"b"} is 7, which is not below 2 (of 2 series)`},
		"a number that is not below":  {scalar, below, "3, which is not below 2"},
		"above":                       {vector(alert), above, ""},
		"equal is not above":          {vector(second), above, `up{job="ceph"} is 0.5, which is not above 0.5`},
		"between":                     {vector(summed), between, ""},
		"not between":                 {vector(noName), between, `{job="a\"b"} is 7, which is not below 5`},
		"nothing to compare":          {vector(), below, "the query returned nothing, and so no number to compare"},
		"no number is not below":      {vector(nan), below, "NaN, which is not below 2"},
		"no number is not above":      {vector(nan), above, "NaN, which is not above 0.5"},
		"an error":                    {`{"status":"error","errorType":"bad_data","error":"1:4: parse error"}`, none, "the server refuses the query (bad_data): 1:4: parse error"},
		"a matrix":                    {`{"status":"success","data":{"resultType":"matrix","result":[]}}`, none, "the query returns a matrix; use one that returns a value for each series, without a range such as [5m] around all of it"},
		"a histogram":                 {vector(`{"metric":{},"histogram":[1,{}]}`), none, "the query returns a histogram; use a function that makes a number of it, such as histogram_quantile()"},
		"a page":                      {"<html>", none, "the answer is not one of Prometheus: it is no JSON object; the URL is that of the server, without /api/v1/query"},
		"another API":                 {`{"status":"ok"}`, none, `the answer is not one of Prometheus: its status is "ok"; the URL is that of the server, without /api/v1/query`},
		"no result":                   {`{"status":"success","data":{"resultType":"vector"}}`, none, "the answer is not one of Prometheus: it has no data.result; the URL is that of the server, without /api/v1/query"},
		"a result that is null":       {`{"status":"success","data":{"resultType":"vector","result":null}}`, none, "the answer is not one of Prometheus: its vector is no list of series; the URL is that of the server, without /api/v1/query"},
		"a type that nobody knows":    {`{"status":"success","data":{"resultType":"streams","result":[]}}`, none, `the answer is not one of Prometheus: its result is of type "streams"; the URL is that of the server, without /api/v1/query`},
		"a value that is no number":   {vector(`{"metric":{},"value":[1,"x"]}`), none, `the answer is not one of Prometheus: the value "x" is no number; the URL is that of the server, without /api/v1/query`},
		"a value without its instant": {vector(`{"metric":{},"value":["1"]}`), none, "the answer is not one of Prometheus: a value is not [time, number]; the URL is that of the server, without /api/v1/query"},
	} {
		result, err := prometheus.Decode([]byte(row.body))
		if err == nil {
			err = row.bounds.Judge(result)
		}
		if got := text(err); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestQuery checks what a server is asked, and what its answers beside those of Prometheus mean.
func TestQuery(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/prom/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") != `up{job="a b"} == 0` || r.Header.Get("Authorization") != "" {
			t.Errorf("asked %s with the header %q", r.URL, r.Header.Get("Authorization"))
		}
		_, _ = w.Write([]byte(vector(alert)))
	})
	mux.Handle("/moved/api/v1/query", http.RedirectHandler("/prom/api/v1/query", http.StatusFound))
	mux.HandleFunc("/login/api/v1/query", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/wrong/api/v1/query", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"status":"error","errorType":"bad_data","error":"no"}`))
	})
	mux.HandleFunc("/large/api/v1/query", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := prometheus.Client{Transport: http.DefaultTransport, Token: func(string) (string, error) { return "secret", nil }}
	for path, want := range map[string]string{
		"/prom":  "",
		"/prom/": "",
		"/moved": "status 302, a redirect, which is not followed",
		"/login": "status 401: the server wants a token, or another one",
		"/wrong": "the server refuses the query (bad_data): no",
		"/large": "the answer is larger than 1048576 bytes; use a query that returns less, such as count() of it",
		"/none":  "status 404, and the answer is not one of Prometheus: it is no JSON object; the URL is that of the server, without /api/v1/query",
	} {
		result, err := client.Query(t.Context(), server.URL+path, `up{job="a b"} == 0`)
		if text(err) != want || err == nil && len(result.Series) != 1 {
			t.Errorf("%s: got %v, %s; want %s", path, result, text(err), want)
		}
	}
}

// TestToken checks that the token goes to the server that it is for, over https only, and that
// nothing is asked when it cannot be read.
func TestToken(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("the header is %q", got)
		}
		_, _ = w.Write([]byte(vector()))
	}))
	t.Cleanup(server.Close)
	of := ""
	client := prometheus.Client{Transport: server.Client().Transport, Token: func(server string) (string, error) {
		of = server
		return "secret", nil
	}}
	if _, err := client.Query(t.Context(), server.URL, "up"); err != nil || of != server.Listener.Addr().String() {
		t.Errorf("got %v; the token asked for is that of %s", err, of)
	}
	unreadable := errors.New("cannot be read")
	client.Token = func(string) (string, error) { return "", unreadable }
	if _, err := client.Query(t.Context(), server.URL, "up"); !errors.Is(err, unreadable) || asked != 1 {
		t.Errorf("got %v after %d requests", err, asked)
	}
}

// FuzzDecode checks that each answer has an error, or a result that is shown as a text without
// an end of line.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{vector(), vector(alert, second), vector(noName, nan), scalar, `{"status":"error"}`, `{"status":"success","data":{"resultType":"vector","result":[{"metric":null,"value":[0,"1e999"]}]}}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		result, err := prometheus.Decode(body)
		if err != nil {
			return
		}
		if result.Scalar && len(result.Series) != 1 {
			t.Errorf("a number with %d series", len(result.Series))
		}
		for _, bounds := range []prometheus.Bounds{{}, {Below: bound(1)}, {Above: bound(1)}} {
			if err := bounds.Judge(result); err == nil && bounds == (prometheus.Bounds{}) && len(result.Series) > 0 {
				t.Errorf("%v counts as nothing", result)
			} else if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has two lines", err)
			}
		}
	})
}
