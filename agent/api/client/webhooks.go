package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// webhookPath is a path of a webhook; rest is what follows its name.
func webhookPath(tree, tenant, name, rest string) (string, error) {
	if !names.Valid(name) {
		return "", fmt.Errorf("webhook %q is not a name; use at most %d of a-z, 0-9 and -, with no - at either end", name, names.MaxLength)
	}
	return tenantPath(tree, tenant, "/webhooks/"+name+rest)
}

// WebhookNamed is the webhook of that name of a tenant.
func WebhookNamed(name string) Object[v1.Webhook] {
	return Object[v1.Webhook]{at: func(tenant string) (string, error) { return webhookPath("config", tenant, name, "") }, same: v1.SameWebhook, canonical: v1.Webhook.Canonical, withhold: func(w *v1.Webhook) string {
		secret := w.Secret
		w.Secret = ""
		return secret
	}}
}

// Webhook returns a webhook as it is declared, without its secret.
func (c *Client) Webhook(ctx context.Context, tenant, name string) (w v1.Webhook, err error) {
	path, err := webhookPath("config", tenant, name, "")
	if err != nil {
		return w, err
	}
	return w, c.get(ctx, path, nil, &w)
}

// Webhooks returns the webhooks as they are declared, by name, without their secrets.
func (c *Client) Webhooks(ctx context.Context, tenant string) ([]v1.WebhookInfo, error) {
	return listed[v1.WebhookInfo](ctx, c, tenant, "/webhooks")
}

// PutWebhook writes a webhook. One without a secret keeps the secret that is there.
func (c *Client) PutWebhook(ctx context.Context, tenant, name string, w v1.Webhook, when Precondition) error {
	path, err := webhookPath("config", tenant, name, "")
	if err != nil {
		return err
	}
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{method: http.MethodPut, path: path, body: json.RawMessage(body), when: when})
	return err
}

// WebhookStates returns how the webhooks fare, by name, without their dead letters.
func (c *Client) WebhookStates(ctx context.Context, tenant string) (all []v1.WebhookState, err error) {
	path, err := tenantPath("state", tenant, "/webhooks")
	if err != nil {
		return nil, err
	}
	return all, c.get(ctx, path, nil, &all)
}

// WebhookState returns how a webhook fares, with its dead letters.
func (c *Client) WebhookState(ctx context.Context, tenant, name string) (s v1.WebhookState, err error) {
	path, err := webhookPath("state", tenant, name, "")
	if err != nil {
		return s, err
	}
	return s, c.get(ctx, path, nil, &s)
}

// TestWebhook has a test sent to a webhook, and returns what came of it.
func (c *Client) TestWebhook(ctx context.Context, tenant, name string) (t v1.WebhookTest, err error) {
	return t, c.onWebhook(ctx, tenant, name, "/test", nil, &t)
}

// ResendWebhook has dead letters sent again: those of some ids, or all.
func (c *Client) ResendWebhook(ctx context.Context, tenant, name string, ids []string) (r v1.WebhookResent, err error) {
	return r, c.onWebhook(ctx, tenant, name, "/resend", v1.WebhookResend{IDs: ids}, &r)
}

func (c *Client) onWebhook(ctx context.Context, tenant, name, operation string, body, into any) error {
	path, err := webhookPath("state", tenant, name, operation)
	if err != nil {
		return err
	}
	q := request{method: http.MethodPost, path: path, body: body}
	a, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	return c.decode(q, a, into)
}
