// Package store keeps what is not a fact of a run: the configuration, the
// rollout and the calendars of each tenant, the hosts that are known and their
// versions, in JetStream key-value buckets.
//
// Every write of a configuration, a rollout or a calendar names the revision
// that it is based on (design.md 5, invariant 6). It decides nothing about what
// it keeps.
package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Errors on which somebody decides.
var (
	// ErrNotFound means that there is no such entry.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the entry has another revision than the one that
	// the write was based on.
	ErrConflict = errors.New("changed in the meantime")
	// ErrUnknown means that another write of the entry is under way, and that
	// nobody knows yet whether it counts: the write may be tried again.
	ErrUnknown = errors.New("is being changed; try again")
	// ErrDamaged means that what is there cannot be read. It can be replaced.
	ErrDamaged = errors.New("is damaged")
	// ErrFull means that there may be no more of the kind.
	ErrFull = errors.New("there are too many")
)

// Revision identifies one write of one bucket, never two: it holds the time
// at which the bucket was made, so that a bucket made anew cannot repeat one
// (design.md 7). The zero value means "no entry".
type Revision struct {
	Bucket int64
	Number uint64
}

// String is the revision's text form, such as "1a2b3c-7".
func (r Revision) String() string { return fmt.Sprintf("%x-%d", r.Bucket, r.Number) }

// Store is safe for concurrent use.
type Store struct {
	configs   *object[v1.OSUpgrade]
	rollouts  *object[v1.Rollout]
	calendars *object[v1.Calendar]
	// calendarsMu makes counting calendars and adding one a single step.
	calendarsMu     sync.Mutex
	hosts, versions jetstream.KeyValue
	leases          *leases
	// runs are the ended runs of each tenant.
	runs runs
	// versionsLog is the stream of the bucket of versions.
	versionsLog jetstream.Stream
}

const (
	// history is how many revisions of an object are kept.
	history = 10
	// maxBucket bounds one bucket, in bytes.
	maxBucket = 256 << 20
)

// Open makes the buckets when they are missing.
func Open(ctx context.Context, nc *nats.Conn) (*Store, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	configs, err := openObject[v1.OSUpgrade](ctx, js, "osu-config", "os-upgrade configuration", history)
	if err != nil {
		return nil, err
	}
	rollouts, err := openObject[v1.Rollout](ctx, js, "osu-rollout", "rollout", history)
	if err != nil {
		return nil, err
	}
	calendars, err := openObject[v1.Calendar](ctx, js, "osu-calendar", "calendar", 1)
	if err != nil {
		return nil, err
	}
	hosts, err := bucket(ctx, js, "osu-hosts", "hosts by tenant and name", 1)
	if err != nil {
		return nil, err
	}
	versions, err := bucket(ctx, js, "osu-versions", "versions by tenant and host", 1)
	if err != nil {
		return nil, err
	}
	leases, err := openLeases(ctx, js)
	if err != nil {
		return nil, err
	}
	versionsLog, err := js.Stream(ctx, "KV_osu-versions")
	if err != nil {
		return nil, fmt.Errorf("cannot look at the bucket of versions: %w", err)
	}
	return &Store{configs: configs, rollouts: rollouts, calendars: calendars, hosts: hosts, versions: versions, leases: leases, versionsLog: versionsLog, runs: runs{js: js, streams: map[string]jetstream.Stream{}}}, nil
}

func bucket(ctx context.Context, js jetstream.JetStream, name, description string, keep uint8) (jetstream.KeyValue, error) {
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: name, Description: description, History: keep, MaxBytes: maxBucket,
		Storage: jetstream.FileStorage, Replicas: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open bucket %s: %w", name, err)
	}
	return kv, nil
}

func creation(ctx context.Context, js jetstream.JetStream, stream string) (time.Time, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot look at bucket %s: %w", stream, err)
	}
	return s.CachedInfo().Created, nil
}

// translate turns the errors of the key-value layer into those of this
// package.
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
