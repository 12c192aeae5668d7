package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOutputOfAnActionInProgress checks that whoever looks at the output of a host sees what its
// action has printed by then, that a host is asked no more often than every two seconds, that one
// that does not answer delays nobody for long, and that a release keeps what was printed.
func TestOutputOfAnActionInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		printed, asked := "", 0
		m.answersAsk = func(host string, a log.Ask) {
			if host != "h01" || a.Kind != report.Output {
				t.Errorf("host %s is asked for %+v", host, a)
			}
			asked++
			if body := printed; body != "" {
				go func() {
					time.Sleep(100 * time.Millisecond)
					must(m.PutReport(context.Background(), "acme", log.Token(host), report.Report{ID: report.ID{Kind: report.Output, Run: r.ID, Part: "upgrade"}, Body: []byte(body)}))
				}()
			}
		}
		shows := func(when, want string, asks int, longest time.Duration) {
			t.Helper()
			begun := time.Now()
			outputs, err := c.Output(t.Context(), r.ID, "h01")
			got := ""
			for _, o := range outputs {
				got += o.Output
			}
			if err != nil || got != want || asked != asks || time.Since(begun) > longest {
				t.Errorf("%s it shows %q after %s and %d requests, %v; want %q, %d requests", when, got, time.Since(begun), asked, err, want, asks)
			}
		}
		shows("from a host that does not answer", "", 1, outputWait)
		printed = "one\n"
		shows("at once again", "", 1, 0)
		m.pass(outputAgain, "h01", "h02")
		shows("later", "one\n", 2, 200*time.Millisecond)
		printed = "one\ntwo\n"
		m.pass(outputAgain, "h01", "h02")
		shows("while the action goes on", "one\ntwo\n", 3, 200*time.Millisecond)
		if _, err := c.Ask(t.Context(), "test", run.Release, v1.Ask{Host: "h01", Reason: "it hangs"}); err != nil {
			t.Fatal(err)
		}
		printed = "one\ntwo\nthree\n"
		m.pass(outputAgain, "h01", "h02")
		shows("after its release", "one\ntwo\nthree\n", 4, 200*time.Millisecond)
		m.answersAsk = nil
		m.reply("h02", r.ID, message.Upgrade)
		m.pass(outputAgain, "h02")
		shows("when the run has ended", "one\ntwo\nthree\n", 4, outputWait)
	})
}
