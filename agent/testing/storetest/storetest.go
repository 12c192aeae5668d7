// Package storetest has the contract of a store: what the API, controllers, gates and
// webhooks rely on. Each implementation runs it in a test, so that what holds of the store
// in memory, on which most tests run, holds of the real one.
//
// It knows no implementation.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/webhook"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Store is the store as its users see it.
type Store interface {
	api.Store
	webhook.Store
	controller.NewsStore
	controller.Store
	gate.Keeper
}

// patience bounds the wait for a change that a watch must see.
const patience = 30 * time.Second

// Contract runs all cases. open returns an empty store.
func Contract(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for name, play := range map[string]func(*tested){
		"a calendar is written only on its own revision":    calendarRevisions,
		"an environment is written only on its revision":    environmentRevisions,
		"a rollout is written only on its own revision":     rolloutRevisions,
		"a configuration is written only on its revision":   configRevisions,
		"members of newer versions stay with an object":     unknownMembers,
		"what is read and written is not shared":            notShared,
		"a tenant has a bounded number of calendars":        tooManyCalendars,
		"a tenant has a bounded number of environments":     tooManyEnvironments,
		"a disruption budget is kept and watched":           budgets,
		"a release is kept and watched":                     releases,
		"skipped windows are kept and watched":              skips,
		"a tenant has a bounded number of webhooks":         tooManyWebhooks,
		"a webhook is kept without its secret":              webhooks,
		"the state of a webhook is replaced":                webhookStates,
		"a watch sees each object, old and new":             watchIntent,
		"a watch of a tenant without intent begins at once": watchNoIntent,
		"hosts are kept by tenant and deleted":              hosts,
		"hosts have their last runs":                        lastRuns,
		"ended runs are listed, the newest first":           history,
		"a later state of a run takes the place of another": changesAfterTheEnd,
		"news are kept once and bounded":                    news,
		"of two gates one grants a lease":                   leases,
		"a report takes the place of the one before":        reports,
		"reports of runs are kept by run and part":          reportsOfRuns,
		"a watch sees reports, and those that are gone":     watchReports,
		"a watch sees leases, and those that are gone":      watchLeases,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(&tested{T: t, Store: open(t)})
		})
	}
}

// tested is a store under test.
type tested struct {
	*testing.T
	Store
}

// none is the revision of what is not there.
var none store.Revision

// written checks that a write has counted, and returns its revision.
func (b *tested) written(r store.Revision, err error) store.Revision {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	if r == none {
		b.Fatal("a write has no revision")
	}
	return r
}

// fails checks why a write, whose revision is of no interest, or a read has failed.
func (b *tested) fails(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%s: %v; want %v", what, err, want)
	}
}

// refused checks that a write has failed with ErrConflict.
func (b *tested) refused(what string) func(store.Revision, error) {
	return func(_ store.Revision, err error) {
		b.Helper()
		b.fails(what, err, store.ErrConflict)
	}
}

func freeze(description string) v1.Kept[v1.Calendar] {
	return v1.Kept[v1.Calendar]{Value: v1.Calendar{Kind: "freeze", Description: description}}
}

func rolloutWith(splay rollout.Span) v1.Kept[v1.Rollout] {
	return v1.Kept[v1.Rollout]{Value: v1.Rollout{Splay: splay}}
}

func configFor(application string) v1.Kept[v1.OSUpgrade] {
	return v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: application}}}}
}

func calendarRevisions(b *tested) {
	ctx := b.Context()
	put := func(tenant, name string, base store.Revision) (store.Revision, error) {
		return b.PutCalendar(ctx, tenant, name, freeze(tenant+" "+name), base)
	}
	revisions := map[string]store.Revision{}
	for _, name := range []string{"xmas", "audit"} {
		_, _, err := b.Calendar(ctx, "acme", name)
		b.fails(name+" before the first write", err, store.ErrNotFound)
		revisions[name] = b.written(put("acme", name, none))
		b.refused("a second first write of " + name)(put("acme", name, none))
	}
	b.written(put("other", "xmas", none))
	b.refused("a write on the revision of another calendar")(put("acme", "xmas", revisions["audit"]))
	b.refused("a deletion of another calendar's revision")(b.DeleteCalendar(ctx, "acme", "xmas", revisions["audit"]))
	second := b.written(put("acme", "xmas", revisions["xmas"]))
	if c, revision, err := b.Calendar(ctx, "acme", "xmas"); err != nil || revision != second || c.Value.Description != "acme xmas" {
		b.Errorf("got %+v, %s, %v", c, revision, err)
	}
	all, err := b.Calendars(ctx, "acme")
	if err != nil || len(all) != 2 || all[0].Name != "audit" || all[0].Revision != revisions["audit"] || all[1].Name != "xmas" || all[1].Value.Description != "acme xmas" {
		b.Errorf("listed %+v, %v", all, err)
	}
	// The deletion's revision is its own, not the one after what it deletes.
	b.written(put("acme", "audit", revisions["audit"]))
	deletion := b.written(b.DeleteCalendar(ctx, "acme", "xmas", second))
	if deletion.Number != second.Number+2 {
		b.Errorf("deleted %s as %s", second, deletion)
	}
	if all, err := b.Calendars(ctx, "acme"); err != nil || len(all) != 1 || all[0].Name != "audit" {
		b.Errorf("after the deletion there are %+v, %v", all, err)
	}
	if again := b.written(put("acme", "xmas", none)); again.Number != deletion.Number+1 {
		b.Errorf("written again as %s", again)
	}
}

func rolloutRevisions(b *tested) {
	ctx := b.Context()
	put := func(splay rollout.Span, base store.Revision) (store.Revision, error) {
		return b.PutRollout(ctx, "acme", rolloutWith(splay), base)
	}
	_, _, err := b.Rollout(ctx, "acme")
	b.fails("before the first write", err, store.ErrNotFound)
	config := b.written(b.PutConfig(ctx, "acme", configFor("app"), none))
	first := b.written(b.PutRollout(ctx, "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{Splay: "1h", Stages: []v1.Stage{}}}, none))
	if first == config {
		b.Errorf("a configuration and a rollout both have revision %s", first)
	}
	b.refused("a second first write")(put("", none))
	b.refused("a write on the revision of the configuration")(put("", config))
	b.refused("a write on the revision of another bucket")(put("", store.Revision{Bucket: first.Bucket + 1, Number: first.Number}))
	second := b.written(put("2h", first))
	b.refused("a deletion of an older revision")(b.DeleteRollout(ctx, "acme", first))
	b.refused("a deletion of the configuration's revision")(b.DeleteRollout(ctx, "acme", config))
	b.refused("a deletion without a revision")(b.DeleteRollout(ctx, "acme", none))
	if got, revision, err := b.Rollout(ctx, "acme"); err != nil || revision != second || got.Value.Splay != "2h" || got.Value.Stages != nil {
		b.Errorf("got %+v, %s, %v; want revision %s", got, revision, err, second)
	}
	_, _, err = b.Rollout(ctx, "other")
	b.fails("another tenant", err, store.ErrNotFound)
	if deletion := b.written(b.DeleteRollout(ctx, "acme", second)); deletion.Number != second.Number+1 {
		b.Fatalf("deleted %s as %s", second, deletion)
	}
	_, _, err = b.Rollout(ctx, "acme")
	b.fails("after the deletion", err, store.ErrNotFound)
	if _, _, err := b.Config(ctx, "acme"); err != nil {
		b.Errorf("the configuration is gone with the rollout: %v", err)
	}
	if third := b.written(put("", none)); third.Number <= second.Number+1 {
		b.Errorf("written again as %s; the deletion of %s has a revision too", third, second)
	}
}

func configRevisions(b *tested) {
	ctx := b.Context()
	put := func(application string, base store.Revision) (store.Revision, error) {
		return b.PutConfig(ctx, "acme", configFor(application), base)
	}
	_, _, err := b.Config(ctx, "acme")
	b.fails("before the first write", err, store.ErrNotFound)
	first := b.written(put("one", none))
	b.refused("a second first write")(put("two", none))
	second := b.written(put("two", first))
	b.refused("a write on an old revision")(put("three", first))
	if got, revision, err := b.Config(ctx, "acme"); err != nil || revision != second || got.Value.WorkerApplications[0].Name != "two" {
		b.Errorf("got %+v, %s, %v; want revision %s", got, revision, err, second)
	}
	b.written(b.DeleteConfig(ctx, "acme", second))
	b.refused("a deletion of what is deleted")(b.DeleteConfig(ctx, "acme", second))
	b.refused("a write on the revision that was deleted")(put("three", second))
}

func unknownMembers(b *tested) {
	const text = `{"splay":"1h","from-2031":{"a":[1]}}`
	var kept v1.Kept[v1.Rollout]
	if err := kept.UnmarshalJSON([]byte(text)); err != nil {
		b.Fatal(err)
	}
	b.written(b.PutRollout(b.Context(), "acme", kept, none))
	got, _, err := b.Rollout(b.Context(), "acme")
	if err != nil {
		b.Fatal(err)
	}
	if again, err := got.MarshalJSON(); err != nil || string(again) != text {
		b.Errorf("%s is read as %s, %v", text, again, err)
	}
}

func notShared(b *tested) {
	mine := configFor("a")
	b.written(b.PutConfig(b.Context(), "acme", mine, none))
	mine.Value.WorkerApplications[0].Name = "changed"
	if kept, _, err := b.Config(b.Context(), "acme"); err != nil || kept.Value.WorkerApplications[0].Name != "a" {
		b.Errorf("who wrote a configuration can change it: %+v, %v", kept, err)
	}
}

func budgets(b *tested) {
	ctx := b.Context()
	put := func(name, most string, base store.Revision) (store.Revision, error) {
		return b.PutBudget(ctx, "acme", name, v1.Kept[v1.Budget]{Value: v1.Budget{Per: "rack", MaxUnavailable: rollout.Count(most)}}, base)
	}
	first := b.written(put("racks", "1", none))
	b.refused("a second creation")(put("racks", "2", none))
	second := b.written(put("racks", "2", first))
	b.refused("a deletion of an old revision")(b.DeleteBudget(ctx, "acme", "racks", first))
	if kept, revision, err := b.Budget(ctx, "acme", "racks"); err != nil || revision != second || kept.Value.MaxUnavailable != "2" {
		b.Errorf("the budget is %+v of revision %s, %v", kept.Value, revision, err)
	}
	b.fails("a room for one more", b.RoomForBudget(ctx, "acme"), nil)
	w := b.watch()
	if seen := w.next(store.Budget, "racks", second); seen.Budget == nil || seen.Budget.MaxUnavailable != "2" {
		b.Errorf("of the budget it sees %+v", seen)
	}
	w.next("", "", none)
	deletion := b.written(b.DeleteBudget(ctx, "acme", "racks", second))
	if seen := w.next(store.Budget, "racks", deletion); seen.Budget != nil {
		b.Errorf("of the deleted budget it sees %+v", seen)
	}
	w.stop()
	if all, err := b.Budgets(ctx, "acme"); err != nil || len(all) != 0 {
		b.Errorf("the budgets are %+v, %v", all, err)
	}
}

func releases(b *tested) {
	ctx := b.Context()
	put := func(name, description string, base store.Revision) (store.Revision, error) {
		return b.PutRelease(ctx, "acme", name, v1.Kept[v1.Release]{Value: v1.Release{Description: description, Data: json.RawMessage(`{"image":"a<b"}`)}}, base)
	}
	first := b.written(put("nov", "November", none))
	b.refused("a second creation")(put("nov", "another", none))
	second := b.written(put("nov", "late November", first))
	b.refused("a deletion of an old revision")(b.DeleteRelease(ctx, "acme", "nov", first))
	kept, revision, err := b.Release(ctx, "acme", "nov")
	if err != nil || revision != second || kept.Value.Description != "late November" || string(kept.Value.Data) != `{"image":"a<b"}` {
		b.Errorf("the release is %+v of revision %s, %v", kept.Value, revision, err)
	}
	b.fails("a room for one more", b.RoomForRelease(ctx, "acme"), nil)
	w := b.watch()
	if seen := w.next(store.Release, "nov", second); seen.Release == nil || seen.Release.Digest() != kept.Value.Digest() {
		b.Errorf("of the release it sees %+v", seen)
	}
	w.next("", "", none)
	deletion := b.written(b.DeleteRelease(ctx, "acme", "nov", second))
	if seen := w.next(store.Release, "nov", deletion); seen.Release != nil {
		b.Errorf("of the deleted release it sees %+v", seen)
	}
	w.stop()
	if all, err := b.Releases(ctx, "acme"); err != nil || len(all) != 0 {
		b.Errorf("the releases are %+v, %v", all, err)
	}
}

func skips(b *tested) {
	ctx := b.Context()
	one, _ := v1.Skips{}.With(v1.SkippedWindow{Start: time.Unix(3600, 0).UTC(), End: time.Unix(7200, 0).UTC(), Reason: "sale"}, time.Unix(0, 0))
	first := b.written(b.PutSkips(ctx, "acme", "shops", one, none))
	b.refused("a second creation")(b.PutSkips(ctx, "acme", "shops", v1.Skips{}, none))
	if _, _, err := b.Skips(ctx, "acme", "default"); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("another environment has %v", err)
	}
	if kept, revision, err := b.Skips(ctx, "acme", "shops"); err != nil || revision != first || !reflect.DeepEqual(kept, one) {
		b.Errorf("the skipped windows are %+v of revision %s, %v", kept, revision, err)
	}
	w := b.watch()
	if seen := w.next(store.Skip, "shops", first); seen.Skips == nil || !reflect.DeepEqual(*seen.Skips, one) {
		b.Errorf("of the skipped windows it sees %+v", seen)
	}
	w.next("", "", none)
	deletion := b.written(b.DeleteSkips(ctx, "acme", "shops", first))
	if seen := w.next(store.Skip, "shops", deletion); seen.Skips != nil {
		b.Errorf("of the deleted ones it sees %+v", seen)
	}
	w.stop()
	b.refused("a second deletion")(b.DeleteSkips(ctx, "acme", "shops", first))
	if _, _, err := b.Skips(ctx, "acme", "shops"); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("after the deletion there is %v", err)
	}
}

func tooManyCalendars(b *tested) {
	ctx := b.Context()
	if err := b.RoomForCalendar(ctx, "acme"); err != nil {
		b.Errorf("an empty store: %v", err)
	}
	var last store.Revision
	for i := range v1.MaxCalendars {
		last = b.written(b.PutCalendar(ctx, "acme", numbered(i), freeze(""), none))
	}
	_, err := b.PutCalendar(ctx, "acme", "more", freeze(""), none)
	b.fails("one more", err, store.ErrFull)
	b.fails("room for one more", b.RoomForCalendar(ctx, "acme"), store.ErrFull)
	b.written(b.PutCalendar(ctx, "other", "more", freeze(""), none))
	last = b.written(b.PutCalendar(ctx, "acme", numbered(v1.MaxCalendars-1), freeze("changed"), last))
	b.written(b.DeleteCalendar(ctx, "acme", numbered(v1.MaxCalendars-1), last))
	b.written(b.PutCalendar(ctx, "acme", "more", freeze(""), none))
}

func tooManyEnvironments(b *tested) {
	ctx := b.Context()
	b.fails("room in an empty store", b.RoomForEnvironment(ctx, "acme"), nil)
	var last store.Revision
	for i := range v1.MaxEnvironments {
		last = b.written(b.PutEnvironment(ctx, "acme", fmt.Sprintf("shop-%d", i), shopIn("basel"), none))
	}
	_, err := b.PutEnvironment(ctx, "acme", "more", shopIn("basel"), none)
	b.fails("one more", err, store.ErrFull)
	b.fails("room for one more", b.RoomForEnvironment(ctx, "acme"), store.ErrFull)
	b.written(b.PutEnvironment(ctx, "other", "more", shopIn("basel"), none))
	b.written(b.DeleteEnvironment(ctx, "acme", fmt.Sprintf("shop-%d", v1.MaxEnvironments-1), last))
	b.written(b.PutEnvironment(ctx, "acme", "more", shopIn("basel"), none))
}

// numbered is a name of which there are many.
func numbered(i int) string { return "n-" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }

func tooManyWebhooks(b *tested) {
	ctx := b.Context()
	for i := range v1.MaxWebhooks {
		b.written(b.PutWebhook(ctx, "acme", numbered(i), store.KeptWebhook{}, none))
	}
	_, err := b.PutWebhook(ctx, "acme", "more", store.KeptWebhook{}, none)
	b.fails("one more", err, store.ErrFull)
	b.fails("room for one more", b.RoomForWebhook(ctx, "acme"), store.ErrFull)
	b.written(b.PutCalendar(ctx, "acme", "more", freeze(""), none))
}

func webhooks(b *tested) {
	ctx, made := b.Context(), time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
	_, _, err := b.Webhook(ctx, "acme", "chat")
	b.fails("before the first write", err, store.ErrNotFound)
	w := store.KeptWebhook{Webhook: v1.Webhook{URL: "https://a.example/", Secret: "whsec_never"}, Sealed: "c2VhbGVk", Created: made, After: 7}
	first := b.written(b.PutWebhook(ctx, "acme", "chat", w, none))
	b.refused("a second first write")(b.PutWebhook(ctx, "acme", "chat", w, none))
	got, revision, err := b.Webhook(ctx, "acme", "chat")
	if err != nil || revision != first || got.URL != w.URL || got.Secret != "" || got.Sealed != w.Sealed || !got.Created.Equal(made) || got.After != 7 {
		b.Errorf("got %+v, %s, %v", got, revision, err)
	}
	b.written(b.PutWebhook(ctx, "acme", "alarm", w, none))
	if all, err := b.Webhooks(ctx, "acme"); err != nil || len(all) != 2 || all[0].Name != "alarm" || all[1].Revision != first {
		b.Errorf("listed %+v, %v", all, err)
	}
	b.written(b.DeleteWebhook(ctx, "acme", "chat", first))
	b.refused("a deletion of what is deleted")(b.DeleteWebhook(ctx, "acme", "chat", first))
}

func webhookStates(b *tested) {
	ctx := b.Context()
	_, err := b.WebhookState(ctx, "acme", "chat")
	b.fails("before the first write", err, store.ErrNotFound)
	for done := range uint64(3) {
		if err := b.PutWebhookState(ctx, "acme", "chat", store.WebhookState{Done: done, Dead: []v1.DeadLetter{{News: v1.News{ID: "msg_a"}}}}); err != nil {
			b.Fatal(err)
		}
	}
	if state, err := b.WebhookState(ctx, "acme", "chat"); err != nil || state.Done != 2 || len(state.Dead) != 1 || state.Dead[0].News.ID != "msg_a" {
		b.Errorf("got %+v, %v", state, err)
	}
	_, err = b.WebhookState(ctx, "other", "chat")
	b.fails("another tenant", err, store.ErrNotFound)
	for range 2 { // The second time it is gone already.
		if err := b.DeleteWebhookState(ctx, "acme", "chat"); err != nil {
			b.Error(err)
		}
	}
	_, err = b.WebhookState(ctx, "acme", "chat")
	b.fails("after the deletion", err, store.ErrNotFound)
}

// seen is a watch of a tenant's intent that shows one change after the other.
type seen struct {
	*tested
	changes chan store.Seen
	stop    func()
	ended   chan error
}

func (b *tested) watch() *seen {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	w := &seen{tested: b, changes: make(chan store.Seen), stop: stop, ended: make(chan error, 1)}
	go func() {
		w.ended <- b.WatchIntent(ctx, "acme", func(c store.Seen) {
			select {
			case w.changes <- c:
			case <-ctx.Done():
			}
		})
	}()
	return w
}

// next returns the next change, which must be of this object.
func (w *seen) next(kind store.Kind, name string, revision store.Revision) store.Seen {
	w.Helper()
	var c store.Seen
	select {
	case c = <-w.changes:
	case <-time.After(patience):
		w.Fatalf("it has not seen %s %q as %s", kind, name, revision)
	}
	if c.Object != (store.Object{Kind: kind, Name: name}) || c.At.IsZero() != (kind == "") || c.Number != revision.Number || c.Bucket != revision.Bucket || c.Err != nil {
		w.Errorf("it sees %+v; want %s %q as %s", c, kind, name, revision)
	}
	return c
}

func (w *seen) calendar(name string, there bool, revision store.Revision) {
	w.Helper()
	if c := w.next(store.Calendar, name, revision); (c.Calendar != nil) != there || there && c.Calendar.Description != name || c.Config != nil || c.Rollout != nil {
		w.Errorf("of calendar %q it sees %+v", name, c)
	}
}

func shopIn(city string) v1.Kept[v1.Environment] {
	return v1.Kept[v1.Environment]{Value: v1.Environment{Match: v1.Match{Labels: map[string]string{"shop": city}}}}
}

func environmentRevisions(b *tested) {
	ctx := b.Context()
	_, _, err := b.Environment(ctx, "acme", "north")
	b.fails("before the first write", err, store.ErrNotFound)
	first := b.written(b.PutEnvironment(ctx, "acme", "north", shopIn("basel"), none))
	other := b.written(b.PutEnvironment(ctx, "acme", "south", shopIn("lugano"), none))
	b.refused("a second first write")(b.PutEnvironment(ctx, "acme", "north", shopIn("bern"), none))
	b.refused("a write on the revision of another")(b.PutEnvironment(ctx, "acme", "north", shopIn("bern"), other))
	second := b.written(b.PutEnvironment(ctx, "acme", "north", shopIn("bern"), first))
	if e, revision, err := b.Environment(ctx, "acme", "north"); err != nil || revision != second || e.Value.Match.Labels["shop"] != "bern" {
		b.Errorf("got %+v, %s, %v", e, revision, err)
	}
	if all, err := b.Environments(ctx, "acme"); err != nil || len(all) != 2 || all[0].Name != "north" || all[0].Revision != second || all[1].Value.Match.Labels["shop"] != "lugano" {
		b.Errorf("the environments are %+v, %v", all, err)
	}
	b.refused("a deletion of an earlier revision")(b.DeleteEnvironment(ctx, "acme", "north", first))
	b.written(b.DeleteEnvironment(ctx, "acme", "north", second))
	_, _, err = b.Environment(ctx, "acme", "north")
	b.fails("after its deletion", err, store.ErrNotFound)
}

func watchIntent(b *tested) {
	ctx := b.Context()
	config := b.written(b.PutConfig(ctx, "acme", configFor("app"), none))
	revisions := map[string]store.Revision{}
	for _, name := range []string{"a", "b", "gone"} {
		revisions[name] = b.written(b.PutCalendar(ctx, "acme", name, freeze(name), none))
		b.written(b.PutCalendar(ctx, "other", name, freeze(name), none))
	}
	deletion := b.written(b.DeleteCalendar(ctx, "acme", "gone", revisions["gone"]))
	w := b.watch()
	if c := w.next(store.Config, "", config); c.Config == nil || len(c.Config.WorkerApplications) != 1 || c.Rollout != nil || c.Calendar != nil {
		b.Errorf("of the configuration it sees %+v", c)
	}
	w.calendar("a", true, revisions["a"])
	w.calendar("b", true, revisions["b"])
	w.calendar("gone", false, deletion)
	if c := w.next("", "", none); c != (store.Seen{}) {
		b.Errorf("at the end of what was there it sees %+v", c)
	}
	b.written(b.PutRollout(ctx, "other", rolloutWith(""), none))
	written := b.written(b.PutRollout(ctx, "acme", rolloutWith("1h"), none))
	if r := w.next(store.Rollout, "", written); r.Rollout == nil || r.Rollout.Splay != "1h" || r.Config != nil || r.Calendar != nil {
		b.Errorf("after %s it sees %+v", written, r)
	}
	deletion = b.written(b.DeleteRollout(ctx, "acme", written))
	if r := w.next(store.Rollout, "", deletion); r.Rollout != nil {
		b.Errorf("after the deletion of %s it sees %+v", written, r)
	}
	w.calendar("c", true, b.written(b.PutCalendar(ctx, "acme", "c", freeze("c"), none)))
	w.calendar("a", false, b.written(b.DeleteCalendar(ctx, "acme", "a", revisions["a"])))
	shop := b.written(b.PutEnvironment(ctx, "acme", "basel", shopIn("basel"), none))
	if e := w.next(store.Environment, "basel", shop); e.Environment == nil || e.Environment.Match.Labels["shop"] != "basel" {
		b.Errorf("after %s it sees %+v", shop, e)
	}
	hook := b.written(b.PutWebhook(ctx, "acme", "chat", store.KeptWebhook{Sealed: "x"}, none))
	if n := w.next(store.Webhook, "chat", hook); n.Webhook == nil || n.Webhook.Sealed != "x" {
		b.Errorf("after %s it sees %+v", hook, n)
	}
	deletion = b.written(b.DeleteConfig(ctx, "acme", config))
	if c := w.next(store.Config, "", deletion); c.Config != nil {
		b.Errorf("after the deletion of %s it sees %+v", config, c)
	}
	w.stop()
	b.fails("the watch ends", <-w.ended, context.Canceled)
}

func watchNoIntent(b *tested) {
	ctx, stop := context.WithCancel(b.Context())
	calls := 0
	err := b.WatchIntent(ctx, "acme", func(c store.Seen) {
		calls++
		if c != (store.Seen{}) {
			b.Errorf("it sees %+v", c)
		}
		stop()
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		b.Errorf("%d calls, %v", calls, err)
	}
}
