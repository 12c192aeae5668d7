package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var versions = report.ID{Kind: report.Versions}

// TestVersionsNumber checks that the number of a tenant's last change moves
// with each of its changes, deletions included, and with no other tenant's.
func TestVersionsNumber(t *testing.T) {
	t.Parallel()
	s := open(t)
	number := func(tenant string) uint64 {
		t.Helper()
		n, err := s.ReportsNumber(t.Context(), tenant, report.Versions)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	put := func(tenant, key, body string) {
		t.Helper()
		if err := s.PutReport(t.Context(), tenant, key, report.Versions.Of([]byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	if n := number("acme"); n != 0 {
		t.Errorf("before the first report the number is %d", n)
	}
	put("acme", "h01", `{"kernel":"1"}`)
	first := number("acme")
	put("acme", "h01", `{"kernel":"1"}`)
	put("other", "h01", `{"kernel":"1"}`)
	if n := number("acme"); n != first || first == 0 {
		t.Errorf("the number went from %d to %d though nothing changed", first, n)
	}
	put("acme", "h02", `{"kernel":"1"}`)
	second := number("acme")
	if second <= first {
		t.Errorf("the number went from %d to %d with a change", first, second)
	}
	if err := s.DeleteHost(t.Context(), "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	if n := number("acme"); n <= second {
		t.Errorf("the number went from %d to %d with a deletion", second, n)
	}
}

// TestReports checks that the last reports of a host are kept with what each has
// changed, that there is a bound to both, and that damage costs the reports alone.
func TestReports(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	put := func(body string) {
		t.Helper()
		if err := s.PutReport(t.Context(), "acme", "h01", report.Versions.Of([]byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	reports := func() []v1.VersionReport {
		t.Helper()
		kept, err := s.Report(t.Context(), "acme", "h01", versions)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return kept.History
	}
	if all := reports(); len(all) != 0 {
		t.Errorf("before the first report there are %+v", all)
	}
	begun := time.Now()
	put(`{"kernel":"1","curl":"7"}`)
	put(`{"kernel":"2","curl":"7"}`)
	put(`{"kernel":"2","curl":"7"}`)
	put(`{"kernel":"2","vim":"9"}`)
	all := reports()
	want := [][]v1.VersionChange{
		{{Package: "curl", From: "7"}, {Package: "vim", To: "9"}}, {{Package: "kernel", From: "1", To: "2"}}, nil,
	}
	if len(all) != len(want) {
		t.Fatalf("the reports are %+v", all)
	}
	for i, changes := range want {
		if r := all[i]; !reflect.DeepEqual(r.Changes, changes) || r.Changed != len(changes) || r.At.Before(begun.Add(-time.Minute)) || r.At.After(time.Now()) {
			t.Errorf("report %d is %+v; want %+v", i, r, changes)
		}
		if i > 0 && !all[i].At.Before(all[i-1].At) {
			t.Errorf("report %d is of %s, and the one after it of %s", i, all[i].At, all[i-1].At)
		}
	}
	for n := range 2 * report.MaxHistory {
		put(fmt.Sprintf(`{"kernel":"3.%d"}`, n))
	}
	if all := reports(); len(all) != report.MaxHistory || all[0].Changes[0].To != "3.39" || all[report.MaxHistory-1].Changes[0].To != "3.20" {
		t.Errorf("of 40 reports there are %d, of %+v to %+v", len(all), all[0], all[len(all)-1])
	}
	many := map[string]string{}
	for n := range message.MaxVersions {
		many[fmt.Sprintf("p%05d", n)] = "1.2.3"
	}
	for range report.MaxHistory {
		put(`{"kernel":"4"}`)
		put(string(message.EncodeVersions(many)))
	}
	if r := reports()[0]; r.Changed != message.MaxVersions+1 || len(r.Changes) < 100 || len(r.Changes) > 2000 {
		t.Errorf("of %d changed packages %d are counted and %d kept", message.MaxVersions+1, r.Changed, len(r.Changes))
	}
	if size := len(last(t, nc, "$KV.osu-versions.acme.h01").Data); size > 400<<10 {
		t.Errorf("the entry of one host has %d bytes, with versions of 200,000", size)
	}
	publish(t, nc, &nats.Msg{Subject: "$KV.osu-versions.acme.h01", Data: []byte("{")})
	if _, err := s.Report(t.Context(), "acme", "h01", versions); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("of an entry that is damaged the reports are read with %v", err)
	}
	put(`{"kernel":"5"}`)
	if all := reports(); len(all) != 1 || all[0].Changed != 0 {
		t.Errorf("after damage the reports are %+v", all)
	}
}

// TestReportsOfTwo checks that of two reports at the same time none is lost from the
// list: the second is refused, for the host to send again.
func TestReportsOfTwo(t *testing.T) {
	t.Parallel()
	s := open(t)
	const writers = 8
	var running sync.WaitGroup
	var kept atomic.Int64
	for n := range writers {
		running.Go(func() {
			for {
				err := s.PutReport(t.Context(), "acme", "h01", report.Versions.Of(fmt.Appendf(nil, `{"kernel":"%d"}`, n)))
				if err == nil {
					kept.Add(1)
					return
				}
				if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	reported, err := s.Report(t.Context(), "acme", "h01", versions)
	all := reported.History
	if err != nil || len(all) != writers || kept.Load() != writers {
		t.Errorf("of %d reports, %d of which were kept, there are %d, %v", writers, kept.Load(), len(all), err)
	}
}
