package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOffers checks that one offer of each host is kept, the last, that those of a tenant are
// listed by their summaries, and that an offer goes with its host.
func TestOffers(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	put := func(tenant, key, to, reboot string) (packed []byte) {
		t.Helper()
		packed, err := message.PackPlan(message.ChangeSet{
			Changes: []message.Change{{Name: "kernel", From: "6.1.0", To: to}, {Name: "nginx", To: "1"}}, Held: []message.HeldPackage{{Name: "libc6", Reason: "held"}}, Download: 7, Reboot: reboot,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PutReport(ctx, tenant, key, report.Offer.Of(packed)); err != nil {
			t.Fatal(err)
		}
		return packed
	}
	list := func(tenant string) map[string]v1.OfferSummary {
		t.Helper()
		found, err := s.Summaries(ctx, tenant, report.Offer)
		if err != nil {
			t.Fatal(err)
		}
		offers := map[string]v1.OfferSummary{}
		for key, kept := range found {
			summary := v1.OfferSummary{At: &kept.At}
			if err := json.Unmarshal([]byte(kept.JSON), &summary); err != nil {
				t.Error(err)
			}
			offers[key] = summary
		}
		return offers
	}
	id := report.ID{Kind: report.Offer}
	if n := len(list("acme")); n != 0 {
		t.Errorf("%d offers in an empty store", n)
	}
	put("acme", "h01", "6.1.1", "")
	last := put("acme", "h01", "6.1.2", "the kernel changes")
	put("acme", "h=2e2", "6.1.3", strings.Repeat("long,", 100))
	put("acme-2", "h01", "6.1.4", "")

	kept, err := s.Report(ctx, "acme", "h01", id)
	at := kept.At
	if err != nil || string(kept.Body) != string(last) || at.IsZero() {
		t.Errorf("the offer is of %d bytes, at %s, %v", len(kept.Body), at, err)
	}
	plan, err := kept.HostPlan()
	want := v1.HostPlan{
		At: at, Changes: []v1.VersionChange{{Package: "kernel", From: "6.1.0", To: "6.1.2"}, {Package: "nginx", To: "1"}}, Held: []v1.HeldPackage{{Package: "libc6", Reason: "held"}},
		DownloadBytes: 7, Reboot: "the kernel changes",
	}
	if err != nil || !reflect.DeepEqual(plan, want) {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	all := list("acme")
	if got := all["h01"]; len(all) != 2 || got.At == nil || !got.At.Equal(at) || got.Changes != 2 || got.Held != 1 || got.DownloadBytes != 7 || got.Reboot != "the kernel changes" {
		t.Errorf("the summaries are %+v", all)
	}
	if got := all["h=2e2"].Reboot; len(got) != 200 || !strings.HasSuffix(got, "...") {
		t.Errorf("a long reason is %q", got)
	}

	if err := s.DeleteHost(ctx, "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	if kept, err := s.Report(ctx, "acme", "h01", id); !errors.Is(err, store.ErrNotFound) || kept.Body != nil {
		t.Errorf("after its host an offer of %d bytes is kept, %v", len(kept.Body), err)
	}
	if all := list("acme"); len(all) != 1 || len(list("acme-2")) != 1 {
		t.Errorf("after one host there are %+v", all)
	}
	put("acme", "h01", "6.1.5", "")
	if n := len(list("acme")); n != 2 {
		t.Errorf("a host that comes back has its offer among %d", n)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Summaries(ended, "acme", report.Offer); !errors.Is(err, context.Canceled) {
		t.Errorf("who asks no more is answered %v", err)
	}
}

// TestDamagedOffers checks that offers which cannot be read are named, and are in no list.
func TestDamagedOffers(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	ctx := t.Context()
	for key, header := range map[string]nats.Header{
		"newer": {format.Header: {"9"}, "Osu-Summary": {`{"changes":1}`}}, "damaged": {format.Header: {"1"}, "Osu-Summary": {`{"changes":`}},
	} {
		publish(t, nc, &nats.Msg{Subject: "$KV.osu-offers.acme." + key, Header: header, Data: []byte("x")})
	}
	if got, err := s.Summaries(ctx, "acme", report.Offer); err != nil || len(got) != 0 {
		t.Errorf("with entries that cannot be read there are %+v, %v", got, err)
	}
	if _, err := s.Report(ctx, "acme", "newer", report.ID{Kind: report.Offer}); !format.IsUnsupported(err) {
		t.Errorf("a newer offer is read with %v", err)
	}
	damaged, err := s.Report(ctx, "acme", "damaged", report.ID{Kind: report.Offer})
	if err == nil {
		_, err = damaged.HostPlan()
	}
	if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a damaged offer is read with %v", err)
	}
	if err := s.PutReport(ctx, "acme", "newer", report.Offer.Of([]byte("x"))); !format.IsUnsupported(err) {
		t.Errorf("an offer in place of a newer one: %v", err)
	}
	if err := s.PutReport(ctx, "acme", "h01", report.Offer.Of([]byte("no gzip"))); err == nil {
		t.Error("an offer that is no plan is kept")
	}
}
