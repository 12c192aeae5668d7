// Package sim plays the whole protocol in simulated time: the real controllers
// and the real workers over a log, a network, machines and operators of its
// own, in which everything goes wrong that can. After each event it checks the
// invariants of design.md 5, from the records and from what the machines truly
// did, and at the end that every run has ended.
//
// All that happens follows from a seed, but for the order in which the
// runtime runs goroutines that are ready at the same instant. It is called
// inside of a testing/synctest bubble and is of no use outside of tests.
package sim

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Options say how a seed is played.
type Options struct {
	// Dir takes the files of workers and guards; it must be empty.
	Dir string
	// Tell is told all that happens; nil means that only the last of it is kept.
	Tell func(line string)
}

// Report is what came of a seed.
type Report struct {
	// Violations are the invariants that did not hold, none if all is well.
	Violations []string
	// Story are the last things that happened.
	Story []string
	// Counts are how often each thing happened.
	Counts map[string]int
	// Lasted is how much virtual time it took.
	Lasted time.Duration
}

// remembered is how many of the last things are kept of a story.
const remembered = 250

// line is one thing that happened; it is put into words only when somebody
// reads it.
type line struct {
	at     time.Time
	format string
	args   []any
}

func (l line) String() string {
	return l.at.UTC().Format("15:04:05.000 ") + strings.TrimSpace(fmt.Sprintf(l.format, l.args...))
}

// chronicle keeps the story of a seed.
type chronicle struct {
	mu         sync.Mutex
	tell       func(string)
	lines      []line
	next       int
	counts     map[string]int
	violations []string
}

// note tells what happens.
func (c *chronicle) note(format string, args ...any) {
	l := line{time.Now(), format, args}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tell != nil {
		c.tell(l.String())
	}
	if len(c.lines) < remembered {
		c.lines = append(c.lines, l)
		return
	}
	c.lines[c.next] = l
	c.next = (c.next + 1) % remembered
}

// count counts what happens.
func (c *chronicle) count(what string) {
	c.mu.Lock()
	c.counts[what]++
	c.mu.Unlock()
}

// violated tells of an invariant that does not hold.
func (c *chronicle) violated(format string, args ...any) {
	c.note("VIOLATION: "+format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// broken reports whether an invariant did not hold.
func (c *chronicle) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.violations) > 0
}

func (c *chronicle) report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Report{Violations: c.violations, Counts: maps.Clone(c.counts)}
	if len(r.Violations) == 0 {
		return r
	}
	for i := range c.lines {
		r.Story = append(r.Story, c.lines[(c.next+i)%len(c.lines)].String())
	}
	return r
}

// Expected returns what has to happen in many seeds beside the faults.
func Expected() []string {
	return []string{
		"result completed", "result partial", "result failed", "result aborted", "result timed-out",
		"command prepare", "command upgrade", "command reboot",
		"event opened", "event silent", "event recovered", "event released", "event turn", "event slot", "event ran", "event gave-up",
		"event approved", "event paused", "event resumed", "event aborted", "event finished",
		"outcome of before-host: false", "outcome of drain: false", "outcome of after-host: false", "outcome of undrain: false", "outcome of fleet: false",
		"runs opened by window", "runs opened by manual", "runs that retry", "runs kept in the history",
		"append refused: behind", "reply refused: answered", "reply refused: of another run", "versions refused", "outcome of another host dropped",
		"the log's disk is full", "a host is cut off", "a controller is cut off", "a machine loses power", "crashes of the log",
		"a clock is set by seconds", "a clock is set by hours", "a clock is set by years",
		"upgrades resumed", "upgrades that outlived their worker", "upgrades rolled back", "reboots inside upgrades", "seats changed hands",
		"lies to commands", "lies unasked", "replies that come late", "tasks at the site",
		"operator: release", "operator: delete", "operator: retry", "operator: rollout", "operator: approve", "operator: pause", "operator: resume", "operator: abort",
	}
}
