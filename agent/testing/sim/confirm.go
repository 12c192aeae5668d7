package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// A machine with two systems starts the new one after an upgrade, and goes back by itself
// when that does not start, or when it starts again before somebody has marked the new
// system as good.

var _ strategy.Confirmer = system{}

// releaseLasts is how long the repository offers a release of the system.
const releaseLasts = 6 * time.Minute

// offered is the release of the system that the repository offers.
func (w *World) offered() string { return fmt.Sprintf("r%d", time.Since(w.begun)/releaseLasts+1) }

// systemName is what a plan calls the system as a whole.
const systemName = "system"

// planOf is the plan of a run: the run itself is installed, and the system that the
// repository offers, unless that runs already. The world's lock is held.
func (m *machine) planOf(run uint64) message.ChangeSet {
	plan := message.ChangeSet{Changes: []message.Change{{Name: "run", From: versionName(m.version), To: fmt.Sprint(run)}}}
	if to := m.w.offered(); m.traits.counts && to != m.release {
		plan.Changes = append(plan.Changes, message.Change{Name: systemName, From: m.release, To: to})
	}
	return plan
}

// systemOf is the release of the system in a plan; empty when it has none.
func systemOf(plan message.ChangeSet) string {
	for _, c := range plan.Changes {
		if c.Name == systemName {
			return c.To
		}
	}
	return ""
}

// startSystem decides which system starts, with the world's lock held. fails tells that a
// new one does not.
func (m *machine) startSystem(fails bool) {
	staged := m.staged
	m.staged = ""
	if m.confirmed == m.boot { // The start before this one.
		m.gaveUp = ""
	}
	isNew := staged != "" && m.pending != 0 && !m.undone[m.pending]
	switch {
	case isNew && fails:
		m.givesUp(staged, m.pending)
	case isNew:
		m.old, m.release, m.gaveUp, m.installer = m.release, staged, "", m.pending
	case m.old != "" && m.back == m.installer && m.backAt == m.boot: // Its strategy asked for that.
		m.release, m.old = m.old, ""
	case m.old != "":
		m.w.count("systems given up because nobody confirmed them")
		failed := m.release
		m.release, m.old = m.old, ""
		m.givesUp(failed, m.installer)
	}
}

// givesUp notes that the machine has gone back by itself from a release that a run has
// installed, with the world's lock held.
func (m *machine) givesUp(failed string, run uint64) {
	m.gaveUp = failed
	m.undo(run)
	m.w.note("%s gives %s up and goes back to %s", m.name, failed, m.release)
	m.w.oracle.RolledBack(m.name, run)
}

// blind tells the oracle that the boot loader of a machine cannot be read.
func (w *World) blind(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oracle.Blind(name)
}

// Booted implements strategy.Confirmer.
func (s system) Booted(context.Context) (strategy.Boot, error) {
	if s.m.w.fault("booted cannot be had", s.m.name) {
		s.m.w.blind(s.m.name)
		return strategy.Boot{}, errors.New("sim: the boot loader cannot be read")
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	if s.p.dead() {
		return strategy.Boot{}, errDead
	}
	if !s.m.traits.counts {
		return strategy.Boot{}, nil
	}
	return strategy.Boot{Running: s.m.release, Failed: s.m.gaveUp}, nil
}

// Confirm implements strategy.Confirmer. The machine forgets a failed system only once it is
// on disk which one that is: it would be offered again.
func (s system) Confirm(_ context.Context, boot strategy.Boot) error {
	if s.m.w.fault("confirm fails", s.m.name) {
		return errors.New("sim: the boot loader cannot be written")
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	if s.p.dead() {
		return errDead
	}
	if s.m.old != "" && boot.Failed == "" && s.m.one() {
		s.m.w.oracle.Confirmed(s.m.name, s.m.installer)
	}
	s.m.old = "" // It starts again, whatever comes.
	if boot == (strategy.Boot{Running: s.m.release}) && s.m.gaveUp != "" {
		s.m.w.count("systems marked good while the site was not connected")
		return nil
	}
	if want := (strategy.Boot{Running: s.m.release, Failed: s.m.gaveUp}); boot != want {
		s.m.w.violated("%s confirms %+v, and has started %+v", s.m.name, boot, want)
	}
	if boot.Failed != "" && !s.m.rejected[s.p.name][boot.Failed] {
		s.m.w.violated("%s confirms %s, and has not kept that %s failed", s.m.name, boot.Running, boot.Failed)
	}
	s.m.w.count("systems confirmed")
	s.m.confirmed = s.m.boot
	return nil
}

// one reports whether the machine has one worker and is the only one of its host. Another
// worker, or that of a clone, does not know what this one has installed.
func (m *machine) one() bool { return !m.traits.second && !m.cloned }

// toldPassed judges that the system that runs is marked as good when its worker says that
// the checks after the upgrade have passed, with the world's lock held. One that failed
// before, and from which there was no way back, stays unconfirmed in this boot.
func (m *machine) toldPassed(worker string, run uint64) {
	switch {
	case !m.traits.counts || !m.one() || !m.w.oracle.SaidDone(m.name, worker, run):
	case m.old == "":
		m.w.count("hosts whose checks passed on a confirmed system")
	case m.judged[worker] != m.bootID():
		m.w.violated("%s says that the checks of run %d have passed, and %s is not confirmed", m.name, run, m.release)
	}
}

// toldDone judges that the system that runs is marked as good when its worker says that the
// host is upgraded in a run without checks after that, with the world's lock held.
func (m *machine) toldDone(run uint64, reply message.Reply) {
	if reply.Result.Outcome != message.Done || reply.Action == message.Prepare || !m.traits.counts || !m.one() || m.w.oracle.ChecksHosts(run) {
		return
	}
	if m.old != "" {
		m.w.violated("%s says that it is upgraded in run %d, and %s is not confirmed", m.name, run, m.release)
	}
	m.w.count("hosts that are upgraded without checks and confirmed")
}

// keepsBoots notes which releases a worker has on disk as given up, with the world's lock
// held.
func (m *machine) keepsBoots(worker string, data []byte) {
	var kept struct {
		Boots struct {
			Judged   string `json:"judged"`
			Rejected []struct {
				Version string `json:"version"`
			} `json:"rejected"`
		} `json:"boots"`
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		m.w.violated("%s writes boots that cannot be read: %v", worker, err)
		return
	}
	if m.rejected[worker] == nil {
		m.rejected[worker] = map[string]bool{}
	}
	m.judged[worker] = kept.Boots.Judged
	for _, r := range kept.Boots.Rejected {
		m.rejected[worker][r.Version] = true
	}
}

// withhold judges that a worker knows that the release which is offered failed on this
// machine, and returns the plan without it, with the world's lock held.
func (m *machine) withhold(worker string, job strategy.Job) message.ChangeSet {
	plan := m.planOf(job.Run)
	kept := plan.Withhold(job.Rejected, "rolled back")
	if to := systemOf(kept); m.rejected[worker][to] {
		m.w.violated("%s is offered %s for run %d again, which it has given up", m.name, to, job.Run)
	}
	if systemOf(kept) != systemOf(plan) {
		m.w.count("releases withheld")
	}
	return kept
}
