package run

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// FuzzFold reads each line as a record of the log that anybody may have
// written - "kind run host action body", of a prepare its environment in place of the host - or
// as time that passes - "wait 30s".
// Nothing panics, a controller that goes by it never sends a host a command
// twice, nor one after not-after, nor anything that changes nothing, and each
// run ends.
func FuzzFold(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 8<<10 || strings.Count(text, "\n") > 60 {
			t.Skip("longer than is worth the while")
		}
		p := newPlayer(t)
		p.sideBySide = true
		p.watch = (&tally{t: t, p: p, sent: map[string]bool{}}).see
		for line := range strings.Lines(text) {
			p.stopped = strings.HasPrefix(line, " ")
			p.fuzzLine(strings.TrimSpace(line))
			p.drive()
			p.refold()
		}
		p.stopped = false
		p.toTheEnd(p.drive)
		p.refold()
	})
}

// fuzzLine folds one line. A line that is none is passed over.
func (p *player) fuzzLine(line string) {
	words := strings.SplitN(line, " ", 5)
	if d, err := time.ParseDuration(words[len(words)-1]); words[0] == "wait" && err == nil && d > 0 && d < 100*time.Hour {
		p.now = p.now.Add(d)
		return
	}
	if len(words) < 5 {
		return
	}
	kind, _ := strconv.Atoi(words[0])
	run, _ := strconv.ParseUint(words[1], 10, 64)
	r := message.Record{Kind: message.Kind(kind), Run: run, Host: words[2], Action: message.Action(words[3]), Body: []byte(words[4])}
	if r.Kind == message.CommandAll && r.Host != "-" {
		r.Environment = r.Host
	}
	_ = p.fold(r)
}

// tally counts the commands of each run.
type tally struct {
	t    fataler
	p    *player
	sent map[string]bool
}

func (y *tally) see(r message.Record, folded error) {
	c, err := message.DecodeCommand(r.Body)
	if folded != nil || err != nil || r.Kind == message.EventRecord || r.Kind == message.ReplyRecord || c.Action == message.Prepare {
		return
	}
	key := fmt.Sprintf("%d %s %s", y.p.ledger.Last().Newest().OpenedSeq, c.Host, c.Action)
	if y.sent[key] {
		y.t.Fatalf("invariant 2: %s counted twice", key)
	}
	y.sent[key] = true
}

const fuzzOpen = `3 0 - - {"event":"opened","trigger":"window","members":["a","b","c"],"roster":[{"host":"c","silent":true}],"not-after":"2026-11-21T05:00:00Z","policy":` +
	`{"stages":[{"name":"x","size":1,"max-unavailable":1,"soak":"1m"},{"name":"y","size":2,"max-unavailable":2,"approval":true}],` +
	`"max-failures":1,"on-failure":"pause","min-prepared":1,"overrun":"stop","splay":"3s","timeouts":{"prepare":"1h","upgrade":"1h","reboot":"1h"},` +
	`"checks":{"before-host":[{"name":"t","type":"tcp","passes":1,"interval":"1s","timeout":"9s"}],` +
	`"fleet":[{"name":"t","type":"tcp","passes":1,"interval":"1s","timeout":"9s"}]},` +
	`"hooks":{"undrain":{"type":"exec","on":"host","timeout":"9s"}}}}` + "\n"

var fuzzSeeds = []string{
	"", "3 0 - - {}\nwait 1h\n",
	// Two environments, one of which takes hosts over from the other, and is carried.
	fuzzOpen + strings.NewReplacer(`"trigger"`, `"environment":"e","trigger"`, `"a","b","c"`, `"d","e","f"`, `"host":"c"`, `"host":"f"`).Replace(fuzzOpen) +
		"3 1 - - {\"event\":\"aborted\",\"by\":\"x\",\"now\":true}\nwait 1m\n" +
		strings.NewReplacer(`"trigger"`, `"environment":"e","roster-as-of":2,"trigger"`).Replace(fuzzOpen) + "wait 5h\n" +
		strings.NewReplacer(`"trigger"`, `"environment":"e","roster-as-of":2,"trigger"`).Replace(fuzzOpen) + "wait 5h\n" +
		"3 0 - - {\"event\":\"carried\",\"environment\":\"e\",\"run\":1}\n3 0 - - {\"event\":\"carried\",\"run\":4}\n" + fuzzOpen,
	" 1 0 e - {\"action\":\"prepare\",\"hosts\":[\"a\"],\"not-after\":\"2026-11-21T05:00:00Z\"}\n",
	// Sizes of stages whose sum overflows to the number of hosts.
	strings.Replace(fuzzOpen, `"size":1,"max-unavailable":1,"soak":"1m"},`, `"size":9223372036854775807,"max-unavailable":1},`+
		`{"name":"z","size":9223372036854775807,"max-unavailable":1},{"name":"w","size":3,"max-unavailable":1},`, 1),
	"3 0 - - {\"event\":\"opened\",\"trigger\":\"window\",\"members\":[\"a\",\"b\"],\"policy\":{\"stages\":[{\"name\":\"all\",\"size\":2,\"max-unavailable\":1}],\"max-failures\":1,\"on-failure\":\"stop\",\"min-prepared\":2,\"overrun\":\"finish-host\",\"timeouts\":{\"prepare\":\"1h\",\"upgrade\":\"1h\",\"reboot\":\"15m\"}},\"not-after\":\"2026-11-21T05:00:00Z\"}\n" +
		"4 2 a prepare {\"action\":\"prepare\",\"result\":\"done\"}\n4 2 b prepare {\"action\":\"prepare\",\"result\":\"done\"}\n" +
		"4 2 a upgrade {\"action\":\"upgrade\",\"result\":\"reboot-required\"}\n4 2 a reboot {\"action\":\"reboot\",\"result\":\"done\"}\n" +
		" 2 2 b upgrade {\"action\":\"reboot\",\"host\":\"b\"}\n3 0 - - {\"event\":\"aborted\",\"by\":\"x\"}\nwait 5h\n",
	" " + fuzzOpen + " 1 0 - prepare {\"action\":\"prepare\",\"hosts\":[\"a\"],\"not-after\":\"2026-11-21T05:00:00Z\"}\n" +
		"4 2 a prepare {\"action\":\"prepare\",\"result\":\"done\"}\nwait 1h\n3 0 - - {\"event\":\"recovered\",\"hosts\":[\"c\"]}\n",
	fuzzOpen + "4 2 a prepare {\"action\":\"prepare\",\"result\":\"done\"}\n4 2 b prepare {\"action\":\"prepare\",\"result\":\"done\"}\n" +
		"4 2 c prepare {\"action\":\"prepare\",\"result\":\"x\"}\n3 0 - - {\"event\":\"resumed\",\"by\":\"x\"}\nwait 4s\n" +
		"3 0 - - {\"event\":\"ran\",\"outcome\":{\"run\":2,\"kind\":\"fleet\",\"attempt\":2,\"ok\":true}}\n" +
		"3 0 - - {\"event\":\"admitted\",\"host\":\"a\"}\n3 0 - - {\"event\":\"ran\",\"outcome\":{\"run\":2,\"kind\":\"before-host\",\"host\":\"a\",\"attempt\":0,\"ok\":true}}\n" +
		"3 0 - - {\"event\":\"overdue\",\"hosts\":[\"a\"],\"task\":\"drain\"}\n3 0 - - {\"event\":\"silent\",\"hosts\":[\"a\",\"b\"]}\n" +
		"3 0 - - {\"event\":\"approved\",\"stage\":\"y\"}\n3 0 - - {\"event\":\"slot\",\"host\":\"b\"}\nwait 2h\n",
}
