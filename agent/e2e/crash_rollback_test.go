//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Processes are killed twice at each label that a rollback visits: at its first visit and its last. With
// OSUPGRADE_LONG at all in turn.
const (
	rollbackRounds, rollbackLong = 2, 20
	rollbacksAtOnce              = 6
)

// rollbackHosts are the hosts whose upgrade goes well.
var rollbackHosts = []string{"h01", "h03"}

// mustBeHitBack are labels that no rollback is without.
var mustBeHitBack = []string{
	"controller before prepare", "controller after prepare", "controller before upgrade", "controller after upgrade",
	"controller before reboot", "controller after reboot", "controller before begun", "controller after begun", "controller before site task", "controller after site task",
	"server before append", "server after append", "server reply on the log",
	"worker before journal", "worker after journal", "worker before prepare", "worker after prepare", "worker before upgrade", "worker after upgrade",
	"worker before verify", "worker after verify", "worker before reboot", rebooted, "worker before booted", "worker after booted", "worker before reply", "worker after reply",
	"worker before task undo", "worker after task undo", "worker before task drain", "worker after task drain", "worker before task undrain", "worker after task undrain",
}

// TestCrashMatrixRollback upgrades fleets, rolls back the upgrade, and rolls back the rollback. Meanwhile it
// kills the site and the workers at each of their labelled actions. A recorder and the disks of the hosts
// show whether all went well.
func TestCrashMatrixRollback(t *testing.T) {
	t.Parallel()
	if !long() && os.Getenv("OSUPGRADE_CRASH_MATRIX") == "" {
		t.Skip("the kill matrix takes more than a minute; set OSUPGRADE_CRASH_MATRIX=1 for 2 rounds, OSUPGRADE_LONG=1 for 20")
	}
	rounds := rollbackRounds
	if long() {
		rounds = rollbackLong
	}
	m := newMatrix(map[string][]string{"": rollbackHosts}, (*matrix).rollBack)
	m.play(t, rounds, rollbacksAtOnce)
	t.Logf("went on from half-way: %v", m.half)
	if m.half["forwards"] == 0 || m.half["backwards"] == 0 {
		t.Errorf("rollbacks that were aborted half-way went on %v, and not both ways", m.half)
	}
	for _, label := range mustBeHitBack {
		if m.hits[label] == 0 && !t.Failed() {
			t.Errorf("nothing was killed at %q", label)
		}
	}
}

// rollBack upgrades a fleet, rolls back the upgrade, rolls back the rollback, and aborts one more rollback
// half-way. Every second time that one goes on; else the next round goes forwards from there. It kills only
// in rollbacks.
func (m *matrix) rollBack(f *crashFleet, cells []*victim) error {
	first, err := f.versions()
	if err != nil {
		return err
	}
	if err := m.run(f, nil); err != nil {
		return err
	}
	second, err := f.versions()
	if err != nil {
		return err
	}
	f.judge.reset(cells...)
	backwards, forwards := []string{"reopens", "leaves", ofHosts}, []string{ofHosts, "joins", "completes"}
	ended, err := m.playRollback(f, cells, rollback{of: f.last[""], from: second, was: first, parts: backwards})
	if err != nil || lostReboot(ended) != "" {
		return err
	}
	ended, err = m.playRollback(f, cells, rollback{of: ended.ID, from: first, was: second, parts: forwards})
	if err != nil || lostReboot(ended) != "" {
		return err
	}
	of := ended.ID
	ended, err = m.playRollback(f, cells, rollback{of: of, from: second, was: first, parts: backwards, half: true})
	if err != nil || ended.Result != "aborted" {
		return err
	}
	left := maps.Clone(first)
	for _, h := range ended.Hosts {
		if h.Status == "upgraded" {
			delete(left, h.Hostname)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if f.forwards = !f.forwards; f.forwards {
		m.wentOn("forwards")
		return nil
	}
	m.wentOn("backwards")
	_, err = m.playRollback(f, cells, rollback{of: of, from: second, was: left, parts: []string{ofHosts}})
	return err
}

// wentOn counts a rollback that was aborted half-way and goes on this way.
func (m *matrix) wentOn(way string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.half[way]++
}

// playRollback lets a fleet go through a rollback and judges it.
func (m *matrix) playRollback(f *crashFleet, cells []*victim, back rollback) (v1.Run, error) {
	if err := f.gather(); err != nil {
		return v1.Run{}, err
	}
	var meanwhile func() error
	if back.half {
		meanwhile = f.abortHalfWay
	}
	all, lines, err := m.pass(f, cells, v1.Start{RollbackOf: back.of, Reason: "a test"}, meanwhile)
	if err != nil {
		return v1.Run{}, fmt.Errorf("rollback of run %d: %w", back.of, err)
	}
	if back.has, err = f.versions(); err != nil {
		return v1.Run{}, err
	}
	ended := all[0]
	bad := rollbackViolations(ended, back, lines)
	if lost := lostReboot(ended); lost != "" && kills(cells, lost) < 2 {
		bad = append(bad, "one kill has lost the reboot of "+lost)
	}
	if len(bad) > 0 {
		return ended, fmt.Errorf("run %d, which rolls back run %d: %s\nrecorded: %q\nhosts: %+v\nevents: %+v", ended.ID, back.of, strings.Join(bad, "; "), lines, ended.Hosts, events(ended))
	}
	return ended, nil
}

// abortHalfWay aborts the run as soon as one of its hosts is back. It may have ended before.
func (f *crashFleet) abortHalfWay() error {
	return f.insist("abort the run half-way", func(ctx context.Context) error {
		runs, err := f.runs(ctx, "")
		if err != nil {
			return err
		}
		if runs[0].Finished() {
			return nil
		}
		if !slices.ContainsFunc(runs[0].Stages, func(s v1.RunStage) bool { return s.Upgraded > 0 }) {
			return errors.New("no host is back")
		}
		_, err = f.api.Abort(ctx, "acme", v1.Ask{Reason: "a test"})
		return err
	})
}

// versions returns what is on the disk of each host.
func (f *crashFleet) versions() (map[string]string, error) {
	all := map[string]string{}
	for _, host := range f.hosts {
		text, err := os.ReadFile(f.path(host, "version"))
		if err != nil {
			return nil, err
		}
		all[host] = strings.TrimSpace(string(text))
	}
	return all, nil
}

// rollback is what a rollback is judged by.
type rollback struct {
	// of is the run that it rolls back, was is what each of its hosts had before that. from is what they had
	// when it began, has what they have at the end.
	of             uint64
	was, from, has map[string]string
	// parts are what it is to do, in their order: its steps, and ofHosts.
	parts []string
	// half tells that it was aborted once a host was back.
	half bool
}

// ofHosts stands for all that is done with the hosts of a rollback.
const ofHosts = "hosts"

// undone are the deeds of a rollback.
type undone struct {
	deeds
	rollback

	// able are the hosts that have found a way back, begun are the parts that have.
	able  map[string]bool
	begun []string
}

// rollbackViolations judges what was recorded of a run that has rolled back another one.
func rollbackViolations(run v1.Run, back rollback, lines []string) []string {
	u := &undone{rollback: back, able: map[string]bool{}, deeds: deeds{
		run: run.ID, hosts: slices.Sorted(maps.Keys(back.was)), out: map[string]bool{}, done: map[string]int{}, ready: map[string]bool{},
	}}
	for _, line := range lines {
		u.take(line)
	}
	for host := range u.out {
		u.wrong("%s is left out of service", host)
	}
	u.judge(run)
	return u.bad
}

// take records a line: HOST DEED RUN.
func (u *undone) take(line string) {
	host, deed, number := cutLine(line)
	switch deed {
	case "is checked":
		return // It changes nothing, and goes on while a run is aborted.
	case "is ready": // The run has no number yet.
		u.ready[host] = true
		return
	case "can go back":
		u.allReady(line)
		u.able[host] = true
	case "reopens", "leaves", "joins", "completes":
		u.begins(deed, line)
	case "drains":
		u.begins(ofHosts, line)
		u.drains(host)
	case "undrains":
		delete(u.out, host)
	case "rolls back", "is changed", "reboots":
		u.once(host, deed, line)
		if !slices.Contains(u.hosts, host) {
			u.wrong("%q happened on a host that was back before", line)
		}
	default:
		u.wrong("%q is no part of a rollback", line)
	}
	u.done[host+" "+deed]++
	if number != fmt.Sprint(u.run) {
		u.wrong("%q was recorded during run %d", line, u.run)
	}
}

// begins judges when a part of the rollback begins: once all hosts have found a way back, and the parts
// before it are over. A script of a step may be run again.
func (u *undone) begins(part, line string) {
	for _, host := range u.hosts {
		if !u.able[host] {
			u.wrong("%q happened before %s could go back", line, host)
		}
	}
	if !slices.Contains(u.begun, part) {
		if len(u.out) > 0 {
			u.wrong("%q happened while hosts are out of service", line)
		}
		u.begun = append(u.begun, part)
	}
	if last := u.begun[len(u.begun)-1]; part == ofHosts && last != part {
		u.wrong("%q happened after %q", line, last)
	}
}

// once judges what changes a host: it is out of service then, and changed once, whatever was killed.
func (u *undone) once(host, deed, line string) {
	u.inService(host, line)
	if n := u.done[host+" "+deed] + 1; n > 1 && deed != "rolls back" {
		u.wrong("%q happened %d times", line, n)
	}
}

// judge compares what the run says with what was done, and with what the hosts have.
func (u *undone) judge(run v1.Run) {
	lost, want := lostReboot(run), "completed"
	if lost != "" {
		want = "partial"
	}
	if run.Result != want && (!u.half || run.Result != "aborted") {
		u.wrong("the run ended as %s: %s", run.Result, run.Reason)
	}
	if run.RollbackOf != u.of {
		u.wrong("the run rolls back run %d in place of %d", run.RollbackOf, u.of)
	}
	if !slices.Equal(u.begun, u.parts) {
		u.wrong("it did %q in place of %q", u.begun, u.parts)
	}
	for _, host := range u.hosts {
		n := slices.IndexFunc(run.Hosts, func(h v1.RunHost) bool { return h.Hostname == host })
		if n < 0 {
			u.wrong("%s is not in the run", host)
			continue
		}
		h := run.Hosts[n]
		switch {
		case h.Status != "upgraded" && u.half && u.has[host] == u.from[host] && u.done[host+" rolls back"] == 0:
			// It was not begun any more.
		case h.Status == "failed" && u.half && strings.HasPrefix(h.Error, "the run ended before"):
			// It was under way, and is named.
		case h.Status != "upgraded" && host != lost:
			u.wrong("%s is %s: %s", host, h.Status, h.Error)
		case u.has[host] != u.was[host] && h.Status == "upgraded":
			u.wrong("%s is said to be back, and has %s in place of %s", host, u.has[host], u.was[host])
		case host == "h03" && host != lost && h.Status == "upgraded" && u.done["h03 reboots"] == 0:
			u.wrong("h03 is said to be back, and was not rebooted")
		}
	}
}
