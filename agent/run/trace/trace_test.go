package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestParse checks which traceparents name a span.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		sent:                                  sent,
		strings.TrimSuffix(sent, "01") + "00": strings.TrimSuffix(sent, "01") + "00",
		strings.TrimSuffix(sent, "01") + "ff": sent,
		"cc" + sent[2:]:                       sent,
		"cc" + sent[2:] + "-what-later":       sent,
		"":                                    "",
		"00":                                  "",
		"ff" + sent[2:]:                       "",
		sent + "-more":                        "",
		"cc" + sent[2:] + "x":                 "",
		sent[:len(sent)-1]:                    "",
		strings.ToUpper(sent):                 "",
		strings.Replace(sent, "-", "_", 1):    "",
		strings.Replace(sent, "a", "g", 1):    "",
		" " + sent:                            "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		strings.Repeat("\xff", 55):                                "",
		strings.Repeat("0", 1<<20):                                "",
	} {
		if got := Parse(text).String(); got != want {
			t.Errorf("%.80q is read as %q, want %q", text, got, want)
		}
	}
}

// FuzzParse checks that what is read is written as it was.
func FuzzParse(f *testing.F) {
	f.Add(sent)
	f.Add("cc" + sent[2:] + "-what-later")
	f.Fuzz(func(t *testing.T, text string) {
		c := Parse(text)
		if again := Parse(c.String()); c.Valid() && again != c {
			t.Errorf("%q is read as %q, and that as %q", text, c, again)
		}
	})
}

// ended returns the spans of a run of one host that was opened with a traceparent and
// aborted, and what the sampler was asked.
func ended(t *testing.T, traceparent string, samples bool) (spans []Span, parent Context) {
	t.Helper()
	follow := NewRun("acme", func(c Context, _ ID) bool { parent = c; return samples })
	ledger, at := run.Ledger{}, time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	for i, e := range []message.Event{
		message.Opened{
			Trigger: message.TriggerManual, Members: []string{"h01"}, NotAfter: at.Add(time.Hour), Traceparent: traceparent,
			Rollout: rollout.Default(1),
		},
		message.Finished{Result: string(run.IsAborted)},
	} {
		r := message.Record{Seq: uint64(i + 1), Time: at, Kind: message.EventRecord, Body: message.EncodeEvent(e)}.Decode()
		if err := ledger.Fold(r); err != nil {
			t.Fatal(err)
		}
		spans = append(spans, follow.Record(ledger.Newest(), r)...)
	}
	return spans, parent
}

// TestParentOfRun checks that a run is part of the trace of the request that opened it, and
// that a damaged traceparent on the log counts as none.
func TestParentOfRun(t *testing.T) {
	t.Parallel()
	caller := Parse(sent)
	spans, asked := ended(t, sent, true)
	if len(spans) != 1 || spans[0].Trace != caller.Trace || spans[0].Parent != caller.Span || !spans[0].Remote || asked != caller {
		t.Errorf("the run that %s opened has the spans %+v", sent, spans)
	}
	without, _ := ended(t, "", true)
	damaged, asked := ended(t, "00-damaged", true)
	if len(damaged) != 1 || !damaged[0].Valid() || damaged[0].Trace != without[0].Trace || damaged[0].Parent != (SpanID{}) || asked.Valid() {
		t.Errorf("the run of a damaged traceparent has the spans %+v", damaged)
	}
	if spans, _ := ended(t, sent, false); len(spans) > 0 {
		t.Errorf("a run that is not to be recorded has the spans %+v", spans)
	}
}
