package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The cases of what is kept besides the intent: hosts, ended runs, news and leases.

// names lists the hosts of a tenant.
func (b *tested) names(tenant string) string {
	b.Helper()
	all, err := b.Hosts(b.Context(), tenant)
	if err != nil {
		b.Fatal(err)
	}
	var found []string
	for _, h := range all {
		found = append(found, h.Name+"="+h.Role+h.Labels["ring"])
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func hosts(b *tested) {
	put := func(tenant, name, role string) {
		b.Helper()
		h := store.Host{Tenant: tenant, Name: name, Application: "app", Role: role, Labels: map[string]string{"ring": "0"}}
		if err := b.PutHost(b.Context(), name, h); err != nil {
			b.Fatal(err)
		}
	}
	put("acme", "h01", "db")
	put("acme", "h02", "web")
	put("other", "h01", "db")
	put("acme", "h02", "proxy")
	for _, want := range []string{"h01=db0 h02=proxy0", "h02=proxy0", "h02=proxy0"} {
		if got := b.names("acme"); got != want {
			b.Errorf("the hosts are %q, not %q", got, want)
		}
		if err := b.DeleteHost(b.Context(), "acme", "h01"); err != nil { // The last time it is gone already.
			b.Fatal(err)
		}
	}
	put("acme", "h01", "new")
	if got := b.names("acme") + ", " + b.names("other"); got != "h01=new0 h02=proxy0, h01=db0" {
		b.Errorf("the hosts are %q", got)
	}
}

// lastRuns checks that hosts are returned with their last runs, and that what was written
// of a host after these counts alone.
func lastRuns(b *tested) {
	ran := func(id uint64, status string) v1.HostRun {
		at := time.Date(2026, 11, 21, 4, 0, int(id), 0, time.UTC)
		return v1.HostRun{ID: id, Phase: "finished", Result: "partial", Status: status, EndedAt: &at}
	}
	missed := time.Date(2026, 11, 20, 4, 0, 0, 0, time.UTC)
	put := func(name string, last v1.HostRun) {
		b.Helper()
		if err := b.PutHost(b.Context(), name, store.Host{Tenant: "acme", Name: name, Application: "app", LastRun: last}); err != nil {
			b.Fatal(err)
		}
	}
	shows := func(want ...string) {
		b.Helper()
		all, err := b.Hosts(b.Context(), "acme")
		if err != nil {
			b.Fatal(err)
		}
		var got []string
		for _, h := range all {
			text := fmt.Sprintf("%s %d %s", h.Name, h.LastRun.ID, h.LastRun.Status)
			if h.LastRun.EndedAt != nil && h.LastRun.EndedAt.Second() != int(h.LastRun.ID) {
				text += ", ended at " + h.LastRun.EndedAt.String()
			}
			if !h.MissedSince.IsZero() {
				text += ", missed since " + h.MissedSince.Format(time.DateOnly)
			}
			if !h.Release.IsZero() {
				text += fmt.Sprintf(", %s after %s", h.Release, h.Was)
			}
			if h.ChangedBy != 0 {
				text += fmt.Sprintf(", changed by run %d", h.ChangedBy)
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			b.Errorf("the hosts are %q, not %q", got, want)
		}
	}
	put("h01", v1.HostRun{})
	put("h02", ran(5, "failed"))
	put("h03", ran(9, "upgraded"))
	all := store.LastRuns([]store.Host{
		{Name: "h01", LastRun: ran(7, "upgraded"), Release: release.Ref{Name: "spring", Digest: "2"}, Was: release.Ref{Name: "winter", Digest: "1"}},
		{Name: "h02", LastRun: ran(7, "failed"), MissedSince: missed, ChangedBy: 5},
		{Name: "h03", LastRun: ran(7, "upgraded")},
		{Name: "h04"},
		{Name: "gone", LastRun: ran(7, "upgraded")},
	})
	if len(all) != 3 || len(all[0].Hosts) != 1 || len(all[2].Hosts) != 2 {
		b.Errorf("the last runs are %+v", all)
	}
	if err := b.PutLastRuns(b.Context(), "acme", all); err != nil {
		b.Fatal(err)
	}
	shows("h01 7 upgraded, spring 2 after winter 1", "h02 7 failed, missed since 2026-11-20, changed by run 5", "h03 9 upgraded")
	if err := b.DeleteHost(b.Context(), "acme", "h01"); err != nil {
		b.Fatal(err)
	}
	put("h01", v1.HostRun{})
	put("h02", ran(8, "upgraded"))
	shows("h01 0 ", "h02 8 upgraded", "h03 9 upgraded")
	if got := b.names("other"); got != "" {
		b.Errorf("another tenant has %q", got)
	}
}

func endedRun(id uint64) v1.Run {
	at := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	return v1.Run{
		ID: id, Phase: "finished", Result: "completed", Trigger: "window", OpenedAt: at, NotAfter: at.Add(time.Hour),
		Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}}, Events: []v1.RunEvent{{At: at, Event: "opened"}},
		Pinned: &v1.PinnedRun{Rollout: rollout.Default(1), Outputs: []v1.StepOutputs{{Stage: "backup", Names: []string{"ID"}, Sealed: "x"}}},
	}
}

// keep keeps a run, which must succeed.
func (b *tested) keep(r v1.Run, asOf uint64) {
	b.Helper()
	if err := b.PutRun(b.Context(), "acme", r, asOf); err != nil {
		b.Fatal(err)
	}
}

// keeps checks what is kept of a run.
func (b *tested) keeps(want v1.Run) {
	b.Helper()
	got, err := b.Store.Run(b.Context(), "acme", want.ID)
	if err != nil || !reflect.DeepEqual(got.Pinned, want.Pinned) {
		b.Errorf("a rollback of run %d would go by %+v, %v", want.ID, got.Pinned, err)
	}
	got.Pinned, want.Pinned = nil, nil
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		b.Errorf("run %d is %+v", want.ID, got)
	}
}

// list returns the ids and results of the runs that are listed, at most so many.
func (b *tested) list(tenant string, most int) (found []string) {
	b.Helper()
	err := b.Runs(b.Context(), tenant, func(r v1.Run) bool {
		if len(r.Hosts) > 0 || len(r.Events) > 0 {
			b.Errorf("the list has %+v", r)
		}
		found = append(found, fmt.Sprint(r.ID, " ", r.Result))
		return len(found) < most
	})
	if err != nil {
		b.Error(err)
	}
	return found
}

func history(b *tested) {
	_, err := b.Store.Run(b.Context(), "acme", 7)
	b.fails("a run that is not there", err, store.ErrNotFound)
	for _, id := range []uint64{7, 12, 30} {
		b.keep(endedRun(id), id+5)
	}
	changed := endedRun(12)
	changed.Result = "failed"
	b.keep(changed, 17)
	b.keeps(endedRun(12))
	got := fmt.Sprint(b.list("acme", 10), b.list("acme", 2), b.list("other", 10))
	if want := "[30 completed 12 completed 7 completed] [30 completed 12 completed] []"; got != want {
		b.Errorf("the runs are %s; want %s", got, want)
	}
	// A run that is kept anew comes twice, as it is now first.
	b.keep(changed, 18)
	if got, want := fmt.Sprint(b.list("acme", 10)), "[12 failed 30 completed 12 completed 7 completed]"; got != want {
		b.Errorf("the runs are %s; want %s", got, want)
	}
}

func changesAfterTheEnd(b *tested) {
	lost, answered, freed := endedRun(7), endedRun(7), endedRun(7)
	lost.Hosts[0].Slot, lost.Hosts[0].SlotReason = &lost.OpenedAt, "it has not answered upgrade"
	answered.Hosts[0].Slot, answered.Hosts[0].Error = &lost.OpenedAt, "its late answer to upgrade was: done"
	freed.Events = append(freed.Events, v1.RunEvent{Event: "released", By: "ann"})
	for _, c := range []struct {
		put   v1.Run
		asOf  uint64
		keeps v1.Run
	}{
		{lost, 20, lost},
		{answered, 21, answered},
		{lost, 20, answered},
		{freed, 30, freed},
		{answered, 21, freed},
		{lost, 30, freed},
	} {
		b.keep(c.put, c.asOf)
		b.keeps(c.keeps)
	}
}

func news(b *tested) {
	put := func(id string, asOf uint64) uint64 {
		b.Helper()
		number, err := b.PutNews(b.Context(), "acme", v1.News{ID: id, Type: v1.NewsRunOpened}, asOf)
		if err != nil {
			b.Fatal(err)
		}
		return number
	}
	if first, again, second := put("msg_a", 4), put("msg_a", 9), put("msg_b", 5); first != 1 || again != 1 || second != 2 {
		b.Errorf("the numbers are %d, %d and %d", first, again, second)
	}
	all, err := b.News(b.Context(), "acme")
	if err != nil || len(all) != 2 || all[0].ID != "msg_a" || all[0].AsOf != 4 || all[0].Number != 1 || all[1].Number != 2 {
		b.Errorf("kept are %+v, %v", all, err)
	}
	if others, err := b.News(b.Context(), "other"); len(others) != 0 || err != nil {
		b.Errorf("the other tenant has %+v, %v", others, err)
	}
	for i := range v1.MaxNews {
		put(fmt.Sprint("msg_", i), 10)
	}
	all, err = b.News(b.Context(), "acme")
	if err != nil || len(all) != v1.MaxNews || all[0].ID != "msg_0" || all[0].Number != 3 {
		b.Errorf("after %d more, %d are kept from %q, %v", v1.MaxNews, len(all), all[0].ID, err)
	}
}

func leases(b *tested) {
	ctx := b.Context()
	var base uint64
	for _, holder := range []string{"one", "two"} {
		if body, revision, err := b.Lease(ctx, "acme", "h01"); err != nil || revision != base || (body == nil) != (base == 0) {
			b.Fatalf("before %s the lease is %s in revision %d, %v", holder, body, revision, err)
		}
		lease := []byte(`{"worker":"` + holder + `"}`)
		revision, err := b.PutLease(ctx, "acme", "h01", lease, base)
		if err != nil || revision <= base {
			b.Fatalf("the lease goes to %s in revision %d, %v", holder, revision, err)
		}
		_, err = b.PutLease(ctx, "acme", "h01", []byte(`{"worker":"late"}`), base)
		b.fails(fmt.Sprint("a lease that is granted again after revision ", base), err, store.ErrConflict)
		if body, read, err := b.Lease(ctx, "acme", "h01"); err != nil || read != revision || string(body) != string(lease) {
			b.Errorf("the lease reads as %s in revision %d, %v", body, read, err)
		}
		base = revision
	}
	if body, revision, err := b.Lease(ctx, "other", "h01"); err != nil || body != nil || revision != 0 {
		b.Errorf("the host of the same name has lease %s in revision %d, %v", body, revision, err)
	}
	if err := b.DeleteHost(ctx, "acme", "h01"); err != nil {
		b.Fatal(err)
	}
	body, deleted, err := b.Lease(ctx, "acme", "h01")
	if err != nil || body != nil || deleted <= base {
		b.Fatalf("the lease of a deleted host is %s in revision %d, %v", body, deleted, err)
	}
	_, err = b.PutLease(ctx, "acme", "h01", []byte(`{"worker":"new"}`), 0)
	b.fails("a lease that is granted as if there never was one", err, store.ErrConflict)
	if _, err := b.PutLease(ctx, "acme", "h01", []byte(`{"worker":"new"}`), deleted); err != nil {
		b.Errorf("it cannot be granted anew: %v", err)
	}
}

func watchLeases(b *tested) {
	ctx, stop := context.WithTimeout(b.Context(), patience)
	defer stop()
	grant := func(tenant, host string) {
		if _, err := b.PutLease(ctx, tenant, host, []byte(tenant), 0); err != nil {
			b.Fatal(err)
		}
	}
	grant("acme", "h01")
	grant("other", "h02")
	var got []string
	err := b.WatchLeases(ctx, "acme", func(key string, body []byte, revision uint64) {
		got = append(got, fmt.Sprintf("%s=%s", key, body))
		switch key + string(body) {
		case "":
			grant("acme", "h03")
		case "h03acme":
			if err := b.DeleteHost(ctx, "acme", "h01"); err != nil {
				b.Error(err)
			}
		case "h01":
			stop()
		}
		if (revision == 0) != (key == "") {
			b.Errorf("it sees %s in revision %d", key, revision)
		}
	})
	if want := "h01=acme = h03=acme h01="; strings.Join(got, " ") != want || !errors.Is(err, context.Canceled) {
		b.Errorf("it sees %q and ends with %v; want %q", got, err, want)
	}
}
