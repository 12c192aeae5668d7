package v1

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
)

// SameOSUpgrade reports whether two configurations mean the same. The order of their
// entries has no meaning; a server may change it, and the form of each value.
func SameOSUpgrade(a, b OSUpgrade) bool { return reflect.DeepEqual(sorted(a), sorted(b)) }

// sorted returns the canonical form of a configuration with its entries in one
// order; an empty list is nil.
func sorted(c OSUpgrade) OSUpgrade {
	c = c.Canonical()
	c.WorkerApplications = slices.SortedFunc(slices.Values(c.WorkerApplications), func(a, b WorkerApplication) int {
		return cmp.Compare(a.Name, b.Name)
	})
	c.MaintenanceWindows = slices.SortedFunc(slices.Values(c.MaintenanceWindows), compareWindows)
	return c
}

func compareWindows(a, b MaintenanceWindow) int {
	return cmp.Or(
		cmp.Compare(a.DaysOfWeek, b.DaysOfWeek), cmp.Compare(a.StartTime, b.StartTime),
		cmp.Compare(a.Timezone, b.Timezone), cmp.Compare(a.Duration, b.Duration))
}

// SameRollout reports whether two rollouts mean the same. An absent member means its
// default.
func SameRollout(a, b Rollout) bool {
	return sameJSON(a.WithDefaults().Canonical(), b.WithDefaults().Canonical())
}

// SameCalendar reports whether two calendars mean the same, however they are
// spelt.
func SameCalendar(a, b Calendar) bool { return sameJSON(a.Canonical(), b.Canonical()) }

// SamePolicy reports whether two policies have the same rules. Their names are in their paths.
func SamePolicy(a, b Policy) bool {
	a.Name, b.Name = "", ""
	return sameJSON(a.Canonical(), b.Canonical())
}

// SameUser reports whether two users have the same roles and lifetimes. Their names are in their
// paths, and a password is never shown.
func SameUser(a, b User) bool { return sameJSON(a.Canonical(), b.Canonical()) }

// SameApprole is SameUser for approles.
func SameApprole(a, b Approle) bool { return sameJSON(a.Canonical(), b.Canonical()) }

// SameWebhook reports whether two webhooks mean the same. A secret is never shown.
func SameWebhook(a, b Webhook) bool {
	return sameJSON(a.WithoutSecret().Canonical(), b.WithoutSecret().Canonical())
}

// SameTenant reports whether two tenants mean the same. Their names are in their paths.
func SameTenant(a, b Tenant) bool { return a.Canonical() == b.Canonical() }

func sameJSON(a, b any) bool {
	textA, errA := json.Marshal(a)
	textB, errB := json.Marshal(b)
	return errors.Join(errA, errB) == nil && bytes.Equal(textA, textB)
}
