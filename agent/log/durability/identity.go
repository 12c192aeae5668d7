package durability

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// identityKey is the key of a stream's metadata that holds its identity. It is kept
// with the stream, so that all servers that have a copy of the stream agree on it.
const identityKey = "osu-identity"

// identityOf returns the identity of a stream, or a new one for a stream that does not exist
// yet: its configuration must have it as metadata. A stream that was deleted and made again
// has another identity, and so has one that was restored from a backup (Renew).
func identityOf(s jetstream.Stream) string {
	if s == nil {
		return newIdentity()
	}
	info := s.CachedInfo()
	if identity := info.Config.Metadata[identityKey]; identity != "" {
		return identity
	}
	return strconv.FormatInt(info.Created.UnixNano(), 36)
}

// newIdentity returns an identity that no stream had before: the time of its making.
func newIdentity() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

// Number returns an identity as a number.
func Number(identity string) (int64, error) {
	number, err := strconv.ParseInt(identity, 36, 64)
	if err != nil {
		return 0, fmt.Errorf("%.80q is no identity of a stream: %w", identity, err)
	}
	return number, nil
}

// metadata is that of a stream with an identity.
func metadata(identity string) map[string]string { return map[string]string{identityKey: identity} }

// Renew gives a stream a new identity, and returns it: its records are not, or need not
// be, all those that were acknowledged under the old one.
func Renew(ctx context.Context, js jetstream.JetStream, stream string) (string, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return "", fmt.Errorf("cannot look at stream %s: %w", stream, err)
	}
	config, identity := s.CachedInfo().Config, newIdentity()
	config.Metadata = metadata(identity)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return "", fmt.Errorf("cannot give stream %s a new identity: %w", stream, err)
	}
	return identity, nil
}
