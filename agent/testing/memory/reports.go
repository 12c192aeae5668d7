package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// keyOfReport is the key of a report in the bucket of its kind; key is the host's name as one
// subject token.
func keyOfReport(tenant, key string, id report.ID) string {
	if !id.Kind.OfRun {
		return tenant + "." + key
	}
	return fmt.Sprint(tenant, ".", id.Run, ".", key, ".", id.Part)
}

// PutReport is that of store.Store.
func (s *Store) PutReport(_ context.Context, tenant, key string, r report.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	bucket, at := s.reports[r.Kind], keyOfReport(tenant, key, r.ID)
	kept, err := readReport(r.ID, key, bucket.entries[at])
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged):
		return err
	case r.Repeats(kept):
		return nil
	}
	e, err := r.Entry(kept)
	if err != nil {
		return fmt.Errorf("cannot keep the %s of host %s: %w", r.ID, key, err)
	}
	s.write(bucket, at, append([]byte{}, e.Data...))
	written := bucket.entries[at]
	written.report = e
	bucket.entries[at] = written
	return nil
}

func readReport(id report.ID, key string, e entry) (report.Kept, error) {
	if e.body == nil {
		return report.Kept{}, fmt.Errorf("the %s of host %s %w", id, key, store.ErrNotFound)
	}
	stored := e.report
	stored.Data = e.body
	kept, err := id.Kind.Read(stored, e.at)
	if err != nil {
		err = fmt.Errorf("the stored %s of host %s %w", id, key, err)
	}
	return kept, err
}

// Report is that of store.Store.
func (s *Store) Report(_ context.Context, tenant, key string, id report.ID) (report.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return readReport(id, key, s.reports[id.Kind].entries[keyOfReport(tenant, key, id)])
}

// Reports is that of store.Store.
func (s *Store) Reports(_ context.Context, tenant string, kind *report.Kind) (map[string]report.Kept, error) {
	found := map[string]report.Kept{}
	for _, e := range s.list(s.reports[kind], tenant+".") {
		key := e.key[len(tenant)+1:]
		if kept, err := readReport(report.ID{Kind: kind}, key, e); err == nil {
			found[key] = kept
		}
	}
	return found, nil
}

// Summaries is that of store.Store.
func (s *Store) Summaries(_ context.Context, tenant string, kind *report.Kind) (map[string]report.Summary, error) {
	found := map[string]report.Summary{}
	for _, e := range s.list(s.reports[kind], tenant+".") {
		if kind.Format.CheckHeader(e.report.Format) == nil && json.Valid([]byte(e.report.Summary)) {
			found[e.key[len(tenant)+1:]] = report.Summary{At: e.at, JSON: e.report.Summary}
		}
	}
	return found, nil
}

// WatchReports is that of store.Store.
func (s *Store) WatchReports(ctx context.Context, tenant string, kind *report.Kind, see func(store.Reported)) error {
	return s.watch(ctx, s.reports[kind], tenant+".", func(e entry) {
		r := store.Reported{Key: e.key[len(tenant)+1:], Number: e.number}
		if e.body != nil {
			r.Kept, r.Err = kind.Read(report.Entry{Data: e.body}, e.at)
		}
		r.At = e.at
		see(r)
	}, func() { see(store.Reported{}) })
}

// ReportsNumber is that of store.Store.
func (s *Store) ReportsNumber(_ context.Context, tenant string, kind *report.Kind) (last uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.reports[kind].below(tenant+".", 0) {
		last = e.number
	}
	return last, nil
}
