// Package store keeps what is stored beside the log of a tenant: its intent
// (configuration, rollout and calendars), its hosts, their reports and leases, and
// the history of its runs. All of it is in JetStream key-value buckets and streams.
//
// Each write of the intent names the revision on which it is based; a write that is based
// on an older revision fails with ErrConflict. The package decides nothing about the
// objects, and never resolves a conflict.
package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// The errors that callers distinguish.
var (
	// ErrNotFound means that there is no such entry.
	ErrNotFound = report.ErrNotFound
	// ErrConflict means that the entry has changed since the revision on which the
	// write was based.
	ErrConflict = errors.New("changed in the meantime")
	// ErrUnknown means that another write of the entry is under way, and that
	// its result is not known yet: the write may be tried again.
	ErrUnknown = errors.New("is being changed; try again")
	// ErrDamaged means that the entry cannot be read. It can be replaced.
	ErrDamaged = report.ErrDamaged
	// ErrFull means that the tenant has as many objects of the kind as are allowed.
	ErrFull = errors.New("there are too many")
)

// Revision identifies one write of a bucket. It includes the identity of the bucket,
// so that a bucket that was deleted and created again, or restored from a backup, never
// repeats a revision, and an ETag that is made of it. The zero value means "no entry".
type Revision struct {
	Bucket int64
	Number uint64
}

// String is the revision's text form, such as "1a2b3c-7".
func (r Revision) String() string {
	return strconv.FormatInt(r.Bucket, 16) + "-" + strconv.FormatUint(r.Number, 10)
}

// ETag is the strong entity tag of the revision (RFC 9110 8.8.3).
func (r Revision) ETag() string { return `"` + r.String() + `"` }

// Store is safe for concurrent use.
type Store struct {
	// Written is called with the stream and the sequence of each write of the intent,
	// before that is acknowledged. An error means that the write may be lost with the
	// process. It may be nil, and is set before the first write.
	Written func(stream string, seq uint64) error
	intent  *intent
	hosts   *divided
	leases  *divided
	// runs are the ended runs of each tenant.
	runs runs
	// news are what was told of each tenant.
	news    news
	reports *reports
	// webhooks are how far webhooks have come.
	webhooks jetstream.KeyValue
}

// IntentBucket is the bucket of the intent.
const IntentBucket = "osu-intent"

// maxBucket bounds a bucket, in bytes.
const maxBucket = 256 << 20

// Open makes the buckets when they are missing.
func Open(ctx context.Context, nc *nats.Conn) (*Store, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	intent, err := openIntent(ctx, js)
	if err != nil {
		return nil, err
	}
	hosts, err := bucket(ctx, js, "osu-hosts", "hosts by tenant and name")
	if err != nil {
		return nil, err
	}
	leases, err := openLeases(ctx, js)
	if err != nil {
		return nil, err
	}
	reports, err := openReports(ctx, js)
	if err != nil {
		return nil, err
	}
	webhooks, err := bucket(ctx, js, webhooksBucket, "how far webhooks have come by tenant and name")
	if err != nil {
		return nil, err
	}
	s := &Store{
		intent: intent, hosts: divide(js, hosts), leases: leases, runs: runs{js: js, streams: map[string]jetstream.Stream{}},
		news: news{js: js, streams: map[string]jetstream.Stream{}}, reports: reports, webhooks: webhooks,
	}
	intent.store = s
	return s, nil
}

// Renew gives the intent a new identity: none of the revisions that were returned for it
// is good for a write any more.
func (s *Store) Renew(ctx context.Context) error {
	_, err := durability.Renew(ctx, s.intent.js, durability.BucketStream(IntentBucket))
	return err
}

func bucket(ctx context.Context, js jetstream.JetStream, name, description string) (jetstream.KeyValue, error) {
	kv, _, err := identifiedBucket(ctx, js, name, description, maxBucket)
	return kv, err
}

func identifiedBucket(ctx context.Context, js jetstream.JetStream, name, description string, most int64) (kv jetstream.KeyValue, identity string, err error) {
	kv, identity, err = durability.OpenBucket(ctx, js, jetstream.KeyValueConfig{Bucket: name, Description: description, History: 1, MaxBytes: most})
	if err != nil {
		return nil, "", fmt.Errorf("cannot open bucket %s: %w", name, err)
	}
	return kv, identity, nil
}

// translate converts errors of the key-value layer to errors of this package.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return ErrNotFound
	case hasCode(err, writeUnderWay):
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case errors.Is(err, jetstream.ErrKeyExists), wrongRevision(err):
		return ErrConflict
	}
	return err
}

// Codes with which a server refuses a write that is based on a revision.
const (
	// wrongLastSequence means that the entry has another revision.
	wrongLastSequence jetstream.ErrorCode = 10071
	// writeUnderWay means, with several replicas, that another write of the entry
	// is under way. It may yet fail, and then the revision is right after all.
	writeUnderWay jetstream.ErrorCode = 10164
)

func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

func wrongRevision(err error) bool { return hasCode(err, wrongLastSequence) }
