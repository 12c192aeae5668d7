package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// spansOf folds the records of a log and returns the spans that have ended.
func spansOf(log []message.Record) []trace.Span {
	spans, ledger, folded := trace.NewRun("acme", func(trace.Context, trace.ID) bool { return true }), run.Ledger{}, uint64(0)
	var all []trace.Span
	for _, r := range log {
		decoded := r.Decode()
		if err := ledger.Fold(decoded); err != nil || r.Seq <= folded || ledger.Newest() == nil || message.OfNoRun(decoded.Event) {
			continue
		}
		folded = r.Seq
		all = append(all, spans.Record(ledger.Newest(), decoded)...)
	}
	return all
}

// TestSpans shows the spans of some scenarios of testdata/scripts: a line for each, below
// what it is a part of, with when it began and ended.
func TestSpans(t *testing.T) {
	t.Parallel()
	scenarios := run.Scenarios(t)
	for _, name := range []string{
		"three_hosts_one_reboots", "hooks", "stages", "abort_now_in_each_phase", "checks_after_fail", "undrain_after_failure", "no_answer",
		"unanswering_host", "silent_while_checked", "approval", "checks_before", "release_in_each_phase", "clock_set_back", "late_answer_after_the_end", "two_runs",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tree(spansOf(scenarios[name]))
			file := filepath.Join("testdata", "spans", name+".txt")
			if run.Update() {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("the spans differ from %s (%v); got:\n%s", file, err, got)
			}
		})
	}
}

// TestSpansOfAllScenarios checks what must hold of spans on every scenario.
func TestSpansOfAllScenarios(t *testing.T) {
	t.Parallel()
	for name, log := range run.Scenarios(t) {
		if wrong := wrongSpans(log); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

// TestSpanInvariants checks what must hold of spans on random runs.
func TestSpanInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		if wrong := wrongSpans(run.History(rt)); wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// wrongSpans returns what does not hold of the spans of a log: the parent of each comes
// after it, if its run has ended, and encloses it; no two have an id; each run that was
// opened and has ended has one root; and the same records give the same spans, wherever
// they end.
func wrongSpans(log []message.Record) string {
	spans := spansOf(log)
	if again := spansOf(log); !reflect.DeepEqual(spans, again) {
		return "the same records give other spans"
	}
	for _, part := range []int{len(log) / 3, len(log) / 2, len(log) - 1} {
		if before := spansOf(log[:part]); !reflect.DeepEqual(before, spans[:len(before)]) && len(before) > 0 {
			return fmt.Sprintf("the first %d records give other spans", part)
		}
	}
	known, roots := map[trace.SpanID]trace.Span{}, map[trace.ID]bool{}
	for _, s := range slices.Backward(spans) {
		if _, twice := known[s.Span]; twice || !s.Valid() || !s.Sampled {
			return fmt.Sprintf("span %x of %s is there twice, or is none", s.Span, s.Name)
		}
		known[s.Span] = s
		if s.End.Before(s.Start) {
			return fmt.Sprintf("%s ends before it begins", s.Name)
		}
		if s.Parent == (trace.SpanID{}) {
			if s.Name != "run" || roots[s.Trace] {
				return fmt.Sprintf("%s has no parent", s.Name)
			}
			roots[s.Trace] = true
			continue
		}
		parent, ok := known[s.Parent]
		if !ok && !roots[s.Trace] {
			continue // Its run is in progress.
		} else if !ok {
			return fmt.Sprintf("the parent of %s is not there, or ends before it", s.Name)
		}
		if s.Start.Before(parent.Start) || s.End.After(parent.End) || s.Trace != parent.Trace {
			return fmt.Sprintf("%s from %s to %s is not in %s from %s to %s", s.Name, s.Start, s.End, parent.Name, parent.Start, parent.End)
		}
	}
	if finished := finishedRuns(log); len(roots) != finished {
		return fmt.Sprintf("there are %d roots of %d ended runs", len(roots), finished)
	}
	return ""
}

// finishedRuns counts the runs of a log that have ended.
func finishedRuns(log []message.Record) int {
	ledger, ended := run.Ledger{}, map[uint64]bool{}
	for _, r := range log {
		_ = ledger.Fold(r.Decode())
		if newest := ledger.Newest(); newest != nil && newest.Over() {
			ended[newest.OpenedSeq] = true
		}
	}
	return len(ended)
}

// tree shows spans as trees, in the order in which they began.
func tree(spans []trace.Span) string {
	var b strings.Builder
	known := map[trace.SpanID]bool{}
	for _, s := range spans {
		known[s.Span] = true
	}
	var under func(parent trace.SpanID, indent string)
	under = func(parent trace.SpanID, indent string) {
		parts := slices.DeleteFunc(slices.Clone(spans), func(s trace.Span) bool {
			return s.Parent != parent && (parent != trace.SpanID{} || known[s.Parent])
		})
		slices.SortStableFunc(parts, func(x, y trace.Span) int { return x.Start.Compare(y.Start) })
		for _, s := range parts {
			fmt.Fprintf(&b, "%s%s %s - %s%s\n", indent, s.Name, since(spans, s.Start), since(spans, s.End), said(s))
			for _, e := range s.Events {
				fmt.Fprintf(&b, "%s  * %s %s%s\n", indent, e.Name, since(spans, e.At), attributes(e.Attributes))
			}
			under(s.Span, indent+"  ")
		}
	}
	under(trace.SpanID{}, "")
	return b.String()
}

func since(spans []trace.Span, at time.Time) time.Duration {
	first := slices.MinFunc(spans, func(x, y trace.Span) int { return x.Start.Compare(y.Start) })
	return at.Sub(first.Start)
}

func said(s trace.Span) string {
	text := attributes(s.Attributes)
	if s.Failed {
		text += " FAILED " + s.Status
	}
	return strings.TrimRight(text, " ")
}

func attributes(all []trace.Attribute) (text string) {
	for _, a := range all {
		key := strings.TrimPrefix(a.Key, "osupgrade.")
		switch {
		case a.Key == trace.TenantKey || a.Key == trace.RunKey:
		case !a.IsNumber:
			text += " " + key + "=" + a.Text
		default:
			text += fmt.Sprintf(" %s=%d", key, a.Number)
		}
	}
	return text
}
