package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// maxRedirects bounds how many redirects a check follows.
const maxRedirects = 3

// get tries an http check.
func (r *Runner) get(ctx context.Context, c policy.Check) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return plain(err)
	}
	return r.send(request, c.Status, follow(c.Status))
}

// call tries an http hook. A redirect is a failure: to follow it would make a
// GET of most methods (RFC 9110 15.4), which takes no host out of service.
func (r *Runner) call(ctx context.Context, t message.Task, h policy.Hook) error {
	method := h.Method
	if method == "" {
		method = http.MethodPost
	}
	body, err := json.Marshal(hookBody{t.Host, t.Run, t.Kind})
	if err != nil {
		return err
	}
	address := strings.ReplaceAll(h.URL, "{host}", url.PathEscape(t.Host))
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return plain(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return r.send(request, 0, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse })
}

// hookBody is what a hook's request tells.
type hookBody struct {
	Host string           `json:"host"`
	Run  uint64           `json:"run"`
	Kind message.TaskKind `json:"kind"`
}

// send sends a request on a connection of its own, so that each try finds out
// whether there is one to be had, and judges the answer by its status alone: a
// body may be endless.
func (r *Runner) send(request *http.Request, want int, redirect func(*http.Request, []*http.Request) error) error {
	request.Close = true
	request.Header.Set("User-Agent", "osupgrade-agent")
	client := http.Client{Transport: r.Transport, CheckRedirect: redirect}
	if client.Transport == nil {
		client.Transport = transport()
	}
	response, err := client.Do(request)
	if err != nil && request.Context().Err() != nil {
		return errNoAnswer
	}
	if err != nil {
		return plain(err)
	}
	response.Body.Close()
	return judge(response, want)
}

// follow follows redirects of the same host: another one may be well while
// that which is asked is not. A redirect that is itself what is wanted is none
// to follow.
func follow(want int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		switch {
		case next.Response != nil && next.Response.StatusCode == want:
			return http.ErrUseLastResponse
		case next.URL.Hostname() != via[0].URL.Hostname():
			return http.ErrUseLastResponse
		case len(via) > maxRedirects:
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		default:
			return nil
		}
	}
}

// judge tells whether the status is the one that is wanted, or any of 200 to
// 299 where that is 0.
func judge(response *http.Response, want int) error {
	status := response.StatusCode
	if status == want || want == 0 && status >= 200 && status <= 299 {
		return nil
	}
	// Where on that host is not told: a path may be as good as a password.
	if to, err := response.Location(); err == nil {
		return fmt.Errorf("status %d, a redirect to %s, which is not followed", status, to.Host)
	}
	return fmt.Errorf("status %d", status)
}

// plain leaves out the URL, which the check's name has already.
func plain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
