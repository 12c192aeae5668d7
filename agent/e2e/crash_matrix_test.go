//go:build linux

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The size of the kill matrix.
const (
	// roundsShort and roundsLong are how often a process is killed at each
	// label: at its first visit, its last and one in the middle; with
	// OSUPGRADE_LONG at all in turn.
	roundsShort, roundsLong = 3, 100
	// fleetsAtOnce run beside each other: they mostly wait. A fleet is given up
	// for a new one after runsPerFleet, for the sake of what happens at birth.
	fleetsAtOnce, runsPerFleet = 8, 20
	// besideAtOnce are the fleets with two environments, whose sites are killed once at each
	// label; with OSUPGRADE_LONG besideLong times.
	besideAtOnce, besideLong = 3, 10
	// siteKills and hostKills are the most in one run.
	siteKills, hostKills = 3, 2
	// maxTries is in how many runs a label may not be visited before it is left
	// out: some depend on what comes first.
	maxTries = 4
)

// mustBeHit are labels that no run is without.
var mustBeHit = []string{
	"controller before prepare", "controller after prepare", "controller before upgrade", "controller after upgrade",
	"controller before reboot", "controller after reboot", "controller before ask",
	"controller before news", "controller after news", "webhook before delivery", "webhook after delivery",
	"server before append", "server after append", "server reply on the log",
	"worker before journal", "worker after journal", "worker before prepare", "worker after prepare", "worker before upgrade", "worker after upgrade",
	"worker before verify", "worker after verify", "worker before rollback", "worker after rollback", "worker before reboot", rebooted,
	"worker before booted", "worker after booted", "worker before reply", "worker after reply",
	"controller before begun", "controller after begun", "controller before site task", "controller after site task", "worker before task step", "worker after task step",
	"worker before task drain", "worker after task drain", "worker before task undrain", "worker after task undrain",
}

// mustBeHitBeside are labels at which no site goes unkilled while the runs of two environments are
// under way.
var mustBeHitBeside = []string{
	"controller before slot", "controller after slot", "controller before upgrade", "controller after upgrade",
	"controller before ask", "controller before ran", "controller after ran",
	"server before append", "server after append", "server reply on the log",
}

// long reports whether there is time for the tests of make test-long.
func long() bool { return os.Getenv("OSUPGRADE_LONG") != "" }

// matrix hands out its cells.
type matrix struct {
	// environments are those of its fleets. With several, only sites are killed.
	environments map[string][]string
	// round plays one round with a fleet, kills at the labels of the cells, and judges it.
	round func(*matrix, *crashFleet, []*victim) error
	// births tells that processes are killed while a fleet is born, too.
	births bool

	mu   sync.Mutex
	left []*victim
	// hits counts by label, and beside those while the runs of all environments were under way.
	// missed are labels that were left out.
	hits, beside map[string]int
	missed       []string
	runs         int
	// half counts the rollbacks that were aborted half-way, by the way on which they went on.
	half map[string]int
}

func newMatrix(environments map[string][]string, round func(*matrix, *crashFleet, []*victim) error) *matrix {
	return &matrix{environments: environments, round: round, hits: map[string]int{}, beside: map[string]int{}, half: map[string]int{}}
}

// TestCrashMatrix kills real processes, the site and the workers, at each
// labelled action of theirs, starts them again, and judges by a recorder outside
// what the hosts did.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	if !long() && os.Getenv("OSUPGRADE_CRASH_MATRIX") == "" {
		t.Skip("the kill matrix takes more than a minute; set OSUPGRADE_CRASH_MATRIX=1 for 3 rounds, OSUPGRADE_LONG=1 for 100")
	}
	rounds := roundsShort
	if long() {
		rounds = roundsLong
	}
	m := newMatrix(map[string][]string{"": crashHosts}, (*matrix).run)
	m.births = true
	m.play(t, rounds, fleetsAtOnce)
	for _, label := range mustBeHit {
		if m.hits[label] == 0 && !t.Failed() {
			t.Errorf("nothing was killed at %q", label)
		}
	}
}

// TestCrashMatrixSideBySide kills the sites of fleets with two environments at each of their
// labelled actions, while runs of both are under way.
func TestCrashMatrixSideBySide(t *testing.T) {
	t.Parallel()
	if !long() && os.Getenv("OSUPGRADE_CRASH_MATRIX") == "" {
		t.Skip("the kill matrix takes more than a minute; set OSUPGRADE_CRASH_MATRIX=1 for a round, OSUPGRADE_LONG=1 for 10")
	}
	rounds := 1
	if long() {
		rounds = besideLong
	}
	m := newMatrix(crashEnvironments, (*matrix).run)
	m.play(t, rounds, besideAtOnce)
	t.Logf("killed while both runs were in progress: %v", m.beside)
	for _, label := range mustBeHitBeside {
		if m.beside[label] == 0 && !t.Failed() {
			t.Errorf("no site with two runs in progress was killed at %q", label)
		}
	}
}

// play kills in all cells, with so many fleets at once.
func (m *matrix) play(t *testing.T, rounds, atOnce int) {
	t.Helper()
	bin := buildCrashing(t)
	begun := time.Now()
	if err := m.learn(t, bin, rounds); err != nil {
		t.Fatal(err)
	}
	cells := len(m.left)
	var fleets sync.WaitGroup
	for range atOnce {
		fleets.Go(func() {
			for !t.Failed() && m.some() {
				if err := m.campaign(t, bin); err != nil {
					t.Error(err)
				}
			}
		})
	}
	fleets.Wait()
	killed := 0
	for _, n := range m.hits {
		killed += n
	}
	t.Logf("%d labels, %d of %d kills in %d runs and %s; not visited: %q", len(m.hits), killed, cells, m.runs, time.Since(begun).Round(time.Second), m.missed)
}

// buildCrashing builds an agent that asks a judge at each labelled action.
func buildCrashing(t *testing.T) string {
	t.Helper()
	return buildAgent(t, "-tags", "crash")
}

// learn makes the cells from the labels that are visited in a fleet's birth, in
// a calm run and at a start.
func (m *matrix) learn(t *testing.T, bin string, rounds int) error {
	f, err := openCrashFleet(t, bin, m.environments)
	if err != nil {
		return err
	}
	defer func() { _ = f.close() }()
	if err := f.born(); err != nil {
		return err
	}
	born, bornVisits := f.judge.seen()
	f.judge.reset()
	if err := m.round(m, f, nil); err != nil {
		return err
	}
	ran, ranVisits := f.judge.seen()
	f.judge.reset()
	for _, process := range append([]string{"site"}, f.hosts...) {
		f.kill(process)
	}
	if err := f.gather(); err != nil {
		return err
	}
	started, startVisits := f.judge.seen()
	m.add(ran, ranVisits, inRun, rounds)
	m.add(started, startVisits, atStart, rounds)
	if m.births {
		m.add(born, bornVisits, atBirth, rounds)
	}
	return nil
}

// add makes the cells of labels that have none yet.
func (m *matrix) add(order []spot, visits map[spot]int, at phase, rounds int) {
	known := map[string]bool{}
	for _, c := range m.left {
		known[c.label] = true
	}
	of := map[string][]string{}
	var labels []string
	for _, s := range order {
		if len(m.environments) > 1 && s.process != "site" {
			continue
		}
		if len(of[s.label]) == 0 && !known[s.label] {
			labels = append(labels, s.label)
		}
		of[s.label] = append(of[s.label], s.process)
	}
	for round := range rounds {
		for _, label := range labels {
			process := of[label][round%len(of[label])]
			visit := m.visit(round, visits[spot{process, label}])
			m.left = append(m.left, &victim{process: process, label: label, visit: visit, at: at})
		}
	}
}

// visit is at which of n visits a process is killed. At the first and the last ones of a site with
// two environments only one run is under way.
func (m *matrix) visit(round, n int) int {
	switch {
	case len(m.environments) > 1 && round == 0:
		return min(n/2+1, n)
	case len(m.environments) > 1 || round > 2:
		return round%n + 1
	}
	return []int{1, n, (n + 1) / 2}[round]
}

func (m *matrix) some() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.left) > 0
}

// take takes cells for a birth, or for a run.
func (m *matrix) take(birth bool) (cells []*victim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := map[string]int{}
	labels := map[string]bool{}
	m.left = slices.DeleteFunc(m.left, func(c *victim) bool {
		most := hostKills
		if c.process == "site" {
			most = siteKills
		}
		if (c.at == atBirth) != birth || count[c.process] >= most || labels[c.label] {
			return false
		}
		count[c.process]++
		labels[c.label] = true
		cells = append(cells, c)
		return true
	})
	return cells
}

// settle counts the cells that were hit and hands out the others again.
func (m *matrix) settle(cells []*victim, visits map[spot]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range cells {
		switch n := visits[spot{c.process, c.label}]; {
		case c.hit && len(m.environments) > 1 && !c.beside && c.visit > 1 && c.tries < maxTries-2:
			// All runs are under way at an earlier visit, if at any.
			c.hit, c.visit = false, c.visit-1
		case c.hit:
			m.hits[c.label]++
			continue
		case n > 0:
			c.visit = min(n, max(1, c.visit-1))
		case c.at == inRun && c.tries > 0:
			c.at = atStart
		}
		if c.tries++; c.tries < maxTries || c.visit > 1 && c.tries < maxTries+c.visit {
			m.left = append(m.left, c)
			continue
		}
		m.missed = append(m.missed, fmt.Sprintf("%s %s", c.process, c.label))
	}
}

// campaign lets a fleet live through some runs.
func (m *matrix) campaign(t *testing.T, bin string) error {
	cells := m.take(true)
	f, err := openCrashFleet(t, bin, m.environments, cells...)
	if err != nil {
		return err
	}
	defer func() { _ = f.close() }()
	err = f.born()
	_, visits := f.judge.seen()
	if err != nil {
		return fmt.Errorf("with %s: %w\n%s", told(cells), err, f.logs())
	}
	m.settle(cells, visits)
	for range runsPerFleet {
		if cells = m.take(false); len(cells) == 0 || t.Failed() {
			return nil
		}
		err := m.round(m, f, cells)
		_, visits = f.judge.seen()
		if err != nil {
			return fmt.Errorf("with %s: %w\n%s", told(cells), err, f.logs())
		}
		m.settle(cells, visits)
	}
	return nil
}

// run lets a fleet go through one run of each environment and judges them.
func (m *matrix) run(f *crashFleet, cells []*victim) error {
	if err := f.gather(); err != nil {
		return err
	}
	f.judge.reset(cells...)
	all, lines, err := m.pass(f, cells, byHand, nil)
	if err != nil {
		return err
	}
	for _, ended := range all {
		bad := violations(ended, f.environments[ended.Environment], f.without(lines, ended.Environment))
		if lost := lostReboot(ended); lost != "" && kills(cells, lost) < 2 {
			bad = append(bad, "one kill has lost the reboot of "+lost)
		}
		if len(bad) > 0 {
			return fmt.Errorf("run %d: %s\nrecorded: %q\nhosts: %+v\nevents: %+v", ended.ID, strings.Join(bad, "; "), lines, ended.Hosts, events(ended))
		}
	}
	return nil
}

// pass starts a run in each environment by a request, and returns the runs once they have ended, and what
// was recorded. If meanwhile is not nil, it is called when all have started.
func (m *matrix) pass(f *crashFleet, cells []*victim, request v1.Start, meanwhile func() error) (all []v1.Run, lines []string, err error) {
	if err := f.start(request); err != nil {
		return nil, nil, err
	}
	for _, c := range cells {
		if c.at == atStart {
			f.kill(c.process)
		}
	}
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return nil, nil, err
		}
	}
	for environment := range m.environments {
		ended, err := f.end(environment)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, ended)
	}
	for _, ended := range all {
		if err := f.told(ended); err != nil {
			return nil, nil, err
		}
	}
	lines, err = f.lines()
	m.count(cells, all)
	return all, lines, err
}

// count counts runs that have ended, and the kills while all of them were under way.
func (m *matrix) count(cells []*victim, ended []v1.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs += len(ended)
	for _, c := range cells {
		if c.hit && !slices.ContainsFunc(ended, func(r v1.Run) bool { return c.hitAt.Before(r.OpenedAt) || c.hitAt.After(*r.EndedAt) }) {
			c.beside = true
			m.beside[c.label]++
		}
	}
}

// without leaves out what the hosts of all other environments did.
func (f *crashFleet) without(lines []string, environment string) (own []string) {
	for _, line := range lines {
		host, _, _ := strings.Cut(line, " ")
		if slices.Contains(f.environments[environment], host) || !slices.Contains(f.hosts, host) {
			own = append(own, line)
		}
	}
	return own
}

// kills counts how often a process was killed.
func kills(cells []*victim, process string) (n int) {
	for _, c := range cells {
		if c.hit && c.process == process {
			n++
		}
	}
	return n
}

func events(run v1.Run) []v1.RunEvent { return run.Events[max(0, len(run.Events)-30):] }

func told(cells []*victim) string {
	var all []string
	for _, c := range cells {
		all = append(all, fmt.Sprintf("%s at %q visit %d (hit: %t)", c.process, c.label, c.visit, c.hit))
	}
	return strings.Join(all, ", ")
}
