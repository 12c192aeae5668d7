package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// SeenCalendar is a calendar as WatchCalendars sees it.
type SeenCalendar = Seen[v1.Calendar]

// Calendar returns a tenant's calendar of a name and its revision, or
// ErrNotFound.
func (s *Store) Calendar(ctx context.Context, tenant, name string) (v1.Calendar, Revision, error) {
	return s.calendars.get(ctx, key{tenant, name})
}

// PutCalendar writes a calendar as PutConfig does a configuration. It is
// ErrFull when a tenant has v1.MaxCalendars others.
func (s *Store) PutCalendar(ctx context.Context, tenant, name string, calendar v1.Calendar, base Revision) (Revision, error) {
	if base != (Revision{}) {
		return s.calendars.put(ctx, key{tenant, name}, calendar, base)
	}
	s.calendarsMu.Lock()
	defer s.calendarsMu.Unlock()
	if err := s.RoomForCalendar(ctx, tenant); err != nil {
		return Revision{}, err
	}
	return s.calendars.put(ctx, key{tenant, name}, calendar, base)
}

// RoomForCalendar returns ErrFull when a tenant can have no further calendar.
func (s *Store) RoomForCalendar(ctx context.Context, tenant string) error {
	all, err := s.Calendars(ctx, tenant)
	if err == nil && len(all) >= v1.MaxCalendars {
		err = fmt.Errorf("tenant %s has %d calendars: %w; delete one first", tenant, len(all), ErrFull)
	}
	return err
}

// DeleteCalendar removes a calendar as DeleteConfig does a configuration.
func (s *Store) DeleteCalendar(ctx context.Context, tenant, name string, base Revision) (Revision, error) {
	return s.calendars.remove(ctx, key{tenant, name}, base)
}

// WatchCalendars calls see with each of a tenant's calendars, those deleted
// included, then with the zero SeenCalendar, and then with each that changes.
// It returns when ctx ends or the store is gone.
func (s *Store) WatchCalendars(ctx context.Context, tenant string, see func(SeenCalendar)) error {
	return s.calendars.watchAll(ctx, tenant, see)
}

// NamedCalendar is a calendar of a tenant.
type NamedCalendar struct {
	Name     string
	Calendar v1.Calendar
	Revision Revision
}

// Calendars returns a tenant's calendars, by name.
func (s *Store) Calendars(ctx context.Context, tenant string) (all []NamedCalendar, err error) {
	var damaged error
	err = watch(ctx, s.calendars.kv, tenant+".*", func(entry jetstream.KeyValueEntry) bool {
		if entry == nil { // The end of the initial values.
			return false
		}
		calendar, err := s.calendars.decode(entry)
		damaged = err
		all = append(all, NamedCalendar{keyOf(entry.Key()).name, calendar, s.calendars.revision(entry.Revision())})
		return err == nil
	}, jetstream.IgnoreDeletes())
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the calendars of tenant %s: %w", tenant, err)
	case damaged != nil:
		return nil, damaged
	}
	slices.SortFunc(all, func(a, b NamedCalendar) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}
