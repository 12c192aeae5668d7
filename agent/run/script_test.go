package run

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// TestScripts plays each scenario of testdata/scripts: a line is an event, the
// lines below it that begin with ">" are what the controller does then, those
// with "=" how the hosts stand, those with "!" records that changed nothing.
//
//	open h01 h02 silent h03   opens a run that ends after four hours
//	recovered heard h03       silent hosts were heard of again, or deleted
//	reply h01 prepare done    a host's reply to the run under way
//	late 41 h01 upgrade done  a host's reply to run 41
//	raw h01 prepare {"a":1}   a reply with any body
//	command {"action":...}    a command that somebody else appended
//	at 2h                     so much time has passed since the start
//	hosts                     prints the hosts
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the transcript differs; got:\n%s", got)
			}
		})
	}
}

var epoch = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)

// player is a controller whose log is a slice.
type player struct {
	t      *testing.T
	log    []message.Record
	ledger Ledger
	now    time.Time
	out    strings.Builder
}

func play(t *testing.T, script string) string {
	t.Helper()
	p := &player{t: t, now: epoch}
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, ">") || strings.HasPrefix(line, "=") || strings.HasPrefix(line, "!") {
			continue
		}
		p.out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p.event(strings.Fields(line), line)
		p.drive()
		p.refold()
	}
	return p.out.String()
}

func (p *player) event(words []string, line string) {
	switch words[0] {
	case "open":
		p.append(message.Record{Kind: message.EventRecord, Body: opening(words[1:]).Encode()})
	case "recovered":
		e := message.Event{Event: message.Recovered, Reason: words[1], Hosts: words[2:]}
		p.append(message.Record{Kind: message.EventRecord, Body: e.Encode()})
	case "reply":
		p.reply(p.ledger.Newest().ID, words[1], words[2], message.Reply{Action: message.Action(words[2]), Result: strings.Join(words[3:], " ")}.Encode())
	case "late":
		var run uint64
		if _, err := fmt.Sscan(words[1], &run); err != nil {
			p.t.Fatal(err)
		}
		p.reply(run, words[2], words[3], message.Reply{Action: message.Action(words[3]), Result: strings.Join(words[4:], " ")}.Encode())
	case "raw":
		_, body, _ := strings.Cut(line, words[2]+" ")
		p.reply(p.ledger.Newest().ID, words[1], words[2], []byte(body))
	case "command":
		_, body, _ := strings.Cut(line, " ")
		p.append(message.Record{Kind: message.CommandHost, Run: p.ledger.Newest().ID, Body: []byte(body)})
	case "at":
		after, err := time.ParseDuration(words[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.now = epoch.Add(after)
	case "hosts":
		for _, h := range p.ledger.Newest().Hosts() {
			fmt.Fprintf(&p.out, "= %s\n", strings.TrimSpace(fmt.Sprintf("%s %s %s", h.Name, h.Status, h.Error)))
		}
	default:
		p.t.Fatalf("unknown event %q", line)
	}
}

// text leaves out what goes without saying: most waits are for a host.
func (w Waiting) text() string {
	if w.What == "host" {
		return w.Detail
	}
	return w.What + ": " + w.Detail
}

func opening(words []string) message.Event {
	end := epoch.Add(4 * time.Hour)
	e := message.Event{Event: message.Opened, Trigger: message.TriggerWindow, NotAfter: &end}
	to := &e.Hosts
	for _, word := range words {
		if word == "silent" {
			to = &e.Silent
			continue
		}
		*to = append(*to, word)
	}
	return e
}

func (p *player) reply(run uint64, host, action string, body []byte) {
	p.append(message.Record{Kind: message.ReplyRecord, Run: run, Host: host, Action: message.Action(action), Body: body})
}

func (p *player) append(r message.Record) {
	r.Seq, r.Time = uint64(len(p.log)+1), p.now
	p.log = append(p.log, r)
	if err := p.ledger.Fold(r); err != nil {
		fmt.Fprintf(&p.out, "! %v\n", err)
	}
}

// drive does what Next says until there is nothing left to do.
func (p *player) drive() {
	for {
		current := p.ledger.Current()
		if current == nil {
			return
		}
		step := current.Next(p.now)
		switch step.Act {
		case Wait:
			if waiting, ok := current.Waiting(); ok {
				fmt.Fprintf(&p.out, "> waits for %s\n", waiting.text())
			}
			return
		case Send:
			fmt.Fprintf(&p.out, "> %s\n", step.Command.Encode())
			kind := message.CommandHost
			if step.Command.Action == message.Prepare {
				kind = message.CommandAll
			}
			p.append(message.Record{Kind: kind, Host: step.Command.Host, Run: current.ID, Body: step.Command.Encode()})
		case Finish:
			fmt.Fprintf(&p.out, "> %s\n", step.Event.Encode())
			p.append(message.Record{Kind: message.EventRecord, Body: step.Event.Encode()})
		}
	}
}

// refold is a controller that was killed here and starts again: it must come
// to the same state (AV-82).
func (p *player) refold() {
	p.t.Helper()
	var again Ledger
	for _, r := range p.log {
		_ = again.Fold(r)
	}
	if !reflect.DeepEqual(again, p.ledger) {
		p.t.Fatalf("a controller that starts after record %d knows something else", len(p.log))
	}
}
