package store_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOutputs checks that the last output of each action is kept, in the order of the
// actions, apart for each host, run and tenant, and within bounds.
func TestOutputs(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	put := func(tenant, key string, run uint64, action, text string) {
		t.Helper()
		if err := s.PutReport(t.Context(), tenant, key, report.Report{ID: report.ID{Kind: report.Output, Run: run, Part: action}, Body: []byte(text), Cut: text == "cut"}); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(tenant, key string, run uint64, want ...string) {
		t.Helper()
		got := []string{}
		for _, action := range message.OutputActions() {
			o, err := s.Report(t.Context(), tenant, key, report.ID{Kind: report.Output, Run: run, Part: action})
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				t.Error(err)
			}
			text := action + " " + string(o.Body)
			if o.Cut {
				text += ", cut"
			}
			if o.At.IsZero() {
				text += ", of no time"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s has printed %q in run %d; want %q", tenant, key, got, run, want)
		}
	}
	shows("acme", "h01", 7, []string{}...)
	put("acme", "h01", 7, "verify", "cut")
	put("acme", "h01", 7, "prepare", "one")
	put("acme", "h01", 7, "prepare", "two")
	put("acme", "h=2e01", 7, "prepare", "of another host")
	put("acme", "h01", 8, "prepare", "of another run")
	put("other", "h01", 7, "prepare", "of another tenant")
	shows("acme", "h01", 7, "prepare two", "verify cut, cut")
	shows("acme", "h=2e01", 7, "prepare of another host")
	shows("acme", "h01", 8, "prepare of another run")
	shows("other", "h01", 7, "prepare of another tenant")
	publish(t, nc, &nats.Msg{Subject: "osu-output.acme.9.h01.prepare", Header: nats.Header{"Osu-Format": {"1"}}, Data: []byte("no gzip")})
	if _, err := s.Report(t.Context(), "acme", "h01", report.ID{Kind: report.Output, Run: 9, Part: "prepare"}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("what is damaged is read with %v", err)
	}
	put("acme", "h01", 9, "prepare", "mended")
	shows("acme", "h01", 9, "prepare mended")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "osu-output-acme")
	if err != nil {
		t.Fatal(err)
	}
	c, before := stream.CachedInfo().Config, stream.CachedInfo().State.LastSeq
	put("acme", "h01", 9, "prepare", "mended")
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := info.State.LastSeq
	if n := stream.CachedInfo().State.Msgs; n != 5 || last != before || c.MaxBytes != 256<<20 || c.MaxMsgs != 100_000 || c.MaxMsgsPerSubject != 1 || c.Discard != jetstream.DiscardOld {
		t.Errorf("%d outputs are kept, %d after what was there already was put again, within %+v", n, last-before, c)
	}
}

// TestPlans checks that the last plan of a host in a run is kept, apart for each host and
// run, beside its outputs, and that one which is damaged is named.
func TestPlans(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	put := func(key string, run uint64, to string) {
		t.Helper()
		packed, err := message.PackPlan(message.ChangeSet{
			Changes: []message.Change{{Name: "kernel", From: "6.1.0", To: to}}, Held: []message.HeldPackage{{Name: "libc6", Version: "2", Offered: "3", Reason: "held"}},
			Download: 7, Reboot: "the kernel changes",
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PutReport(t.Context(), "acme", key, report.Report{ID: report.ID{Kind: report.Plan, Run: run}, Body: packed}); err != nil {
			t.Fatal(err)
		}
	}
	put("h01", 7, "6.1.1")
	put("h01", 7, "6.1.2")
	put("h01", 8, "6.1.3")
	put("h02", 7, "6.1.4")
	read := func(key string, run uint64) (v1.HostPlan, error) {
		kept, err := s.Report(t.Context(), "acme", key, report.ID{Kind: report.Plan, Run: run})
		if err != nil {
			return v1.HostPlan{}, err
		}
		return kept.HostPlan()
	}
	got, err := read("h01", 7)
	want := v1.HostPlan{
		At: got.At, Changes: []v1.VersionChange{{Package: "kernel", From: "6.1.0", To: "6.1.2"}}, Held: []v1.HeldPackage{{Package: "libc6", Version: "2", Offered: "3", Reason: "held"}},
		DownloadBytes: 7, Reboot: "the kernel changes",
	}
	if err != nil || got.At.IsZero() || !reflect.DeepEqual(got, want) {
		t.Errorf("the plan is %+v, %v", got, err)
	}
	if _, err := read("h02", 8); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a plan that was never told: %v", err)
	}
	for _, action := range message.OutputActions() {
		if kept, err := s.Report(t.Context(), "acme", "h01", report.ID{Kind: report.Output, Run: 7, Part: action}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a plan is the output of %s: %v, %v", action, kept, err)
		}
	}
	publish(t, nc, &nats.Msg{Subject: "osu-output.acme.9.h01.plan", Header: nats.Header{"Osu-Format": {"1"}}, Data: []byte("no gzip")})
	if _, err := read("h01", 9); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("what is damaged is read with %v", err)
	}
	publish(t, nc, &nats.Msg{Subject: "osu-output.acme.10.h01.plan", Header: nats.Header{"Osu-Format": {"9"}}, Data: []byte("x")})
	if _, err := read("h01", 10); !format.IsUnsupported(err) {
		t.Errorf("a newer plan is read with %v", err)
	}
}
