package controller

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	memlog "github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestHostsKnowMore checks that a site whose log lacks what a host knows of it sends no
// command, says which host, and writes down how far that one knows the log.
func TestHostsKnowMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen func(upgrade message.Record) message.Position
		want string
	}{
		"its newest command": {func(u message.Record) message.Position {
			return message.Position{Log: "memory", Seq: u.Seq, At: u.Time, Action: message.Upgrade}
		}, ""},
		"another log": {func(message.Record) message.Position {
			return message.Position{Log: "of before", Seq: 900, Action: message.Upgrade}
		}, ""},
		"a later command": {func(message.Record) message.Position {
			return message.Position{Log: "memory", Seq: 900, Action: message.Upgrade}
		}, "host h01 knows record 900"},
		"a reply": {func(u message.Record) message.Position {
			return message.Position{Log: "memory", Seq: u.Seq, At: u.Time, Action: message.Upgrade, Answered: true}
		}, "host h01 has replied to command"},
		"another command": {func(u message.Record) message.Position {
			return message.Position{Log: "memory", Seq: u.Seq, At: u.Time.Add(time.Second), Action: message.Upgrade}
		}, "host h01 knows record"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02")
				m.rollout = lenient()
				c2, r := m.begun(t, "h01", "h02")
				all := m.log.All()
				upgrade := all[len(all)-1]
				if upgrade.Kind != message.CommandHost {
					t.Fatalf("the log ends with %s", upgrade.Body)
				}
				seen := c.seen(upgrade)
				m.Alive("h01", message.Alive{Application: "app", Seen: &seen})
				synctest.Wait()
				err := c2.Ready(t.Context())
				if c.want == "" {
					if err != nil {
						t.Errorf("the site is not ready: %v", err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "osupgrade-agent recover") {
					t.Fatalf("the site says %v", err)
				}
				before := m.size()
				m.reply("h01", r.ID, message.Upgrade)
				m.beat("h01", "h02")
				if m.size() != before+1 {
					t.Errorf("the site goes on with %s", m.last())
				}
				kept, err := guard.OpenFile(filepath.Join(m.folder, "guard.json"))
				if err != nil || kept.State("acme").Told != seen.Seq {
					t.Errorf("the guard was told of record %d, %v", kept.State("acme").Told, err)
				}
			})
		})
	}
}

// TestPositionAheadOfTheFold checks that a host that knows a record before the
// controller has folded it is no sign of a lost log.
func TestPositionAheadOfTheFold(t *testing.T) {
	t.Parallel()
	log := memlog.New()
	w := newWitnesses(Options{Log: log})
	if _, err := log.Add(message.Record{Kind: message.CommandAll, Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	record, _ := log.At(1)
	if !w.hear("h01", &message.Position{Log: log.Identity(), Seq: 1, At: record.Time.UTC(), Action: message.Prepare}) {
		t.Fatal("it is no suspect")
	}
	if found, err := w.compare(t.Context(), 0); found || err != nil {
		t.Errorf("before the record is folded the log is judged: %v, %v", found, err)
	}
	w.Fold(record.Decode())
	if found, err := w.compare(t.Context(), 1); found || err != nil || len(w.suspects) != 0 {
		t.Errorf("the log has the record: %v, %v", found, err)
	}
}

// TestBusyElsewhere checks that no host starts while another is at work on a command of the
// log before the site was restored, that the run says so, and that it goes on by itself.
func TestBusyElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02", "h03")
		c, r := m.begun(t, "h01", "h02", "h03")
		seen := message.Position{Log: "of before", Seq: 900, Action: message.Upgrade, Busy: true}
		m.Alive("h03", message.Alive{Application: "app", Seen: &seen})
		synctest.Wait()
		m.reply("h01", r.ID, message.Upgrade)
		synctest.Wait()
		if n := len(m.upgrades()); n != 1 {
			t.Errorf("%d hosts are upgraded while h03 is at work", n)
		}
		view, err := c.Find(t.Context(), r.ID)
		if err != nil || !strings.Contains(view.Paused, "at work on commands from before the site was restored: h03") {
			t.Errorf("the run says %q, %v", view.Paused, err)
		}
		seen.Busy = false
		m.Alive("h03", message.Alive{Application: "app", Seen: &seen})
		synctest.Wait()
		if n := len(m.upgrades()); n != 2 {
			t.Errorf("the run does not go on: %s", m.last())
		}
	})
}
