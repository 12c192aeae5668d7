package intent

import (
	"cmp"
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Action is what happens to an object.
type Action string

// The actions.
const (
	Create Action = "create"
	Change Action = "change"
	Delete Action = "delete"
	Keep   Action = "keep"
)

// ObjectChange is what an intent does to an object.
type ObjectChange struct {
	Key    Key
	Action Action
	// Diff shows the change as lines of YAML that begin with "+ ", "- " or two
	// blanks. It is empty when nothing changes.
	Diff string
	rank int
}

// Keys returns the objects that the intent declares, those to delete included.
func (i Intent) Keys() []Key {
	keys := slices.Collect(maps.Keys(i.Deletions))
	if i.Config != nil {
		keys = append(keys, Key{Kind: Config})
	}
	if i.Rollout != nil {
		keys = append(keys, Key{Kind: Rollout})
	}
	keys = append(keys, keysOf(Calendar, i.Calendars)...)
	keys = append(keys, keysOf(Environment, i.Environments)...)
	keys = append(keys, keysOf(Budget, i.Budgets)...)
	keys = append(keys, keysOf(Release, i.Releases)...)
	keys = append(keys, keysOf(Policy, i.Policies)...)
	keys = append(keys, keysOf(User, i.Users)...)
	keys = append(keys, keysOf(Approle, i.Approles)...)
	keys = append(keys, keysOf(Webhook, i.Webhooks)...)
	slices.SortFunc(keys, compareKeys)
	return keys
}

func keysOf[T any](kind Kind, all map[string]T) []Key {
	var keys []Key
	for name := range all {
		keys = append(keys, Key{Kind: kind, Name: name})
	}
	return keys
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// Compare returns what to do to what a site has so that it is what a text wants,
// in the order in which to do it. has may have more environments than the text names: they say what
// comes after what. What only keeps runs from being opened comes
// first, what may open one last. A policy is there while somebody has it:
//
//	0  freezes; the deletion of calendars that allow
//	1  policies
//	2  users, approles, webhooks
//	3  the deletion of policies
//	4  the rollout and the disruption budgets, by which a run goes, and the releases that it installs
//	5  environments, which take their hosts out of the windows of the tenant
//	6  the configuration with its windows
//	7  calendars that allow; the deletion of freezes, of environments, whose hosts then get the windows
//	   of the tenant, and of releases, which nothing names any more
func Compare(has, want Intent) []ObjectChange {
	var changes []ObjectChange
	for _, key := range want.Keys() {
		changes = append(changes, change(key, has, want))
	}
	place := orderOf(has, want)
	slices.SortStableFunc(changes, func(a, b ObjectChange) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(place[a.Key], place[b.Key]))
	})
	return changes
}

// orderOf returns how many environments come before each, on the longest way: what one comes after is
// written before it, so that an order that is reversed is no cycle while it is written. The way may lead
// over environments of the site that the text does not name.
func orderOf(has, want Intent) map[Key]int {
	all := maps.Clone(has.Environments)
	maps.DeleteFunc(all, func(name string, _ v1.Environment) bool { return want.Deletions[Key{Kind: Environment, Name: name}] })
	if all == nil {
		all = map[string]v1.Environment{}
	}
	maps.Copy(all, want.Environments)
	place, under := map[Key]int{}, map[string]bool{}
	var find func(name string) int
	find = func(name string) int {
		key := Key{Kind: Environment, Name: name}
		at, known := place[key]
		after := all[name].After
		if known || under[name] || after == nil { // A cycle is refused elsewhere.
			return at
		}
		under[name] = true
		for _, before := range after.Environments {
			at = max(at, find(before)+1)
		}
		place[key] = at
		return at
	}
	for _, name := range slices.Sorted(maps.Keys(want.Environments)) {
		find(name)
	}
	return place
}

func change(key Key, has, want Intent) ObjectChange {
	switch key.Kind {
	case Config:
		return changeOf(key, 6, has.Config, want.Config, v1.OSUpgrade.Canonical, v1.SameOSUpgrade)
	case Rollout:
		return changeOf(key, 4, has.Rollout, want.Rollout, v1.Rollout.Canonical, v1.SameRollout)
	case Environment:
		rank := 5
		if want.Deletions[key] {
			rank = 7
		}
		return changeOf(key, rank, entry(has.Environments, key), entry(want.Environments, key), v1.Environment.Canonical, v1.SameEnvironment)
	case Budget:
		return changeOf(key, 4, entry(has.Budgets, key), entry(want.Budgets, key), func(b v1.Budget) v1.Budget { return b }, v1.SameBudget)
	case Release:
		rank := 4
		if want.Deletions[key] {
			rank = 7
		}
		before, after := entry(has.Releases, key), entry(want.Releases, key)
		if before != nil && after != nil {
			after = new(v1.ReleaseOver(*before, *after))
		}
		return changeOf(key, rank, before, after, v1.Release.Canonical, v1.SameRelease)
	case Policy:
		rank := 1
		if want.Deletions[key] {
			rank = 3
		}
		return changeOf(key, rank, entry(has.Policies, key), entry(want.Policies, key), v1.Policy.Canonical, v1.SamePolicy)
	case User:
		return changeOf(key, 2, entry(has.Users, key), entry(want.Users, key), v1.User.Canonical, v1.SameUser)
	case Approle:
		return changeOf(key, 2, entry(has.Approles, key), entry(want.Approles, key), v1.Approle.Canonical, v1.SameApprole)
	case Webhook:
		return changeOf(key, 2, entry(has.Webhooks, key), entry(want.Webhooks, key), canonicalWebhook, v1.SameWebhook)
	case Calendar:
	}
	before, after := entry(has.Calendars, key), entry(want.Calendars, key)
	rank := 7
	if after != nil && after.Kind == "freeze" || after == nil && before != nil && before.Kind != "freeze" {
		rank = 0
	}
	return changeOf(key, rank, before, after, v1.Calendar.Canonical, v1.SameCalendar)
}

// canonicalWebhook is what a diff shows of a webhook.
func canonicalWebhook(w v1.Webhook) v1.Webhook { return w.WithoutSecret().Canonical() }

// entry returns the object of a key; nil if there is none.
func entry[T any](all map[string]T, key Key) *T {
	value, ok := all[key.Name]
	if !ok {
		return nil
	}
	return &value
}

func changeOf[T any](key Key, rank int, before, after *T, canonical func(T) T, same func(a, b T) bool) ObjectChange {
	s := ObjectChange{Key: key, rank: rank, Action: Keep}
	switch {
	case before == nil && after == nil:
	case before == nil:
		s.Action = Create
	case after == nil:
		s.Action = Delete
	case !same(*before, *after):
		s.Action = Change
	}
	if s.Action != Keep {
		s.Diff = Diff(before, after, canonical)
	}
	return s
}

// Diff shows how an object becomes another as ObjectChange.Diff does; nil is no object.
func Diff[T any](before, after *T, canonical func(T) T) string {
	return diff(lines(before, canonical), lines(after, canonical))
}

// lines returns an object as lines of YAML; none is no line.
func lines[T any](value *T, canonical func(T) T) []string {
	if value == nil {
		return nil
	}
	_, text, err := v1.Encode(document.YAML, canonical(*value))
	if err != nil {
		return []string{err.Error()}
	}
	return splitLines(string(text))
}
