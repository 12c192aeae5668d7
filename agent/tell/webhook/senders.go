package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Store is the part of the store that webhooks use.
type Store interface {
	Webhook(ctx context.Context, tenant, name string) (store.KeptWebhook, store.Revision, error)
	PutWebhook(ctx context.Context, tenant, name string, w store.KeptWebhook, base store.Revision) (store.Revision, error)
	DeleteWebhook(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
	Webhooks(ctx context.Context, tenant string) ([]store.Named[store.KeptWebhook], error)
	RoomForWebhook(ctx context.Context, tenant string) error
	WatchIntent(ctx context.Context, tenant string, see func(store.Seen)) error
	WebhookState(ctx context.Context, tenant, name string) (store.WebhookState, error)
	PutWebhookState(ctx context.Context, tenant, name string, state store.WebhookState) error
	DeleteWebhookState(ctx context.Context, tenant, name string) error
}

// News are the news of a tenant.
type News interface {
	News(ctx context.Context, after uint64) (all []v1.News, oldest, newest uint64, err error)
	Watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error)
}

// Options are what senders are made with.
type Options struct {
	Store Store
	// Box seals the secrets.
	Box *strongbox.Box
	// Scripts are the paths of the site's news scripts: each gets the news of all tenants.
	Scripts []string
	// Version is that of the program, for receivers.
	Version string
	Log     *slog.Logger
	// Now is the clock; nil means the wall clock. Random is from 0 to 1; nil means random.
	Now    func() time.Time
	Random func() float64
	// Local says to which addresses of this machine and its link webhooks may post.
	Local dial.Rule
	// Client makes the client of a webhook; nil means one that follows no redirect, connects
	// only where Local allows, and waits for nobody for long.
	Client func() *http.Client
	// Script has a news script take news; nil means that its program is run.
	Script func(ctx context.Context, path string, n v1.News, failed func(exit, said string)) Outcome
	// At is called with the label of each action before it and after it:
	// tests crash there. Nil is allowed.
	At func(label string)
}

// Senders are the webhooks of all tenants of a site.
type Senders struct {
	o Options
	// running has an entry for each script that runs.
	running chan struct{}
	mu      sync.Mutex
	tenants map[string]*tenant
}

// New makes senders without a tenant.
func New(o Options) *Senders {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Client == nil {
		o.Client = func() *http.Client { return newClient(o.Local) }
	}
	if o.Script == nil {
		o.Script = func(ctx context.Context, path string, n v1.News, failed func(exit, said string)) Outcome {
			return runScript(ctx, path, n, scriptTimeout, failed)
		}
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	return &Senders{o: o, running: make(chan struct{}, maxScripts), tenants: map[string]*tenant{}}
}

// tenant has the webhooks of one tenant.
type tenant struct {
	name   string
	agent  string
	store  Store
	news   News
	log    *slog.Logger
	box    *strongbox.Box
	now    func() time.Time
	random func() float64
	at     func(string)
	count  func(Verdict)
	client func() *http.Client
	script func(context.Context, string, v1.News, func(exit, said string)) Outcome
	// running is that of all tenants.
	running chan struct{}

	mu      sync.Mutex
	senders map[string]*sender
}

// Run sends the news of a tenant until ctx ends. count is told of each try.
func (s *Senders) Run(ctx context.Context, name string, news News, count func(Verdict)) {
	t := &tenant{
		name: name, agent: "osupgrade-agent/" + s.o.Version, store: s.o.Store, news: news, log: s.o.Log, box: s.o.Box, now: s.o.Now, random: s.o.Random, at: s.o.At,
		count: count, client: s.o.Client, script: s.o.Script, running: s.running, senders: map[string]*sender{},
	}
	s.mu.Lock()
	s.tenants[name] = t
	s.mu.Unlock()
	defer s.forget(t)
	defer t.end()
	for _, path := range s.o.Scripts {
		t.start(ctx, &sender{t: t, name: scriptName(path), client: t.client(), script: path})
	}
	warn := func(err error) {
		t.log.Warn("webhooks may have been missed; reading them anew", "tenant", name, "error", err)
	}
	for ctx.Err() == nil {
		err := log.Again(ctx, func() error {
			return t.store.WatchIntent(ctx, name, func(seen store.Seen) { t.see(ctx, seen) })
		}, warn)
		if ctx.Err() == nil {
			warn(err)
			select {
			case <-ctx.Done():
			case <-time.After(keepPause):
			}
		}
	}
}

// forget lets a tenant go that has ended: it may have been removed.
func (s *Senders) forget(t *tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tenants[t.name] == t {
		delete(s.tenants, t.name)
	}
}

// see takes up a webhook that was written or deleted.
func (t *tenant) see(ctx context.Context, seen store.Seen) {
	if seen.Kind != store.Webhook {
		return
	}
	t.mu.Lock()
	h := t.senders[seen.Name]
	t.mu.Unlock()
	revision := fmt.Sprint(seen.Number)
	if h != nil {
		if h.revision == revision {
			return // It is read anew.
		}
		h.cancel()
		<-h.done
	}
	if seen.Webhook == nil {
		if seen.Err != nil {
			t.log.Error("a webhook cannot be used; nothing is sent to it", "tenant", t.name, "webhook", seen.Name, "error", seen.Err)
		} else if err := t.store.DeleteWebhookState(ctx, t.name, seen.Name); err != nil && ctx.Err() == nil {
			t.log.Warn("the state of a webhook that was deleted is still there", "tenant", t.name, "webhook", seen.Name, "error", err)
		}
		t.mu.Lock()
		delete(t.senders, seen.Name)
		t.mu.Unlock()
		return
	}
	t.start(ctx, &sender{t: t, name: seen.Name, client: t.client(), kept: *seen.Webhook, revision: revision, changed: h != nil})
}

// start has a webhook send from now on.
func (t *tenant) start(ctx context.Context, h *sender) {
	running, cancel := context.WithCancel(ctx)
	h.cancel, h.done = cancel, make(chan struct{})
	t.mu.Lock()
	t.senders[h.name] = h
	t.mu.Unlock()
	go h.run(running)
}

// end waits for all webhooks to end.
func (t *tenant) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.senders {
		h.cancel()
		<-h.done
	}
}

// purpose is what the secret of a webhook is sealed for.
func (t *tenant) purpose(name string) string { return purpose(t.name, name) }

func purpose(tenant, name string) string { return "webhook " + tenant + "/" + name }

// open returns the key that signs what a webhook is sent.
func (t *tenant) open(name string, kept store.KeptWebhook) ([]byte, error) {
	secret, err := t.box.Open(kept.Sealed, t.purpose(name))
	if err != nil {
		return nil, errSecret(name, err)
	}
	return v1.WebhookKey(string(secret))
}

func (s *Senders) tenant(name string) (*tenant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenants[name]; t != nil {
		return t, nil
	}
	return nil, errors.New("the tenant is not served yet; try again")
}

// Webhook returns a webhook without its secret.
func (s *Senders) Webhook(ctx context.Context, tenant, name string) (v1.Webhook, store.Revision, error) {
	kept, revision, err := s.o.Store.Webhook(ctx, tenant, name)
	return kept.WithoutSecret(), revision, err
}

// Webhooks returns the webhooks of a tenant, by name, without their secrets.
func (s *Senders) Webhooks(ctx context.Context, tenant string) ([]store.Named[v1.Webhook], error) {
	all, err := s.o.Store.Webhooks(ctx, tenant)
	shown := make([]store.Named[v1.Webhook], len(all))
	for i, n := range all {
		shown[i] = store.Named[v1.Webhook]{Name: n.Name, Value: n.Value.WithoutSecret(), Revision: n.Revision}
	}
	return shown, err
}

// ErrNoSecret means that a new webhook has no secret.
var ErrNoSecret = errors.New("a new webhook needs a secret")

// PutWebhook writes a webhook. One without a secret keeps the one that is there.
func (s *Senders) PutWebhook(ctx context.Context, tenant, name string, w v1.Webhook, base store.Revision) (store.Revision, error) {
	if err := CheckName(name); err != nil {
		return store.Revision{}, err
	}
	next := store.KeptWebhook{Created: s.o.Now().UTC()}
	if base == (store.Revision{}) {
		t, err := s.tenant(tenant)
		if err != nil {
			return store.Revision{}, err
		}
		if _, _, next.After, err = t.news.News(ctx, 0); err != nil {
			return store.Revision{}, err
		}
	} else if kept, revision, err := s.o.Store.Webhook(ctx, tenant, name); err == nil {
		if revision != base {
			return store.Revision{}, store.ErrConflict
		}
		next = kept
	} else if !errors.Is(err, store.ErrDamaged) {
		return store.Revision{}, err
	}
	next.Webhook = w.WithoutSecret()
	if w.Secret != "" {
		sealed, err := s.o.Box.Seal([]byte(w.Secret), purpose(tenant, name))
		if err != nil {
			return store.Revision{}, err
		}
		next.Sealed = sealed
	}
	if next.Sealed == "" {
		return store.Revision{}, ErrNoSecret
	}
	return s.o.Store.PutWebhook(ctx, tenant, name, next, base)
}

// DeleteWebhook removes a webhook, with all that is still to be sent to it.
func (s *Senders) DeleteWebhook(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return s.o.Store.DeleteWebhook(ctx, tenant, name, base)
}

// RoomForWebhook returns store.ErrFull when a tenant can have no further webhook.
func (s *Senders) RoomForWebhook(ctx context.Context, tenant string) error {
	return s.o.Store.RoomForWebhook(ctx, tenant)
}

// States returns how the webhooks of a tenant fare, by name.
func (s *Senders) States(ctx context.Context, tenant string) ([]v1.WebhookState, error) {
	t, err := s.tenant(tenant)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	hooks := make([]*sender, 0, len(t.senders))
	for _, h := range t.senders {
		hooks = append(hooks, h)
	}
	t.mu.Unlock()
	slices.SortFunc(hooks, func(a, b *sender) int { return strings.Compare(a.name, b.name) })
	states := make([]v1.WebhookState, len(hooks))
	for i, h := range hooks {
		states[i] = h.view(ctx)
	}
	return states, nil
}

// seenTimeout is how long a webhook that was just written may take to be taken up.
const seenTimeout = 3 * time.Second

// current returns a webhook as it is declared now, once it was taken up, or a news script.
func (s *Senders) current(ctx context.Context, tenant, name string) (*sender, store.KeptWebhook, error) {
	t, err := s.tenant(tenant)
	if err != nil {
		return nil, store.KeptWebhook{}, err
	}
	var kept store.KeptWebhook
	want := "" // A script is declared by nobody.
	if !slices.ContainsFunc(s.o.Scripts, func(path string) bool { return scriptName(path) == name }) {
		var revision store.Revision
		if kept, revision, err = s.o.Store.Webhook(ctx, tenant, name); err != nil {
			return nil, kept, err
		}
		want = fmt.Sprint(revision.Number)
	}
	for until := time.Now().Add(seenTimeout); ; {
		t.mu.Lock()
		h := t.senders[name]
		t.mu.Unlock()
		if h != nil && h.ready(want) {
			return h, kept, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return nil, kept, errors.New("the webhook was written a moment ago and is not taken up yet; try again")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ready reports whether the webhook is of a revision, and knows how far it has come.
func (h *sender) ready(revision string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.loaded && h.revision == revision
}

// State returns how a webhook fares, with its dead letters; store.ErrNotFound without one.
func (s *Senders) State(ctx context.Context, tenant, name string) (v1.WebhookState, error) {
	h, _, err := s.current(ctx, tenant, name)
	if err != nil {
		return v1.WebhookState{}, err
	}
	return h.view(ctx), nil
}

// Test sends a test to a webhook, also to one that is disabled, and returns what came of it.
func (s *Senders) Test(ctx context.Context, tenant, name, by, id string) (v1.WebhookTest, error) {
	h, kept, err := s.current(ctx, tenant, name)
	if err != nil {
		return v1.WebhookTest{}, err
	}
	begun := time.Now()
	o := h.deliver(ctx, kept, v1.News{
		ID: id, Type: v1.NewsTest, Timestamp: s.o.Now().UTC().Truncate(time.Second),
		Data: v1.NewsData{Tenant: tenant, RequestedBy: by, Text: fmt.Sprintf("This is a test of webhook %s of tenant %s, asked for by %s.", name, tenant, by)},
	})
	return v1.WebhookTest{ID: id, Delivered: o.Reason() == "", Error: o.Reason(), Milliseconds: time.Since(begun).Milliseconds()}, nil
}

// resendTimeout bounds one request to send again.
const resendTimeout = 30 * time.Second

// ErrNoLetter means that none of the letters that were named is dead.
var ErrNoLetter = errors.New("no such news are dead")

// Resend sends dead letters again: those of some ids, or all.
func (s *Senders) Resend(ctx context.Context, tenant, name string, ids []string) (v1.WebhookResent, error) {
	h, kept, err := s.current(ctx, tenant, name)
	if err != nil {
		return v1.WebhookResent{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, resendTimeout)
	defer cancel()
	resent, found := h.resend(ctx, kept, func(id string) bool { return len(ids) == 0 || slices.Contains(ids, id) })
	if !found && len(ids) > 0 {
		return resent, ErrNoLetter
	}
	return resent, nil
}
