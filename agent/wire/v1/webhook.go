package v1

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// MaxWebhooks is how many webhooks a tenant may have.
const MaxWebhooks = 20

// Webhook is a receiver of news, the object at
// /v1/config/tenants/{tenant}/os-upgrade/webhooks/{name}. Each of the news is sent by POST
// and signed according to Standard Webhooks.
type Webhook struct {
	// URL is where news are sent: https, or http on loopback. It must not contain a secret:
	// anyone who can read the configuration can read it.
	URL string `json:"url"`
	// Secret is the key that signs what is sent: whsec_ and the base64 of 24 to 64 bytes.
	// It is never returned. A PUT without it keeps the current one.
	Secret string `json:"secret,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// News lists the types of news to send; if absent, all.
	News []string `json:"news,omitempty"`
	// Disabled holds the news back. They are sent once it is false again, as far as they
	// are still kept.
	Disabled bool `json:"disabled,omitempty"`
}

// WebhookInfo is an entry of the list at
// /v1/config/tenants/{tenant}/os-upgrade/webhooks.
type WebhookInfo struct {
	Name string `json:"name"`
	Webhook
	// ETag is the ETag of the webhook.
	ETag string `json:"etag,omitempty"`
}

// The bounds of a secret, in bytes, and of an address.
const (
	minWebhookSecret = 24
	maxWebhookSecret = 64
	maxURL           = 2000
)

// WebhookSecretPrefix begins the text of a secret.
const WebhookSecretPrefix = "whsec_"

// Canonical returns the webhook with its types in the order of NewsTypes, each once.
func (w Webhook) Canonical() Webhook {
	var types []string
	for _, known := range NewsTypes() {
		if slices.Contains(w.News, known) {
			types = append(types, known)
		}
	}
	w.News = types
	return w
}

// WithoutSecret returns the webhook as it is shown.
func (w Webhook) WithoutSecret() Webhook {
	w.Secret = ""
	return w
}

// Wants reports whether the webhook is sent news of a type.
func (w Webhook) Wants(kind string) bool { return len(w.News) == 0 || slices.Contains(w.News, kind) }

// Validate returns everything that is wrong with the values, and nothing when all is
// right.
func (w Webhook) Validate() Problems {
	var found Problems
	if why := wrongWebhookURL(w.URL); why != "" {
		found = append(found, document.Wrong("url", w.URL, why))
	}
	if w.Secret != "" {
		// The value is a secret, so the problem does not repeat it.
		if _, err := WebhookKey(w.Secret); err != nil {
			found = append(found, Problem{Field: "secret", Message: err.Error()})
		}
	}
	for _, p := range validateReason(w.Description) {
		p.Field = "description"
		found = append(found, p)
	}
	for i, kind := range w.News {
		if !slices.Contains(NewsTypes(), kind) {
			found = append(found, document.NoneOf(fmt.Sprintf("news[%d]", i), kind, NewsTypes()...))
		}
	}
	return found
}

// WebhookKey returns the key that the text of a secret stands for. The error does not
// repeat the text.
func WebhookKey(secret string) ([]byte, error) {
	encoded, prefixed := strings.CutPrefix(secret, WebhookSecretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !prefixed || err != nil || len(key) < minWebhookSecret || len(key) > maxWebhookSecret {
		return nil, fmt.Errorf("the secret is not %s and the base64 of %d to %d bytes; make one with: echo %s$(openssl rand -base64 32)",
			WebhookSecretPrefix, minWebhookSecret, maxWebhookSecret, WebhookSecretPrefix)
	}
	return key, nil
}

// wrongWebhookURL returns what is wrong with an address; empty when nothing is.
func wrongWebhookURL(text string) string {
	if text == "" {
		return "is missing; use the https address of the receiver"
	}
	u, wrong := readURL(text, "https://hooks.example/osupgrade", "the signature proves who sends")
	switch {
	case wrong != "":
		return wrong
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	}
	return "is not https; use https, or http to a receiver on 127.0.0.1"
}

// readURL returns an address, or what is wrong with it in any case. example is one that is
// right, user says what to do without a user in it.
func readURL(text, example, user string) (u *url.URL, wrong string) {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return nil, fmt.Sprintf("is longer than %d bytes", maxURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return nil, "is not an address; use one such as " + example
	case u.User != nil:
		return nil, "has a user or password in it, which would be shown; " + user
	case u.Fragment != "":
		return nil, "has a fragment (#), which is never sent; leave it out"
	}
	return u, ""
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// WebhookState is the delivery state of a webhook, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/webhooks.
type WebhookState struct {
	Name string `json:"name"`
	// Status is delivering, retrying, disabled or stopped.
	Status string `json:"status"`
	// Queued counts the news that are waiting to be sent.
	Queued int `json:"queued"`
	// Delivered counts the news that the receiver accepted, Dropped those that were never
	// sent because they were no longer kept.
	Delivered   uint64     `json:"delivered"`
	Dropped     uint64     `json:"dropped,omitempty"`
	DeliveredAt *time.Time `json:"delivered-at,omitempty"`
	// Error says why the last try failed, Tries how often the first in the queue was tried,
	// and NextTry when it is tried again; absent when the last try succeeded.
	Error   string     `json:"error,omitempty"`
	Tries   int        `json:"tries,omitempty"`
	NextTry *time.Time `json:"next-try,omitempty"`
	// DeadCount counts the news that were given up. Dead lists them, oldest first; only in
	// the answer for one webhook.
	DeadCount int          `json:"dead-count"`
	Dead      []DeadLetter `json:"dead,omitempty"`
}

// The values of WebhookState.Status.
const (
	WebhookDelivering = "delivering"
	WebhookRetrying   = "retrying"
	WebhookDisabled   = "disabled"
	// WebhookStopped means that the receiver has said that it is gone (410). Writing the
	// webhook again starts it.
	WebhookStopped = "stopped"
)

// DeadLetter is news that was given up after failed attempts.
type DeadLetter struct {
	News News `json:"news"`
	// At is when it was given up, Error why, and Tries after how many attempts.
	At    time.Time `json:"at"`
	Error string    `json:"error"`
	Tries int       `json:"tries"`
}

// WebhookTest is the answer to POST .../webhooks/{name}/test.
type WebhookTest struct {
	// ID is the id of the test.
	ID string `json:"id"`
	// Delivered means that the receiver accepted it; otherwise Error says why not.
	Delivered bool   `json:"delivered"`
	Error     string `json:"error,omitempty"`
	// Milliseconds is how long the receiver took.
	Milliseconds int64 `json:"milliseconds"`
}

// WebhookResend is the body of POST .../webhooks/{name}/resend.
type WebhookResend struct {
	// IDs are the ids of the news to send again; if absent, all that were given up.
	IDs []string `json:"ids,omitempty"`
}

// DecodeWebhookResend reads the body of a request to send again. An empty one is the zero
// WebhookResend.
func DecodeWebhookResend(contentType string, body []byte) (WebhookResend, error) {
	if len(strings.TrimSpace(string(body))) == 0 {
		return WebhookResend{}, nil
	}
	return decode(contentType, body, WebhookResend{}, func(WebhookResend) Problems { return nil })
}

// WebhookResent is the answer to it.
type WebhookResent struct {
	// Delivered counts the news that the receiver accepted now, Left those that remain
	// given up.
	Delivered int `json:"delivered"`
	Left      int `json:"left"`
	// Error says why the first of the remaining news was not accepted; none after it was
	// tried.
	Error string `json:"error,omitempty"`
}
