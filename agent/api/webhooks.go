package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/webhook"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Webhooks are the webhooks of all tenants. None of its answers has a secret.
type Webhooks interface {
	Webhook(ctx context.Context, tenant, name string) (v1.Webhook, store.Revision, error)
	Webhooks(ctx context.Context, tenant string) ([]store.Named[v1.Webhook], error)
	// PutWebhook writes a webhook; one without a secret keeps that which is there.
	PutWebhook(ctx context.Context, tenant, name string, w v1.Webhook, base store.Revision) (store.Revision, error)
	DeleteWebhook(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
	// RoomForWebhook returns store.ErrFull if the tenant may have no further webhook.
	RoomForWebhook(ctx context.Context, tenant string) error
	States(ctx context.Context, tenant string) ([]v1.WebhookState, error)
	State(ctx context.Context, tenant, name string) (v1.WebhookState, error)
	// Test sends a test that somebody asks for, under an id.
	Test(ctx context.Context, tenant, name, by, id string) (v1.WebhookTest, error)
	// Resend sends dead letters again, those of some ids or all. It returns
	// webhook.ErrNoLetter if none of the ids is dead.
	Resend(ctx context.Context, tenant, name string, ids []string) (v1.WebhookResent, error)
}

// errNoWebhooks is the answer of a site that sends no news.
var errNoWebhooks = problem(http.StatusNotFound, "", "", "this site has no webhooks")

// webhookName returns the name in the path.
func webhookName(c *call) (string, error) {
	name := c.PathValue("name")
	if !names.Valid(name) {
		return "", badRequest("name", name, fmt.Sprintf(`is not the name of a webhook; use 1 to %d of a-z, 0-9 and "-", with a letter or digit at both ends`, names.MaxLength))
	}
	return name, nil
}

// webhook returns the webhook with the name in the path.
func (s *server) webhook(c *call) (*object[v1.Webhook], error) {
	name, err := webhookName(c)
	if err != nil {
		return nil, err
	}
	if s.Webhooks == nil {
		return nil, errNoWebhooks
	}
	return &object[v1.Webhook]{
		server: s, noun: "webhook " + name,
		read: func(ctx context.Context, tenant string) (v1.Kept[v1.Webhook], store.Revision, error) {
			value, revision, err := s.Webhooks.Webhook(ctx, tenant, name)
			return v1.Kept[v1.Webhook]{Value: value}, revision, err
		},
		put: func(ctx context.Context, tenant string, value v1.Kept[v1.Webhook], base store.Revision) (store.Revision, error) {
			return s.Webhooks.PutWebhook(ctx, tenant, name, value.Value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return s.Webhooks.DeleteWebhook(ctx, tenant, name, base)
		},
		form: v1.WebhookForm, recorded: func(w v1.Webhook) v1.Webhook { return w.WithoutSecret().Canonical() },
		permitted: func(now stored[v1.Webhook], w v1.Webhook) error {
			if err := webhook.CheckName(name); err != nil {
				return badRequest("name", name, err.Error())
			}
			if !now.exists && w.Secret == "" {
				return problem(http.StatusBadRequest, "secret", "", "secret: it is missing; use %s and the base64 of 24 to 64 random bytes, which the receiver knows, too", v1.WebhookSecretPrefix)
			}
			return nil
		},
		room: s.Webhooks.RoomForWebhook,
	}, nil
}

// getWebhooks lists the tenant's webhooks by name.
func (s *server) getWebhooks(c *call) error {
	if s.Webhooks == nil {
		return errNoWebhooks
	}
	all, err := s.Webhooks.Webhooks(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	list := make([]v1.WebhookInfo, len(all))
	for i, n := range all {
		list[i] = v1.WebhookInfo{Name: n.Name, Webhook: n.Value, ETag: n.Revision.ETag()}
	}
	return sendList(s, c, list, func(i v1.WebhookInfo) string { return i.Name })
}

// getWebhookStates lists how the tenant's webhooks fare, without their dead letters.
func (s *server) getWebhookStates(c *call) error {
	if s.Webhooks == nil {
		return errNoWebhooks
	}
	all, err := s.Webhooks.States(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Dead = nil
	}
	return sendList(s, c, all, func(w v1.WebhookState) string { return w.Name })
}

// onWebhook returns the handler of an operation on a webhook that there is.
func onWebhook[T any](operation func(s *server, c *call, name string) (T, error)) func(*server, *call) error {
	return func(s *server, c *call) error {
		name, err := webhookName(c)
		if err != nil {
			return err
		}
		if s.Webhooks == nil {
			return errNoWebhooks
		}
		answer, err := operation(s, c, name)
		if errors.Is(err, store.ErrNotFound) {
			return missing("webhook "+name, "tenant %q has no webhook %s; create it with PUT", c.tenant, name)
		}
		if err != nil {
			return err
		}
		return s.sendFields(c, answer)
	}
}

func (s *server) webhookState(c *call, name string) (v1.WebhookState, error) {
	return s.Webhooks.State(c.Context(), c.tenant, name)
}

func (s *server) testWebhook(c *call, name string) (v1.WebhookTest, error) {
	return s.Webhooks.Test(c.Context(), c.tenant, name, c.who.Name, "msg_test_"+rand.Text())
}

func (s *server) resendWebhook(c *call, name string) (v1.WebhookResent, error) {
	body, err := c.body()
	if err != nil {
		return v1.WebhookResent{}, err
	}
	request, err := v1.DecodeWebhookResend(c.Header.Get("Content-Type"), body)
	if err != nil {
		return v1.WebhookResent{}, err
	}
	resent, err := s.Webhooks.Resend(c.Context(), c.tenant, name, request.IDs)
	if errors.Is(err, webhook.ErrNoLetter) {
		return resent, problem(http.StatusNotFound, "ids", "", "webhook %s has no dead news of these ids; GET .../webhooks/%s lists those that it has", name, name)
	}
	return resent, err
}
