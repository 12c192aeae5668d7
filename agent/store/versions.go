package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
)

// versionsEntry is the form of an entry. A report is an object whose members are
// all packages, so it has no place for the number of its format.
type versionsEntry struct {
	Versions json.RawMessage `json:"versions"`
}

// decodeVersions returns the report in an entry.
func decodeVersions(key string, entry []byte) ([]byte, error) {
	var kept versionsEntry
	switch err := format.Versions.Decode(entry, &kept); {
	case format.IsUnsupported(err):
		return nil, fmt.Errorf("the stored versions of host %s were %w", key, err)
	case err != nil:
		return nil, fmt.Errorf("the stored versions of host %s %w: %w", key, ErrDamaged, err)
	}
	return kept.Versions, nil
}

// PutVersions keeps what a host last reported of its versions, a JSON object; key
// is its name as one subject token. What is there already is not written again,
// what is damaged is replaced.
func (s *Store) PutVersions(ctx context.Context, tenant, key string, body []byte) error {
	kept, err := s.Versions(ctx, tenant, key)
	if err != nil && !errors.Is(err, ErrDamaged) || err == nil && bytes.Equal(kept, body) {
		return err
	}
	entry, err := format.Versions.Encode(versionsEntry{body})
	if err != nil {
		return fmt.Errorf("cannot keep the versions of host %s: %w", key, err)
	}
	if _, err := s.versions.Put(ctx, tenant+"."+key, entry); err != nil {
		return fmt.Errorf("cannot keep the versions of host %s: %w", key, err)
	}
	return nil
}

// Versions returns what PutVersions kept last; nil when there is none.
func (s *Store) Versions(ctx context.Context, tenant, key string) ([]byte, error) {
	entry, err := s.versions.Get(ctx, tenant+"."+key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the versions of host %s: %w", key, err)
	}
	return decodeVersions(key, entry.Value())
}

// Reported is what a host reported of its versions, as a watch sees it.
type Reported struct {
	// Key is the host's name as one subject token; empty at the end of what
	// was there when the watch began.
	Key string
	// Body is nil when the entry is gone.
	Body []byte
	// Err is why the entry that is there cannot be read.
	Err error
	At  time.Time
	// Number is the revision's.
	Number uint64
}

// WatchVersions calls see with the versions of each of a tenant's hosts, now
// and after each change. It returns when ctx ends or the store is gone.
func (s *Store) WatchVersions(ctx context.Context, tenant string, see func(Reported)) error {
	err := watch(ctx, s.versions, tenant+".*", func(entry jetstream.KeyValueEntry) bool {
		if entry == nil {
			see(Reported{})
			return true
		}
		r := Reported{Key: entry.Key()[len(tenant)+1:], At: entry.Created(), Number: entry.Revision()}
		if entry.Operation() == jetstream.KeyValuePut {
			r.Body, r.Err = decodeVersions(r.Key, entry.Value())
		}
		see(r)
		return true
	})
	return fmt.Errorf("cannot watch the versions of tenant %s: %w", tenant, err)
}

// VersionsNumber is that of the last change of any of a tenant's versions; 0
// when there was none. A watch that has seen it has seen them all.
func (s *Store) VersionsNumber(ctx context.Context, tenant string) (uint64, error) {
	last, err := s.versionsLog.GetLastMsgForSubject(ctx, "$KV.osu-versions."+tenant+".*")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot ask for the last versions of tenant %s: %w", tenant, err)
	}
	return last.Sequence, nil
}
