package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Bounds of the reports of a host that are kept besides its versions.
const (
	// MaxReports is how many of the last reports are kept.
	MaxReports = 20
	// maxChanges bounds the changes of one report that are kept, in bytes; changeSize
	// is what a change takes besides its texts.
	maxChanges, changeSize = 16 << 10, 40
)

// newReport compares two reports. before is nil for the first report.
func newReport(before, after map[string]string) (r v1.VersionReport) {
	if before == nil {
		return r
	}
	r.Changes = v1.CompareVersions(before, after)
	r.Changed = len(r.Changes)
	size := 0
	for i, c := range r.Changes {
		if size += changeSize + len(c.Package) + len(c.From) + len(c.To); size > maxChanges {
			r.Changes = r.Changes[:i]
			break
		}
	}
	return r
}

// versionsEntry is the form of an entry. A report is an object whose members are
// all packages, so it has no place for the number of its format.
type versionsEntry struct {
	Versions json.RawMessage `json:"versions"`
	// Last is the report that has brought the versions, without its time: that is
	// the time of the entry. Past are the reports before it, oldest first.
	Last v1.VersionReport   `json:"last,omitzero"`
	Past []v1.VersionReport `json:"past,omitempty"`
}

// decodeVersions reads an entry.
func decodeVersions(key string, entry []byte) (kept versionsEntry, err error) {
	switch err := format.Versions.Decode(entry, &kept); {
	case format.IsUnsupported(err):
		return versionsEntry{}, fmt.Errorf("the stored versions of host %s were %w", key, err)
	case err != nil:
		return versionsEntry{}, fmt.Errorf("the stored versions of host %s %w: %w", key, ErrDamaged, err)
	}
	return kept, nil
}

// reports returns all reports of an entry that was made at a time, newest first.
func (e versionsEntry) reports(at time.Time) []v1.VersionReport {
	last := e.Last
	last.At = at
	all := append(slices.Clone(e.Past), last)
	slices.Reverse(all)
	return all
}

// next returns the entry after a report. at is the time of the present entry.
func (e versionsEntry) next(at time.Time, body []byte) versionsEntry {
	next := versionsEntry{Versions: body}
	before, err := message.DecodeVersions(e.Versions)
	if err != nil {
		return next // Nothing was reported before that could be compared.
	}
	after, _ := message.DecodeVersions(body) // The gate has checked it.
	next.Last = newReport(before, after)
	past := e.reports(at)
	slices.Reverse(past)
	next.Past = past[max(0, len(past)-(MaxReports-1)):]
	return next
}

// versionsOf returns the entry of a host with its revision and time; an empty entry
// of revision 0 if there is none. A damaged entry is returned empty, with ErrDamaged.
func (s *Store) versionsOf(ctx context.Context, tenant, key string) (kept versionsEntry, revision uint64, at time.Time, err error) {
	entry, err := s.versions.Get(ctx, tenant+"."+key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return versionsEntry{}, 0, time.Time{}, nil
	}
	if err != nil {
		return versionsEntry{}, 0, time.Time{}, fmt.Errorf("cannot read the versions of host %s: %w", key, err)
	}
	kept, err = decodeVersions(key, entry.Value())
	return kept, entry.Revision(), entry.Created(), err
}

// PutVersions keeps a report of a host's versions, a JSON object; key is the host's
// name as one subject token. What is there already is not written again, what is
// damaged is replaced. ErrConflict means that another report was kept meanwhile.
func (s *Store) PutVersions(ctx context.Context, tenant, key string, body []byte) error {
	kept, revision, at, err := s.versionsOf(ctx, tenant, key)
	if err != nil && !errors.Is(err, ErrDamaged) || err == nil && bytes.Equal(kept.Versions, body) {
		return err
	}
	entry, err := format.Versions.Encode(kept.next(at, body))
	if err != nil {
		return fmt.Errorf("cannot keep the versions of host %s: %w", key, err)
	}
	if revision == 0 {
		_, err = s.versions.Create(ctx, tenant+"."+key, entry)
	} else {
		_, err = s.versions.Update(ctx, tenant+"."+key, entry, revision)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the versions of host %s: %w", key, translate(err))
	}
	return nil
}

// Versions returns what PutVersions kept last; nil when there is none.
func (s *Store) Versions(ctx context.Context, tenant, key string) ([]byte, error) {
	kept, _, _, err := s.versionsOf(ctx, tenant, key)
	return kept.Versions, err
}

// Reports returns the last reports of a host, newest first.
func (s *Store) Reports(ctx context.Context, tenant, key string) ([]v1.VersionReport, error) {
	kept, revision, at, err := s.versionsOf(ctx, tenant, key)
	if err != nil || revision == 0 {
		return nil, err
	}
	return kept.reports(at), nil
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
	// Report says when it was reported, and what it has changed.
	v1.VersionReport
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
		r := Reported{Key: entry.Key()[len(tenant)+1:], Number: entry.Revision()}
		if entry.Operation() == jetstream.KeyValuePut {
			var kept versionsEntry
			kept, r.Err = decodeVersions(r.Key, entry.Value())
			r.Body, r.VersionReport = kept.Versions, kept.Last
		}
		r.At = entry.Created()
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
