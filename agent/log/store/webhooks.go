package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// KeptWebhook is a webhook as it is kept: without its secret, which is sealed.
type KeptWebhook struct {
	v1.Webhook
	// Sealed is the secret, sealed by a key that is not in the store.
	Sealed string `json:"sealed"`
	// Created is when the webhook was made, and After the number of the last news before
	// that.
	Created time.Time `json:"created"`
	After   uint64    `json:"after,omitempty"`
}

func webhookOf(tenant, name string) intentKey {
	return intentKey{tenant, Object{Kind: Webhook, Name: name}}
}

// Webhook returns a tenant's webhook of a name and its revision, or ErrNotFound.
func (s *Store) Webhook(ctx context.Context, tenant, name string) (KeptWebhook, Revision, error) {
	return getIntent[KeptWebhook](ctx, s.intent, webhookOf(tenant, name))
}

// PutWebhook writes a webhook as PutConfig writes a configuration. The error is ErrFull
// when the tenant has v1.MaxWebhooks others.
func (s *Store) PutWebhook(ctx context.Context, tenant, name string, w KeptWebhook, base Revision) (Revision, error) {
	w.Secret = ""
	if base == (Revision{}) {
		s.intent.counting.Lock()
		defer s.intent.counting.Unlock()
		if err := s.RoomForWebhook(ctx, tenant); err != nil {
			return Revision{}, err
		}
	}
	return s.intent.put(ctx, webhookOf(tenant, name), w, base)
}

// RoomForWebhook returns ErrFull when a tenant can have no further webhook.
func (s *Store) RoomForWebhook(ctx context.Context, tenant string) error {
	all, err := s.Webhooks(ctx, tenant)
	if err == nil && len(all) >= v1.MaxWebhooks {
		err = fmt.Errorf("tenant %s has %d webhooks: %w; delete one first", tenant, len(all), ErrFull)
	}
	return err
}

// DeleteWebhook removes a webhook as DeleteConfig removes a configuration.
func (s *Store) DeleteWebhook(ctx context.Context, tenant, name string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, webhookOf(tenant, name), base)
}

// Webhooks returns a tenant's webhooks, by name.
func (s *Store) Webhooks(ctx context.Context, tenant string) ([]Named[KeptWebhook], error) {
	return named[KeptWebhook](ctx, s.intent, webhookOf(tenant, "*"), "webhooks")
}

// WebhookState is how far a webhook has come.
type WebhookState struct {
	// Created is that of the webhook: the state of one that was deleted and made again is
	// not that of the new one.
	Created time.Time `json:"created"`
	// Done is the number of the last news that were delivered, given up or not wanted.
	Done uint64 `json:"done"`
	// Tries is how often the news after it were tried, Error why the last try failed, and
	// Next when they are tried again.
	Tries int       `json:"tries,omitempty"`
	Error string    `json:"error,omitempty"`
	Next  time.Time `json:"next,omitzero"`
	// Gone is the revision of the webhook whose receiver said that it is gone.
	Gone        string    `json:"gone,omitempty"`
	Delivered   uint64    `json:"delivered,omitempty"`
	DeliveredAt time.Time `json:"delivered-at,omitzero"`
	Dropped     uint64    `json:"dropped,omitempty"`
	// Dead are the news that were given up, oldest first.
	Dead []v1.DeadLetter `json:"dead,omitempty"`
}

// webhooksBucket is the bucket of the states.
const webhooksBucket = "osu-webhooks"

// WebhookState returns how far a webhook has come, or ErrNotFound.
func (s *Store) WebhookState(ctx context.Context, tenant, name string) (state WebhookState, err error) {
	entry, err := s.webhooks.Get(ctx, tenant+"."+name)
	if err != nil {
		return state, fmt.Errorf("cannot read the state of webhook %s: %w", name, translate(err))
	}
	switch err := format.Webhook.Decode(entry.Value(), &state); {
	case format.IsUnsupported(err):
		return WebhookState{}, fmt.Errorf("the stored state of webhook %s was %w", name, err)
	case err != nil:
		return WebhookState{}, fmt.Errorf("the stored state of webhook %s %w: %w", name, ErrDamaged, err)
	}
	return state, nil
}

// PutWebhookState keeps how far a webhook has come.
func (s *Store) PutWebhookState(ctx context.Context, tenant, name string, state WebhookState) error {
	body, err := format.Webhook.Encode(state)
	if err == nil {
		_, err = s.webhooks.Put(ctx, tenant+"."+name, body)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the state of webhook %s: %w", name, err)
	}
	return nil
}

// DeleteWebhookState removes it.
func (s *Store) DeleteWebhookState(ctx context.Context, tenant, name string) error {
	err := s.webhooks.Purge(ctx, tenant+"."+name)
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("cannot remove the state of webhook %s: %w", name, err)
	}
	return nil
}
