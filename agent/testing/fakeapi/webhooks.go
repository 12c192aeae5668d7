package fakeapi

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// webhooks are those of a server as objects. They send nothing: a test that asks for a delivery
// panics.
type webhooks struct {
	unserved
	stored *memory.Store
}

// unserved are the operations that no test asks for.
type unserved interface {
	api.Webhooks
}

// Webhook implements api.Webhooks.
func (w webhooks) Webhook(ctx context.Context, tenant, name string) (v1.Webhook, store.Revision, error) {
	kept, revision, err := w.stored.Webhook(ctx, tenant, name)
	return kept.Webhook, revision, err
}

// Webhooks implements api.Webhooks.
func (w webhooks) Webhooks(ctx context.Context, tenant string) ([]store.Named[v1.Webhook], error) {
	all, err := w.stored.Webhooks(ctx, tenant)
	shown := make([]store.Named[v1.Webhook], len(all))
	for i, one := range all {
		shown[i] = store.Named[v1.Webhook]{Name: one.Name, Value: one.Value.Webhook, Revision: one.Revision}
	}
	return shown, err
}

// PutWebhook implements api.Webhooks.
func (w webhooks) PutWebhook(ctx context.Context, tenant, name string, hook v1.Webhook, base store.Revision) (store.Revision, error) {
	kept, _, err := w.stored.Webhook(ctx, tenant, name)
	if hook.Secret == "" && err == nil {
		hook.Secret = kept.Sealed
	}
	return w.stored.PutWebhook(ctx, tenant, name, store.KeptWebhook{Webhook: hook, Sealed: hook.Secret}, base)
}

// DeleteWebhook implements api.Webhooks.
func (w webhooks) DeleteWebhook(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return w.stored.DeleteWebhook(ctx, tenant, name, base)
}

// RoomForWebhook implements api.Webhooks.
func (w webhooks) RoomForWebhook(ctx context.Context, tenant string) error {
	return w.stored.RoomForWebhook(ctx, tenant)
}

// SetWebhook makes a webhook of a tenant, or changes it.
func (s *Server) SetWebhook(tenant, name string, hook v1.Webhook) {
	ctx := context.Background()
	_, base, _ := s.store.Webhook(ctx, tenant, name) // The zero revision stands for none.
	must(webhooks{stored: s.store}.PutWebhook(ctx, tenant, name, hook, base))
}

// WebhookSecret is the secret of a webhook; empty if there is none.
func (s *Server) WebhookSecret(tenant, name string) string {
	kept, _, _ := s.store.Webhook(context.Background(), tenant, name)
	return kept.Sealed
}
