package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// The cases of what hosts report.

var versions = report.ID{Kind: report.Versions}

// report keeps a report, which must succeed.
func (b *tested) report(tenant, key string, r report.Report) {
	b.Helper()
	if err := b.PutReport(b.Context(), tenant, key, r); err != nil {
		b.Fatal(err)
	}
}

// number is that of the last change of the versions of the hosts of tenant acme.
func (b *tested) number() uint64 {
	b.Helper()
	n, err := b.ReportsNumber(b.Context(), "acme", report.Versions)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func reports(b *tested) {
	ctx := b.Context()
	_, err := b.Report(ctx, "acme", "h01", versions)
	b.fails("before the first report", err, store.ErrNotFound)
	if n := b.number(); n != 0 {
		b.Errorf("before the first report the number is %d", n)
	}
	b.report("acme", "h01", report.Versions.Of([]byte(`{"kernel":"6.0"}`)))
	first := b.number()
	b.report("acme", "h01", report.Versions.Of([]byte(`{"kernel":"6.0"}`)))
	b.report("other", "h01", report.Versions.Of([]byte(`{"kernel":"5.0"}`)))
	if n := b.number(); n != first || first == 0 {
		b.Errorf("the number went from %d to %d though nothing has changed", first, n)
	}
	b.report("acme", "h01", report.Versions.Of([]byte(`{"kernel":"6.1"}`)))
	kept, err := b.Report(ctx, "acme", "h01", versions)
	if err != nil || string(kept.Body) != `{"kernel":"6.1"}` || kept.At.IsZero() || len(kept.History) != 2 || len(kept.History[0].Changes) != 1 || kept.History[0].Changes[0].From != "6.0" {
		b.Errorf("kept is %s with %+v, %v", kept.Body, kept.History, err)
	}
	packed := plan(b)
	b.report("acme", "h01", report.Offer.Of(packed))
	summaries, err := b.Summaries(ctx, "acme", report.Offer)
	if err != nil || len(summaries) != 1 || !strings.Contains(summaries["h01"].JSON, `"changes":1`) || summaries["h01"].At.IsZero() {
		b.Errorf("the summaries are %+v, %v", summaries, err)
	}
	all, err := b.Reports(ctx, "acme", report.Offer)
	if err != nil || len(all) != 1 || string(all["h01"].Body) != string(packed) {
		b.Errorf("there are %d offers, %v", len(all), err)
	}
	second := b.number()
	if err := b.DeleteHost(ctx, "acme", "h01"); err != nil {
		b.Fatal(err)
	}
	for _, kind := range report.OfHosts() {
		_, err := b.Report(ctx, "acme", "h01", report.ID{Kind: kind})
		b.fails("the "+kind.Name+" of a host that is gone", err, store.ErrNotFound)
	}
	if summaries, err := b.Summaries(ctx, "acme", report.Offer); err != nil || len(summaries) != 0 {
		b.Errorf("of a host that is gone there are the summaries %+v, %v", summaries, err)
	}
	if n := b.number(); n <= second {
		b.Errorf("the number went from %d to %d with a deletion", second, n)
	}
	if kept, err := b.Report(ctx, "other", "h01", versions); err != nil || string(kept.Body) != `{"kernel":"5.0"}` {
		b.Errorf("the host of the same name has %s, %v", kept.Body, err)
	}
	b.report("acme", "h01", report.Versions.Of([]byte(`{"kernel":"7.0"}`)))
	if kept, err := b.Report(ctx, "acme", "h01", versions); err != nil || len(kept.History) != 1 {
		b.Errorf("a host that came back has the history %+v, %v", kept.History, err)
	}
}

func plan(b *tested) []byte {
	b.Helper()
	packed, err := message.PackPlan(message.ChangeSet{Changes: []message.Change{{Name: "kernel", From: "6.0", To: "6.1"}}})
	if err != nil {
		b.Fatal(err)
	}
	return packed
}

func reportsOfRuns(b *tested) {
	output := func(run uint64, part string) report.ID {
		return report.ID{Kind: report.Output, Run: run, Part: part}
	}
	printed := func(id report.ID, cut bool, text string) {
		b.Helper()
		b.report("acme", "h01", report.Report{ID: id, Cut: cut, Body: []byte(text)})
	}
	printed(output(7, "prepare"), false, "one")
	printed(output(7, "upgrade"), false, "two")
	printed(output(8, "prepare"), false, "three")
	printed(output(7, "upgrade"), true, "the end")
	b.report("acme", "h01", report.Report{ID: report.ID{Kind: report.Plan, Run: 7}, Body: plan(b)})
	if err := b.DeleteHost(b.Context(), "acme", "h01"); err != nil { // What runs have done stays.
		b.Fatal(err)
	}
	for id, want := range map[report.ID]string{
		output(7, "prepare"): "one false", output(7, "upgrade"): "the end true", output(8, "prepare"): "three false", {Kind: report.Plan, Run: 7}: string(plan(b)) + " false",
	} {
		if kept, err := b.Report(b.Context(), "acme", "h01", id); err != nil || fmt.Sprintf("%s %v", kept.Body, kept.Cut) != want {
			b.Errorf("the %s is %q, %v, %v; want %q", id, kept.Body, kept.Cut, err, want)
		}
	}
	for _, id := range []report.ID{output(9, "prepare"), output(8, "upgrade"), {Kind: report.Plan, Run: 8}} {
		_, err := b.Report(b.Context(), "acme", "h01", id)
		b.fails("the "+id.String(), err, store.ErrNotFound)
	}
}

func watchReports(b *tested) {
	ctx, stop := context.WithTimeout(b.Context(), patience)
	defer stop()
	b.report("acme", "h01", report.Versions.Of([]byte(`{"a":"1"}`)))
	b.report("other", "h02", report.Versions.Of([]byte(`{"a":"1"}`)))
	var got []string
	err := b.WatchReports(ctx, "acme", report.Versions, func(r store.Reported) {
		got = append(got, fmt.Sprintf("%s=%s", r.Key, r.Body))
		if r.Err != nil || r.At.IsZero() != (r.Key == "") || (r.Number == 0) != (r.Key == "") {
			b.Errorf("it sees %+v", r)
		}
		switch r.Key + string(r.Body) {
		case "":
			b.report("acme", "h03", report.Versions.Of([]byte(`{"a":"3"}`)))
		case `h03{"a":"3"}`:
			if err := b.DeleteHost(ctx, "acme", "h01"); err != nil {
				b.Error(err)
			}
		case "h01":
			stop()
		}
	})
	if want := `h01={"a":"1"} = h03={"a":"3"} h01=`; strings.Join(got, " ") != want || !errors.Is(err, context.Canceled) {
		b.Errorf("it sees %q and ends with %v; want %q", got, err, want)
	}
}
