package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// maxDead bounds the dead letters of a webhook; the oldest go first.
	maxDead = 100
	// maxError bounds the text of an error, in bytes.
	maxError = 300
	// keepPause is the wait until a state that could not be written is written again.
	keepPause = 5 * time.Second
)

// sender sends the news of one webhook.
type sender struct {
	t      *tenant
	name   string
	client *http.Client
	// script is the program that takes the news in place of a receiver; empty for none.
	script string

	// mu guards what follows, and is held for no delivery.
	mu       sync.Mutex
	kept     store.KeptWebhook
	revision string
	state    store.WebhookState
	loaded   bool
	// changed tells that the webhook was just changed: it need not wait for its next try.
	changed bool
	// cancel ends its goroutine, done is closed when that has ended.
	cancel context.CancelFunc
	done   chan struct{}
	// sending is held for a delivery, so that there is one at a time.
	sending sync.Mutex
}

// load reads how far the webhook has come.
func (h *sender) load(ctx context.Context) error {
	state, err := h.t.store.WebhookState(ctx, h.t.name, h.name)
	if h.script != "" && errors.Is(err, store.ErrNotFound) {
		state, err = h.beginScript(ctx)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || !state.Created.Equal(h.kept.Created) {
		state = store.WebhookState{Created: h.kept.Created, Done: h.kept.After}
	}
	if h.changed {
		state.Next = time.Time{}
	}
	h.state, h.loaded = state, true
	return nil
}

// beginScript has a script that is new get the news from now on. That is kept at once: what
// happens before the first delivery is not lost with the process.
func (h *sender) beginScript(ctx context.Context) (state store.WebhookState, err error) {
	if _, _, state.Done, err = h.t.news.News(ctx, 0); err != nil {
		return state, err
	}
	return state, h.t.store.PutWebhookState(ctx, h.t.name, h.name, state)
}

// run sends the news, one after the other, until ctx ends.
func (h *sender) run(ctx context.Context) {
	defer close(h.done)
	defer h.client.CloseIdleConnections()
	changed, leave, err := h.begin(ctx)
	if err != nil {
		return
	}
	defer leave()
	if h.script == "" { // It has no secret.
		// What cannot be signed yet is not tried: a site may be sealed for hours, and no news
		// are given up by that.
		select {
		case <-ctx.Done():
			return
		case <-h.t.box.Opened():
		}
		h.reseal(ctx)
	}
	for ctx.Err() == nil {
		n, some := h.next(ctx)
		if !some {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		h.mu.Lock()
		due := h.state.Next
		h.mu.Unlock()
		if wait.Sleep(ctx, due.Sub(h.t.now())) != nil {
			return
		}
		h.attempt(ctx, n)
	}
}

// reseal has the newest data key seal the secret, if an older one has. Somebody who has
// written the webhook meanwhile has sealed it anew.
func (h *sender) reseal(ctx context.Context) {
	kept, revision, err := h.t.store.Webhook(ctx, h.t.name, h.name)
	if err != nil || !h.t.box.Stale(kept.Sealed) {
		return
	}
	secret, err := h.t.box.Open(kept.Sealed, h.t.purpose(h.name))
	if err == nil {
		kept.Sealed, err = h.t.box.Seal(secret, h.t.purpose(h.name))
	}
	if err == nil {
		_, err = h.t.store.PutWebhook(ctx, h.t.name, h.name, kept, revision)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrConflict) {
		h.t.log.Warn("the secret of a webhook is still sealed by an older data key", "tenant", h.t.name, "webhook", h.name, "error", err)
	}
}

// begin reads how far the webhook has come, and watches the news. It tries again until it
// can or ctx ends.
func (h *sender) begin(ctx context.Context) (changed <-chan struct{}, leave func(), err error) {
	for ctx.Err() == nil {
		if changed, leave, err = h.t.news.Watch(ctx); err == nil {
			if err = h.load(ctx); err == nil {
				return changed, leave, nil
			}
			leave()
		}
		if ctx.Err() == nil {
			h.t.log.Warn("cannot read how far a webhook has come; trying again", "tenant", h.t.name, "webhook", h.name, "error", err)
		}
		_ = wait.Sleep(ctx, keepPause)
	}
	return nil, nil, ctx.Err()
}

// next returns the news that are to be sent next; false when there are none, or none may
// be sent.
func (h *sender) next(ctx context.Context) (v1.News, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept.Disabled || h.isGone() {
		return v1.News{}, false
	}
	all, oldest, newest, err := h.t.news.News(ctx, h.state.Done)
	if err != nil {
		return v1.News{}, false
	}
	if h.state.Done > newest { // The news were put back from an older copy, or made anew.
		h.state.Done = max(oldest, 1) - 1
		if all, _, _, err = h.t.news.News(ctx, h.state.Done); err != nil {
			return v1.News{}, false
		}
	}
	if oldest > h.state.Done+1 {
		h.state.Dropped += oldest - h.state.Done - 1
		h.state.Done = oldest - 1
	}
	for _, n := range all {
		if h.kept.Wants(n.Type) {
			return n, true
		}
		h.state.Done = n.Number
	}
	return v1.News{}, false
}

// isGone reports whether the receiver has said so of the webhook as it is; mu is held.
func (h *sender) isGone() bool { return h.state.Gone != "" && h.state.Gone == h.revision }

// deliver sends news once.
func (h *sender) deliver(ctx context.Context, kept store.KeptWebhook, n v1.News) Outcome {
	if h.script != "" {
		return h.deliverToScript(ctx, n)
	}
	key, err := h.t.open(h.name, kept)
	if err != nil {
		return Outcome{Err: err.Error()}
	}
	return post(ctx, h.client, h.t.agent, kept.URL, key, n, h.t.now())
}

// deliverToScript has the script take news once, when there is room for another process.
func (h *sender) deliverToScript(ctx context.Context, n v1.News) Outcome {
	select {
	case h.t.running <- struct{}{}:
		defer func() { <-h.t.running }()
	case <-ctx.Done():
		return Outcome{Err: ctx.Err().Error()}
	}
	return h.t.script(ctx, h.script, n, func(exit, said string) {
		h.t.log.Warn("a news script has failed", "tenant", h.t.name, "script", h.script, "news", n.Type, "id", n.ID, "error", exit, "said", said)
	})
}

// attempt tries to deliver news, and keeps what came of it before anything else is sent.
func (h *sender) attempt(ctx context.Context, n v1.News) {
	h.sending.Lock()
	defer h.sending.Unlock()
	h.mu.Lock()
	kept, revision, tries := h.kept, h.revision, h.state.Tries+1
	h.mu.Unlock()
	h.t.at("before delivery")
	o := h.deliver(ctx, kept, n)
	if ctx.Err() != nil {
		return // The site stops, or the webhook was changed: it is tried again.
	}
	h.t.at("after delivery")
	now := h.t.now()
	verdict, after := Decide(o, tries, now.Sub(n.Timestamp), h.t.random())
	h.mu.Lock()
	s := &h.state
	s.Error = text.Cut(o.Reason(), maxError, "…")
	switch verdict {
	case Delivered:
		s.Done, s.Tries, s.Next = n.Number, 0, time.Time{}
		s.Delivered, s.DeliveredAt = s.Delivered+1, now.UTC()
	case Retry:
		s.Tries, s.Next = tries, now.Add(after).UTC()
	case Dead:
		s.Dead = append(s.Dead, v1.DeadLetter{News: n, At: now.UTC().Truncate(time.Second), Error: s.Error, Tries: tries})
		if over := len(s.Dead) - maxDead; over > 0 {
			s.Dead, s.Dropped = s.Dead[over:], s.Dropped+uint64(over)
		}
		s.Done, s.Tries, s.Next = n.Number, 0, time.Time{}
	case Gone:
		s.Gone, s.Tries, s.Next = revision, 0, time.Time{}
	}
	h.mu.Unlock()
	h.t.count(verdict)
	switch logger := h.t.log.With("tenant", h.t.name, "webhook", h.name, "news", n.Type, "id", n.ID); verdict {
	case Delivered:
	case Retry:
		if tries == 1 {
			logger.Warn("a webhook cannot be delivered; trying again", "error", o.Reason())
		}
	case Dead:
		logger.Warn("news were given up; send them again with osupgrade-agent webhook resend", "tries", tries, "error", o.Reason())
	case Gone:
		logger.Warn("the receiver of a webhook is gone (410); nothing more is sent before the webhook is written again")
	}
	h.keep(ctx)
}

// keep writes the state, and tries again until that succeeds or ctx ends.
func (h *sender) keep(ctx context.Context) {
	for ctx.Err() == nil {
		h.mu.Lock()
		state := h.state
		h.mu.Unlock()
		err := h.t.store.PutWebhookState(ctx, h.t.name, h.name, state)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			h.t.log.Warn("cannot keep how far a webhook has come; trying again", "tenant", h.t.name, "webhook", h.name, "error", err)
		}
		_ = wait.Sleep(ctx, keepPause)
	}
}

// view is the state of the webhook for people.
func (h *sender) view(ctx context.Context) v1.WebhookState {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := v1.WebhookState{
		Name: h.name, Status: v1.WebhookDelivering, Delivered: h.state.Delivered, Dropped: h.state.Dropped, Error: h.state.Error, Tries: h.state.Tries,
		DeliveredAt: optional(h.state.DeliveredAt), NextTry: optional(h.state.Next), DeadCount: len(h.state.Dead), Dead: append([]v1.DeadLetter(nil), h.state.Dead...),
	}
	switch {
	case h.isGone():
		s.Status = v1.WebhookStopped
	case h.kept.Disabled:
		s.Status = v1.WebhookDisabled
	case h.state.Tries > 0:
		s.Status = v1.WebhookRetrying
	}
	if all, _, _, err := h.t.news.News(ctx, h.state.Done); err == nil {
		for _, n := range all {
			if h.kept.Wants(n.Type) {
				s.Queued++
			}
		}
	}
	return s
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

// resend sends dead letters again, in their order, until one fails.
func (h *sender) resend(ctx context.Context, kept store.KeptWebhook, wanted func(id string) bool) (r v1.WebhookResent, found bool) {
	h.sending.Lock()
	defer h.sending.Unlock()
	h.mu.Lock()
	dead := append([]v1.DeadLetter(nil), h.state.Dead...)
	h.mu.Unlock()
	var left []v1.DeadLetter
	for _, d := range dead {
		if !wanted(d.News.ID) || r.Error != "" {
			found = found || wanted(d.News.ID)
			left = append(left, d)
			continue
		}
		found = true
		o := h.deliver(ctx, kept, d.News)
		d.Tries++
		if why := o.Reason(); why != "" {
			d.Error, d.At = text.Cut(why, maxError, "…"), h.t.now().UTC().Truncate(time.Second)
			r.Error = d.Error
			left = append(left, d)
			continue
		}
		r.Delivered++
	}
	h.mu.Lock()
	h.state.Dead = left
	if r.Delivered > 0 {
		h.state.Delivered, h.state.DeliveredAt = h.state.Delivered+uint64(r.Delivered), h.t.now().UTC()
	}
	h.mu.Unlock()
	r.Left = len(left)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	h.keep(limited)
	return r, found
}

// errSecret is why nothing can be signed.
func errSecret(name string, cause error) error {
	return fmt.Errorf("its secret cannot be read (%w): the site was put back without the key of its strongbox; set it anew: %s", cause, "osupgrade-agent webhook add "+name+" --url …")
}
