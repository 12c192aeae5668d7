package rauc

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func change(from, to string) message.ChangeSet {
	return message.ChangeSet{Changes: []message.Change{{Name: "rootfs", From: from, To: to}}}
}

// TestSystemsOf checks what a host says in each state that an upgrade leaves.
func TestSystemsOf(t *testing.T) {
	t.Parallel()
	to2 := change("1", "2")
	for name, c := range map[string]struct {
		play   func(m *model)
		next   string
		failed string
		verify string
	}{
		"before":                {func(*model) {}, "", "", "rootfs is 1, not 2"},
		"while it is written":   {(*model).write, "", "", "not 2"},
		"installed":             {func(m *model) { m.install("2") }, "2", "", "not 2"},
		"installed, not active": {func(m *model) { m.inactive = true; m.install("2") }, "", "", "not 2"},
		"another installed":     {func(m *model) { m.install("3") }, "3", "", "not 2"},
		"started":               {func(m *model) { m.install("2"); m.start() }, "", "", ""},
		"started twice, not marked": {
			func(m *model) { m.install("2"); m.start(); m.start() },
			"", "2", "rootfs 2 did not start: the machine went back by itself to 1",
		},
		"does not start": {
			func(m *model) { m.panics = []string{"2"}; m.install("2"); m.start() },
			"", "2", "went back by itself",
		},
		"written over what was installed": {
			func(m *model) { m.install("2"); m.keep(); m.write() }, "", "", "not 2",
		},
		"half written, says a newer RAUC": {
			func(m *model) { m.install("2"); m.write(); m.slots[1].status = "pending" }, "", "", "not 2",
		},
		"rolled back by hand": {
			func(m *model) { m.install("2"); m.mark(mark{"active", "rootfs.0"}); m.start() }, "", "", "not 2",
		},
	} {
		m := newModel()
		c.play(m)
		s := m.system()
		now, err := s.Systems()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if now.Running != m.content(m.running) || now.Next != c.next || now.Failed != c.failed {
			t.Errorf("%s: %+v; %q should start next, and %q have failed", name, now, c.next, c.failed)
		}
		err = now.Verify(to2)
		if (c.verify == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.verify) {
			t.Errorf("%s: verify says %v, not %q", name, err, c.verify)
		}
	}
}

// TestWaysBack checks that whatever a host has been through, the marks of Confirm keep
// what a start came to: the next start takes the same slot, and the failed version is
// told once and never starts again by itself.
func TestWaysBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		m.fast = rapid.Bool().Draw(t, "nothing takes time")
		m.inactive = rapid.Bool().Draw(t, "leaves activation to others")
		for range rapid.IntRange(1, 12).Draw(t, "actions") {
			version := rapid.SampledFrom([]string{"2", "3", "4"}).Draw(t, "version")
			m.panics = nil
			if rapid.Bool().Draw(t, "panics") {
				m.panics = []string{version}
			}
			if slices.Contains(m.panics, m.content(m.running)) {
				continue
			}
			old := m.running
			switch rapid.SampledFrom([]string{"installs", "breaks off", "goes back"}).Draw(t, "action") {
			case "installs":
				m.keep()
				m.install(version)
				if m.inactive {
					m.apply([]mark{{"active", name(1 - m.running)}})
				}
			case "breaks off":
				m.keep()
				m.write()
			case "goes back":
				marks, outcome, err := back(m.system(), change(m.system().slots[1-m.running].version, m.content(m.running)))
				if err != nil {
					continue
				}
				m.apply(marks)
				if outcome == strategy.RebootRequired && m.system().primary != name(1-old) {
					t.Fatalf("a rollback lets %s start, not the other slot", m.system().primary)
				}
			}
			if m.slots[1-m.running].version == "" && m.content(1-m.running) == "" && m.slots[1-m.running].ok {
				continue
			}
			if now, err := m.system().Systems(); err != nil || (now.Next != "") != (m.system().primary == name(1-old) && m.slots[1-old].version != "") {
				t.Fatalf("%s starts next, and it is told as %+v, %v", m.system().primary, now, err)
			}
			awaited := m.system().primary
			m.start()
			now, err := m.system().Systems()
			boot := now.Boot()
			if err != nil {
				t.Fatal(err)
			}
			// What was chosen last is the first in the order of the boot loader.
			fell := m.order[0] == 1-old && awaited == name(1-old) && m.running == old
			if fell != (boot.Failed != "") {
				t.Fatalf("slot %s was to start, %s runs, and the boot is told as %+v", awaited, name(m.running), boot)
			}
			marks, err := m.system().confirm(boot.Failed)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := m.system().confirm(boot.Failed)
			m.apply(slices.Concat(marks, again))
			if got := m.system(); got.primary != name(m.running) && got.slots[m.running].boot != "good" {
				t.Fatalf("the slot that runs, %s, is not good after Confirm", name(m.running))
			}
			if boot.Failed != "" {
				m.staysBack(t)
			}
		}
	})
}

// staysBack checks that after a way back that was confirmed the machine stays there.
func (m *model) staysBack(t *rapid.T) {
	if again, _ := m.system().Systems(); again.Failed != "" {
		t.Fatalf("the way back is told again: %+v", again)
	}
	before := m.running
	m.start()
	if m.running != before {
		t.Fatalf("the next start takes %s, which failed", name(m.running))
	}
	marks, _ := m.system().confirm("")
	m.apply(marks)
}

// back returns the marks of a rollback and its outcome.
func back(s system, plan message.ChangeSet) ([]mark, strategy.Outcome, error) {
	now, err := s.Systems()
	if err != nil {
		return nil, 0, err
	}
	running, _ := s.running()
	switch c := plan.Changes[0]; now.Back(c) {
	case image.Restore:
		marks, err := s.restore(c.From)
		if err != nil {
			return nil, 0, err
		}
		return marks, strategy.RebootRequired, nil
	case image.UnderWay:
		return nil, strategy.RebootRequired, nil
	default:
		return s.keep(running), strategy.Done, nil
	}
}

// TestBack checks what a rollback does.
func TestBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play    func(m *model)
		plan    message.ChangeSet
		marks   []mark
		outcome strategy.Outcome
		err     string
	}{
		"nothing was done":    {func(*model) {}, change("1", "2"), nil, strategy.Done, ""},
		"while it is written": {(*model).write, change("1", "2"), nil, strategy.Done, ""},
		"starts next":         {func(m *model) { m.install("2") }, change("1", "2"), []mark{{"active", "rootfs.0"}}, strategy.Done, ""},
		"starts next, chosen in the same second": {
			func(m *model) { m.fast = true; m.mark(mark{"active", "rootfs.0"}); m.install("2") }, change("1", "2"),
			[]mark{{"active", "rootfs.0"}},
			strategy.Done, "",
		},
		"runs, the old is the factory's": {
			func(m *model) { m.install("2"); m.start() }, change("1", "2"), []mark{{"active", "rootfs.0"}}, strategy.RebootRequired, "",
		},
		"is on its way back": {
			func(m *model) { m.install("2"); m.start(); m.mark(mark{"active", "rootfs.0"}) }, change("1", "2"), []mark{{"active", "rootfs.0"}}, strategy.RebootRequired, "",
		},
		"is back": {
			func(m *model) { m.install("2"); m.start(); m.mark(mark{"active", "rootfs.0"}); m.start() }, change("1", "2"), nil, strategy.Done, "",
		},
		"the old was written over": {
			func(m *model) { m.install("2"); m.start(); m.install("3"); m.slots[0].status = "pending" }, change("1", "2"), nil, 0,
			"no other slot has the system from before, version 1: rootfs.0 has version 3 and status pending",
		},
	} {
		m := newModel()
		c.play(m)
		marks, outcome, err := back(m.system(), c.plan)
		if !slices.Equal(marks, c.marks) || outcome != c.outcome || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v, %v; want %v, %v, %q", name, marks, outcome, err, c.marks, c.outcome, c.err)
		}
	}
}

// TestSystems checks which systems can be upgraded, and what of them is published.
func TestSystems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *system)
		err    string
	}{
		"two slots":    {func(*system) {}, ""},
		"none runs":    {func(s *system) { s.slots[0].state = "inactive" }, "RAUC knows no slot that runs"},
		"one slot":     {func(s *system) { s.slots = s.slots[:1] }, "no other slot of class rootfs"},
		"another kind": {func(s *system) { s.slots[1].class = "recovery" }, "no other slot of class rootfs"},
		"no bootname":  {func(s *system) { s.slots[0].bootname = "" }, "the slot that runs, rootfs.0, has no bootname"},
		"no slots":     {func(s *system) { s.slots = nil }, "RAUC knows no slot that runs"},
	} {
		s := newModel().system()
		c.change(&s)
		if err := s.Check(); (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v; want %q", name, err, c.err)
		}
	}
	m := newModel()
	m.install("2")
	versions, err := m.system().Versions()
	if err != nil || len(versions) != 2 || versions["rootfs"] != "1" || versions["rootfs.1"] != "2" {
		t.Errorf("versions %v, %v", versions, err)
	}
}

// FuzzSystem checks that no answer of RAUC makes a decision fail but by an error, and
// that none is done with a version that neither runs nor starts next.
func FuzzSystem(f *testing.F) {
	f.Add("booted", "inactive", "good", "bad", "ok", "2", "", "rootfs.1", int64(5), int64(6))
	f.Add("booted", "booted", "", "", "", "", "", "", int64(0), int64(0))
	f.Add("inactive", "inactive", "good", "good", "pending", "1", "2", "rootfs.0", int64(-1), int64(1))
	f.Fuzz(func(t *testing.T, stateA, stateB, bootA, bootB, status, versionA, versionB, primary string, activatedA, activatedB int64) {
		s := system{primary: primary, slots: []slot{
			{name: "rootfs.0", class: "rootfs", bootname: "A", state: stateA, boot: bootA, status: status, version: versionA, activated: time.Unix(activatedA, 0)},
			{name: "rootfs.1", class: "rootfs", bootname: "B", state: stateB, boot: bootB, status: status, version: versionB, activated: time.Unix(activatedB, 0)},
		}}
		plan := change("1", "2")
		now, err := s.Systems()
		missing := now.Missing(strategy.Job{Plan: plan, Staged: true})
		running, none := s.running()
		if (err == nil) != (none == nil) {
			t.Fatalf("systems says %v, running %v", err, none)
		}
		startsNext := primary == "rootfs.0" && versionA == "2" || primary == "rootfs.1" && versionB == "2"
		if err == nil && len(missing) == 0 && running.version != "2" && !startsNext {
			t.Errorf("nothing is missing of %+v", s)
		}
		if marks, _ := s.confirm(now.Failed); slices.Contains(marks, mark{"bad", running.name}) {
			t.Errorf("the slot that runs is marked bad: %+v", s)
		}
		_, _, _ = back(s, plan)
	})
}
