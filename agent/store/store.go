// Package store keeps what is not a fact of a run: the configuration of each
// tenant, the hosts that are known and their versions, in JetStream key-value
// buckets.
//
// Every write of a configuration names the revision that it is based on (design.md 5, invariant
// 6). It decides nothing about what it keeps.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors on which somebody decides.
var (
	// ErrNotFound means that there is no such entry.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the entry has another revision than the one that
	// the write was based on.
	ErrConflict = errors.New("changed in the meantime")
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
	configs, hosts, versions jetstream.KeyValue
	// versionsLog is the stream of the bucket of versions.
	versionsLog jetstream.Stream
	// made is when the bucket of configurations was made.
	made int64
}

const (
	// history is how many revisions of a configuration are kept.
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
	configs, err := bucket(ctx, js, "osu-config", "os-upgrade configuration by tenant", history)
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
	versionsLog, err := js.Stream(ctx, "KV_osu-versions")
	if err != nil {
		return nil, fmt.Errorf("cannot look at the bucket of versions: %w", err)
	}
	made, err := creation(ctx, js, "KV_osu-config")
	if err != nil {
		return nil, err
	}
	return &Store{configs: configs, hosts: hosts, versions: versions, versionsLog: versionsLog, made: made.UnixNano()}, nil
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
	case errors.Is(err, jetstream.ErrKeyExists), wrongRevision(err):
		return ErrConflict
	}
	return err
}

// wrongRevision knows both codes: 10071 with one replica, 10164 with several.
func wrongRevision(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == 10071 || api.ErrorCode == 10164)
}
