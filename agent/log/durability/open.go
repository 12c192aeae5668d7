package durability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Open returns the stream with these settings, and makes or changes it if need be. It looks
// first, because a server writes and syncs settings even if nothing has changed.
func Open(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (jetstream.Stream, error) {
	there, err := look(ctx, js, c.Name)
	if err != nil {
		return nil, err
	}
	return settle(ctx, js, there, c)
}

// OpenIdentified is Open for a stream with an identity, which it returns.
func OpenIdentified(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (s jetstream.Stream, identity string, err error) {
	there, err := look(ctx, js, c.Name)
	if err != nil {
		return nil, "", err
	}
	identity = identityOf(there)
	c.Metadata = metadata(identity)
	s, err = settle(ctx, js, there, c)
	return s, identity, err
}

// OpenBucket is OpenIdentified for a bucket.
func OpenBucket(ctx context.Context, js jetstream.JetStream, c jetstream.KeyValueConfig) (kv jetstream.KeyValue, identity string, err error) {
	there, err := look(ctx, js, BucketStream(c.Bucket))
	if err != nil {
		return nil, "", err
	}
	identity = identityOf(there)
	c.Storage, c.Replicas, c.Placement, c.Metadata = jetstream.FileStorage, Replicas, placement(), metadata(identity)
	if there != nil {
		if kv, err = js.KeyValue(ctx, c.Bucket); err == nil && hasBucket(ctx, kv, c) {
			return kv, identity, nil
		}
	}
	kv, err = js.CreateOrUpdateKeyValue(ctx, c)
	return kv, identity, err
}

// BucketStream returns the name of the stream that has the entries of a bucket.
func BucketStream(bucket string) string { return "KV_" + bucket }

// look returns a stream, nil if it does not exist.
func look(ctx context.Context, js jetstream.JetStream, stream string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look at stream %s: %w", stream, err)
	}
	return s, nil
}

// settle returns the stream, once it is there and has the settings.
func settle(ctx context.Context, js jetstream.JetStream, there jetstream.Stream, c jetstream.StreamConfig) (jetstream.Stream, error) {
	c.Storage, c.Replicas, c.Placement = jetstream.FileStorage, Replicas, placement()
	if there != nil && hasSettings(there.CachedInfo().Config, c) {
		return there, nil
	}
	return js.CreateOrUpdateStream(ctx, c)
}

// hasSettings reports whether a stream has the settings. The server fills in what they leave
// out, and adds metadata of its own.
func hasSettings(has, want jetstream.StreamConfig) bool {
	want.MaxConsumers, want.MaxMsgSize = unlimited(want.MaxConsumers), unlimited(want.MaxMsgSize)
	want.MaxBytes, want.MaxMsgs, want.MaxMsgsPerSubject = unlimited(want.MaxBytes), unlimited(want.MaxMsgs), unlimited(want.MaxMsgsPerSubject)
	if want.Duplicates == 0 {
		want.Duplicates = duplicates
	}
	has.Metadata, want.Metadata = ours(has.Metadata), ours(want.Metadata)
	return reflect.DeepEqual(has, want)
}

// duplicates is how long a server remembers the ids of messages of a stream that does not say
// it.
const duplicates = 2 * time.Minute

// hasBucket reports whether a bucket has the settings.
func hasBucket(ctx context.Context, kv jetstream.KeyValue, want jetstream.KeyValueConfig) bool {
	status, err := kv.Status(ctx)
	if err != nil {
		return false
	}
	has := status.Config()
	want.MaxValueSize = unlimited(want.MaxValueSize)
	has.Metadata, want.Metadata = ours(has.Metadata), ours(want.Metadata)
	return reflect.DeepEqual(has, want)
}

// unlimited returns a limit as a server writes it.
func unlimited[N int | int32 | int64](limit N) N {
	if limit == 0 {
		return -1
	}
	return limit
}

// ours returns metadata without that of the server.
func ours(metadata map[string]string) map[string]string {
	kept := maps.Clone(metadata)
	maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasPrefix(key, "_nats.") })
	if len(kept) == 0 {
		return nil
	}
	return kept
}
