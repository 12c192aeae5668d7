// Package prometheus asks a Prometheus server, or one that speaks its HTTP API, for the value of
// an expression now, and says whether that is as it should be.
//
// It decides what an answer means, and that one which cannot be understood is no success. It
// never decides what follows from that, nor to which addresses a client may connect.
package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

const (
	// maxAnswer bounds an answer, in bytes: a query that returns more is about something else than
	// whether all is well.
	maxAnswer = 1 << 20
	// maxShown bounds what is shown of a server's own words and of a series.
	maxShown = 300
)

// Result is what an expression returned.
type Result struct {
	// Scalar says that it is a number without labels, which is never empty.
	Scalar bool
	Series []Series
}

// Series is one element of a result.
type Series struct {
	Labels map[string]string
	Value  float64
}

// String is the series as Prometheus writes it, with its value.
func (s Series) String() string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		if name != "__name__" {
			labels = append(labels, name+"="+strconv.Quote(s.Labels[name]))
		}
	}
	shown := s.Labels["__name__"]
	if len(labels) > 0 || shown == "" && len(s.Labels) > 0 {
		shown += "{" + strings.Join(labels, ", ") + "}"
	}
	value := strconv.FormatFloat(s.Value, 'g', -1, 64)
	if shown == "" {
		return value
	}
	return shorten(shown) + " is " + value
}

// shorten makes a text of a server one line that can be shown.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return text.Cut(s, maxShown, "…")
}

// Client asks servers.
type Client struct {
	// Transport makes the requests.
	Transport http.RoundTripper
	// Token returns the token for a server, by its host and port; empty for none. It is called for
	// https only, because anyone on the way could read a token over http. Nil means that there are
	// no tokens.
	Token func(server string) (string, error)
}

// Query returns what an expression returns now. address is that of the server, as its API is
// below "/api/v1" there.
func (c Client) Query(ctx context.Context, address, expression string) (Result, error) {
	request, err := c.request(ctx, address, expression)
	if err != nil {
		return Result{}, err
	}
	client := http.Client{
		Transport: c.Transport,
		// A redirect could lead to a login page, or a token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return Result{}, err
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Result{}, fmt.Errorf("status %d: the server wants a token, or another one", status)
	case status >= 300 && status <= 399:
		return Result{}, fmt.Errorf("status %d, a redirect, which is not followed", status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("the answer broke off: %w", err)
	case len(body) > maxAnswer:
		return Result{}, fmt.Errorf("the answer is larger than %d bytes; use a query that returns less, such as count() of it", maxAnswer)
	}
	result, err := Decode(body)
	if unreadable, ok := errors.AsType[*unreadableError](err); ok && response.StatusCode != http.StatusOK {
		return Result{}, fmt.Errorf("status %d, and %w", response.StatusCode, unreadable)
	}
	return result, err
}

func (c Client) request(ctx context.Context, address, expression string) (*http.Request, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	at := base.JoinPath("api/v1/query")
	at.RawQuery = url.Values{"query": {expression}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "osupgrade-agent")
	if c.Token == nil || at.Scheme != "https" {
		return request, nil
	}
	token, err := c.Token(server(at))
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, err
}

// server is the host and the port of a URL with https.
func server(at *url.URL) string {
	if at.Port() == "" {
		return strings.ToLower(at.Host) + ":443"
	}
	return strings.ToLower(at.Host)
}

// unreadableError is an answer that is none of Prometheus.
type unreadableError struct{ why string }

func (e *unreadableError) Error() string {
	return "the answer is not one of Prometheus: " + e.why + "; the URL is that of the server, without /api/v1/query"
}

func unreadable(format string, args ...any) error {
	return &unreadableError{fmt.Sprintf(format, args...)}
}

// answer is the body of an answer.
type answer struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// Decode reads the body of an answer to a query. The error of the server itself, such as one about
// the expression, is told as it is.
func Decode(body []byte) (Result, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return Result{}, unreadable("it is no JSON object")
	}
	switch {
	case a.Status == "error":
		return Result{}, fmt.Errorf("the server refuses the query (%s): %s", shorten(a.ErrorType), shorten(a.Error))
	case a.Status != "success":
		return Result{}, unreadable("its status is %q", shorten(a.Status))
	case len(bytes.TrimSpace(a.Data.Result)) == 0:
		return Result{}, unreadable("it has no data.result")
	}
	switch a.Data.ResultType {
	case "vector":
		return decodeVector(a.Data.Result)
	case "scalar":
		value, err := decodeSample(a.Data.Result)
		return Result{Scalar: true, Series: []Series{{Value: value}}}, err
	case "matrix", "string":
		return Result{}, fmt.Errorf("the query returns a %s; use one that returns a value for each series, without a range such as [5m] around all of it", a.Data.ResultType)
	}
	return Result{}, unreadable("its result is of type %q", shorten(a.Data.ResultType))
}

func decodeVector(body []byte) (Result, error) {
	var elements []struct {
		Metric map[string]string `json:"metric"`
		Value  json.RawMessage   `json:"value"`
	}
	if err := json.Unmarshal(body, &elements); err != nil || elements == nil {
		return Result{}, unreadable("its vector is no list of series")
	}
	var r Result
	for _, e := range elements {
		if len(e.Value) == 0 {
			return Result{}, errors.New("the query returns a histogram; use a function that makes a number of it, such as histogram_quantile()")
		}
		value, err := decodeSample(e.Value)
		if err != nil {
			return Result{}, err
		}
		r.Series = append(r.Series, Series{e.Metric, value})
	}
	return r, nil
}

// decodeSample reads [time, "value"].
func decodeSample(body []byte) (float64, error) {
	var sample []json.RawMessage
	var number string
	if json.Unmarshal(body, &sample) != nil || len(sample) != 2 || json.Unmarshal(sample[1], &number) != nil {
		return 0, unreadable("a value is not [time, number]")
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, unreadable("the value %q is no number", shorten(number))
	}
	return value, nil
}
