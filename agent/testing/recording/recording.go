// Package recording keeps the sessions in the README and the guides true: what a session
// shows is what its commands print now, but for what moves.
//
// Tests import it, and nothing of the product does. It decides what moves; how a
// command is executed is up to the test.
package recording

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the sessions of the README and the guides anew")

// moving is what differs from one recording to the next: times, how long something
// takes, boot ids.
var moving = regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d [\d:]+ UTC|\d{4}-\d\d-\d\d[T ][\d:]+Z?|\b\d\d:\d\d(:\d\d)?\b|\b(\d+d)?(\d+h)?(\d+m)?\d+s\b|\b\d+d(\d+h)?(\d+m)?\b|\b\d+h(\d+m)?\b|\b\d+m\b|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// prompt is what comes before a command: "$ ", or that of another machine, "h01$ ".
var prompt = regexp.MustCompile(`^(\w*\$ )(.*)`)

// Command is a command of a session.
type Command struct{ Prompt, Text string }

// Check plays the session in a file of Markdown that stands below a comment, and
// compares it with what is shown. With -update it writes it anew. play executes the commands and
// returns what each has printed.
func Check(t testing.TB, file, comment string, play func([]Command) []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	found := regexp.MustCompile("(?s)<!-- " + regexp.QuoteMeta(comment) + " -->\n```console\n(.*?)```").FindStringSubmatchIndex(text)
	if found == nil {
		t.Fatalf("%s has no session below %q", file, comment)
	}
	shown := text[found[2]:found[3]]
	all := commands(shown)
	var now strings.Builder
	for i, printed := range play(all) {
		now.WriteString(all[i].Prompt + all[i].Text + "\n" + printed)
	}
	if *update {
		if err := os.WriteFile(file, []byte(text[:found[2]]+now.String()+text[found[3]:]), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, got := shape(shown), shape(now.String()); !slices.Equal(want, got) {
		t.Errorf("%s shows\n%s\nand it is now\n%s\nrun: make record", file, strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// commands returns the commands of a session.
func commands(session string) (all []Command) {
	for line := range strings.Lines(session) {
		if found := prompt.FindStringSubmatch(line); found != nil {
			all = append(all, Command{found[1], strings.TrimSpace(found[2])})
		}
	}
	return all
}

// status is a line of watch about a host. Which of two lines that follow each other at
// once is printed depends on the moment, so only the last line of a host counts.
var status = regexp.MustCompile(`^TIME +(h\d\d) +\S`)

// shape is what a session shows, without what moves.
func shape(session string) (lines []string) {
	last := map[string]int{}
	for line := range strings.Lines(session) {
		line = strings.TrimRight(moving.ReplaceAllString(line, "TIME"), " \n")
		line = regexp.MustCompile(`  +`).ReplaceAllString(line, "  ")
		if host := status.FindStringSubmatch(line); host != nil {
			if at, seen := last[host[1]]; seen {
				lines[at] = ""
			}
			last[host[1]] = len(lines)
		}
		lines = append(lines, line)
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}
