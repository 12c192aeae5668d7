package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// asked answers a request, and keeps what it was.
type asked struct {
	what, match, body string
}

func (a *asked) answers(status int, body string) fakeapi.Fault {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			*a = asked{r.Method + " " + r.URL.Path, r.Header.Get("If-None-Match"), string(text)}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
}

func deleteChat(ctx context.Context, c *Client) (any, error) {
	return nil, WebhookNamed("chat").Delete(ctx, c, "acme", Precondition{})
}

// TestWebhooks checks which request each call makes, and what it reads from the answer.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	const config, state = "/v1/config/tenants/acme/os-upgrade/webhooks", "/v1/state/tenants/acme/os-upgrade/webhooks"
	for name, row := range map[string]struct {
		method, path string
		answer       string
		call         func(context.Context, *Client) (any, error)
		want         any
		body, match  string
	}{
		"one": {
			"GET", config + "/chat", `{"url":"https://a.example/","news":["run.opened"]}`,
			func(ctx context.Context, c *Client) (any, error) {
				w, err := c.Webhook(ctx, "acme", "chat")
				return w.URL + strings.Join(w.News, ","), err
			}, "https://a.example/run.opened", "", "",
		},
		"all": {
			"GET", config, `[{"name":"chat","url":"https://a.example/","etag":"\"1\""}]`,
			func(ctx context.Context, c *Client) (any, error) {
				all, err := c.Webhooks(ctx, "acme")
				return len(all) == 1 && all[0].Name == "chat" && all[0].ETag == `"1"`, err
			}, true, "", "",
		},
		"put": {
			"PUT", config + "/chat", "",
			func(ctx context.Context, c *Client) (any, error) {
				return nil, c.PutWebhook(ctx, "acme", "chat", v1.Webhook{URL: "https://a.example/", Secret: "whsec_x"}, Precondition{IfNoneMatch: "*"})
			}, nil, `{"url":"https://a.example/","secret":"whsec_x"}`, "*",
		},
		"delete": {"DELETE", config + "/chat", "", deleteChat, nil, "", ""},
		"states": {
			"GET", state, `[{"name":"chat","status":"retrying","queued":2,"delivered":0,"dead-count":0}]`,
			func(ctx context.Context, c *Client) (any, error) {
				all, err := c.WebhookStates(ctx, "acme")
				return len(all) == 1 && all[0].Queued == 2 && all[0].Status == v1.WebhookRetrying, err
			}, true, "", "",
		},
		"state": {
			"GET", state + "/chat", `{"name":"chat","status":"delivering","queued":0,"delivered":3,"dead-count":1,"dead":[{"news":{"id":"msg_1"},"error":"no","tries":8}]}`,
			func(ctx context.Context, c *Client) (any, error) {
				s, err := c.WebhookState(ctx, "acme", "chat")
				return s.DeadCount == 1 && s.Dead[0].News.ID == "msg_1" && s.Dead[0].Tries == 8, err
			}, true, "", "",
		},
		"test": {
			"POST", state + "/chat/test", `{"id":"msg_test","delivered":false,"error":"no","milliseconds":3}`,
			func(ctx context.Context, c *Client) (any, error) { return c.TestWebhook(ctx, "acme", "chat") },
			v1.WebhookTest{ID: "msg_test", Error: "no", Milliseconds: 3},
			"", "",
		},
		"resend": {
			"POST", state + "/chat/resend", `{"delivered":1,"left":2,"error":"no"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.ResendWebhook(ctx, "acme", "chat", []string{"msg_1"})
			},
			v1.WebhookResent{Delivered: 1, Left: 2, Error: "no"},
			`{"ids":["msg_1"]}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, sent := fakeapi.New(t), &asked{}
			status := http.StatusOK
			if row.answer == "" {
				status = http.StatusNoContent
			}
			api.Inject(row.method, row.path, sent.answers(status, row.answer))
			got, err := row.call(t.Context(), connect(t, api))
			if err != nil || got != row.want {
				t.Errorf("the call returns %+v, %v; want %+v", got, err, row.want)
			}
			if sent.what != row.method+" "+row.path || strings.TrimSpace(sent.body) != row.body || sent.match != row.match {
				t.Errorf("sent was %+v", sent)
			}
		})
	}
}

// TestWebhookNames checks that no request is made for what is no name: it would be of
// another path.
func TestWebhookNames(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c := connect(t, api)
	for _, name := range []string{"", "a/b", "..", "Chat", "a b", strings.Repeat("x", 300)} {
		_, one := c.Webhook(t.Context(), "acme", name)
		_, state := c.WebhookState(t.Context(), "acme", name)
		_, tested := c.TestWebhook(t.Context(), "acme", name)
		_, resent := c.ResendWebhook(t.Context(), "acme", name, nil)
		for _, err := range []error{one, state, tested, resent, c.PutWebhook(t.Context(), "acme", name, v1.Webhook{}, Precondition{}), WebhookNamed(name).Delete(t.Context(), c, "acme", Precondition{})} {
			if _, answered := errors.AsType[*Error](err); err == nil || answered || !strings.Contains(err.Error(), "is not a name") {
				t.Errorf("%.20q: %v", name, err)
			}
		}
	}
}
