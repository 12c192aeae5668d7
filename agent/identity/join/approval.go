package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Waiting is a host that waits for approval.
type Waiting struct {
	Token Token
	Use   Use
	// ID is that of the token with which the host has asked.
	ID string
}

// Shown returns the host as the API shows it.
func (w Waiting) Shown() v1.WaitingHost {
	return v1.WaitingHost{
		Host: w.Use.Host, PublicKey: w.Use.Key, From: w.Use.From, At: w.Use.At, Tenant: w.Token.Tenant, Application: w.Token.Application,
		Labels: w.Token.Labels, Token: w.ID, Expires: w.Token.Expires,
	}
}

// ErrNotWaiting means that no host of that name and key waits for approval.
var ErrNotWaiting = errors.New("does not wait for approval with this key: it was approved or refused, its join token was removed, or the token has expired")

// ErrApproved means that a host cannot be refused any more.
var ErrApproved = errors.New("was approved")

// waits reports whether a place of a token is that of a host that waits.
func (f tokenFile) waits(u Use, now time.Time) bool {
	return !f.over(now) && u.Status(f.Token) == v1.JoinWaiting
}

// Waiting returns the hosts that wait for approval, those that came first at the top.
func (t *Tokens) Waiting(now time.Time) (all []Waiting, err error) {
	tokens, err := t.List()
	if err != nil {
		return nil, err
	}
	for _, k := range tokens {
		file := tokenFile{Token: k.Token, Ended: k.Ended}
		for _, u := range k.Uses {
			if k.Damage == nil && file.waits(u, now) {
				all = append(all, Waiting{Token: k.Token, Use: u, ID: k.ID})
			}
		}
	}
	slices.SortFunc(all, func(a, b Waiting) int {
		return cmp.Or(a.Use.At.Compare(b.Use.At), cmp.Compare(a.Use.Host, b.Use.Host), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Watch calls changed when it has begun and after tokens were made, used or removed, until ctx
// ends. It may call late, and once for several changes.
func (t *Tokens) Watch(ctx context.Context, changed func()) { t.stored.Watch(ctx, changed) }

// Waits reports whether a host waits for approval with a key.
func (t *Tokens) Waits(public string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		all, err := t.Waiting(now)
		if err != nil {
			return false
		}
		t.waiting = make(map[string]time.Time, len(all))
		for _, w := range all {
			t.waiting[w.Use.Key] = w.Token.Expires
		}
	}
	return now.Before(t.waiting[public])
}

// Verdict is what a person has decided on a host that waits for approval.
type Verdict struct {
	// Tenant, Host and Key say which host it is: the key is that which the person has seen.
	Tenant, Host, Key string
	Approve           bool
	// By is the person.
	By string
}

// Decide lets a host in that waits for approval, or refuses it. It is on disk who has approved the
// host before its key is registered: after a crash the same verdict completes what was begun.
func (t *Tokens) Decide(v Verdict, now time.Time, keys Keys) (Waiting, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := t.Waiting(now)
	if err != nil {
		return Waiting{}, err
	}
	at := slices.IndexFunc(all, func(w Waiting) bool {
		return w.Token.Tenant == v.Tenant && w.Use.Host == v.Host && w.Use.Key == v.Key
	})
	if at < 0 {
		return Waiting{}, fmt.Errorf("host %s %w", v.Host, ErrNotWaiting)
	}
	w := all[at]
	if v.Approve {
		if err := keys.Registrable(v.Key, w.Token, v.Host); err != nil {
			return Waiting{}, err
		}
	}
	t.at("before verdict")
	_, err = t.update(w.ID, func(f *tokenFile) error {
		at := f.place(v.Host)
		if at < 0 || f.Uses[at].Key != v.Key || !f.waits(f.Uses[at], now) {
			return fmt.Errorf("host %s %w", v.Host, ErrNotWaiting)
		}
		if v.Approve {
			f.Uses[at].Approved = v.By
		} else if f.Uses[at].Approved != "" {
			return fmt.Errorf("host %s %w by %s; approve it again to complete that, and then withdraw its key with osupgrade-agent credentials remove", v.Host, ErrApproved, f.Uses[at].Approved)
		} else {
			f.Uses[at].Refused = v.By
		}
		return nil
	})
	if err != nil || !v.Approve {
		return w, err
	}
	t.at("after verdict")
	return w, t.register(w.ID, w.Token, v.Host, v.Key, keys)
}
