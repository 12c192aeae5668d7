package controller

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// TestRunIsLogged checks that the log of the site has each run's start, stages, requests
// of operators, failures and end in one line each, at the right level, and once, also
// after a restart.
func TestRunIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		var logged lines
		m.logger = slog.New(slog.NewTextHandler(&logged, nil))
		m.rollout = &v1.Rollout{
			Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}}, {Name: "rest"}}, MaxFailures: "2",
		}
		c, r := m.begun(t, "h01", "h02")
		m.pass(time.Minute, "h01", "h02")
		if _, err := c.Ask(t.Context(), "ann", run.Pause, v1.Ask{Reason: "lunch"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), "ann", run.Resume, v1.Ask{Reason: "back"}); err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Upgrade)
		m.restart(t)
		m.beat("h01", "h02")
		m.mu.Lock()
		m.add(message.Record{
			Kind: message.ReplyRecord, Host: "h02", Run: r.ID, Action: message.Upgrade,
			Body: message.Reply{Action: message.Upgrade, Result: message.ResultOf("no space left")}.Encode(),
		})
		m.mu.Unlock()
		m.pass(time.Minute, "h01", "h02")
		c = m.restart(t)
		if found, err := c.Find(t.Context(), r.ID); err != nil || found.Result != "partial" {
			t.Fatalf("the run ended as %+v, %v", found, err)
		}
		var got []string
		for line := range strings.Lines(logged.text()) {
			if line = regexp.MustCompile(`^time=\S+ `).ReplaceAllString(strings.TrimSpace(line), ""); strings.Contains(line, " run=") {
				got = append(got, line)
			}
		}
		want := `level=INFO msg="run begins" tenant=acme run=2 trigger=manual by=test reason="a test" hosts=2 not-after=2000-01-01T04:00:00.000Z
level=INFO msg="stage begins" tenant=acme run=2 stage=canary hosts=1
level=INFO msg="request accepted: pause" tenant=acme run=2 by=ann reason=lunch
level=INFO msg="request accepted: resume" tenant=acme run=2 by=ann reason=back
level=INFO msg="stage begins" tenant=acme run=2 stage=rest hosts=1
level=WARN msg="host failed" tenant=acme run=2 host=h02 stage=rest error="no space left"
level=WARN msg="run has ended" tenant=acme run=2 result=partial reason="1 of 2 hosts upgraded; failed: h02" took=1m`
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("logged is\n%s\nnot\n%s", text, want)
		}
	})
}
