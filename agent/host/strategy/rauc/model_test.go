package rauc

import (
	"fmt"
	"slices"
	"time"
)

// model is RAUC with GRUB and boot counting on two slots, as RAUC 1.8 and the grub.cfg
// of its documentation do it: a slot that starts counts as tried until it is marked.
type model struct {
	clock   time.Time
	slots   [2]modelSlot
	order   []int
	running int
	// factory is what the system of slot 0 says of itself, for RAUC has not
	// installed it.
	factory string
	// panics are the versions that do not start.
	panics []string
	// fast: nothing takes time, not even a start.
	fast bool
	// realtime has the model note the time of this machine in place of clock.
	realtime bool
	// inactive is activate-installed=false.
	inactive bool
}

type modelSlot struct {
	version   string
	status    string
	activated time.Time
	ok, tried bool
}

// newModel returns a host whose first slot was written by the factory and runs.
func newModel() *model {
	m := &model{clock: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), order: []int{0, 1}, factory: "1"}
	m.slots[0] = modelSlot{ok: true}
	return m
}

func name(i int) string { return fmt.Sprintf("rootfs.%d", i) }

// content is what the system in a slot says of itself.
func (m *model) content(i int) string {
	if i == 0 && m.slots[0].version == "" {
		return m.factory
	}
	return m.slots[i].version
}

func (m *model) system() system {
	s := system{compatible: "appliance", version: m.content(m.running)}
	for i, one := range m.slots {
		state, boot := "inactive", "bad"
		if i == m.running {
			state = "booted"
		}
		if one.ok && !one.tried {
			boot = "good"
		}
		s.slots = append(s.slots, slot{
			name: name(i), class: "rootfs", bootname: string(rune('A' + i)), state: state, boot: boot,
			status: one.status, version: one.version, activated: one.activated,
		})
	}
	if i := slices.IndexFunc(m.order, func(i int) bool { return m.slots[i].ok && !m.slots[i].tried }); i >= 0 {
		s.primary = name(m.order[i])
	}
	return s
}

// write is the first half of an installation. RAUC 1.8 notes nothing until the slot is
// written.
func (m *model) write() {
	target := &m.slots[1-m.running]
	target.ok, target.tried = false, false
}

// install installs a version.
func (m *model) install(version string) {
	m.write()
	target := 1 - m.running
	m.slots[target].version, m.slots[target].status = version, "ok"
	if !m.inactive {
		m.mark(mark{"active", name(target)})
	}
}

// pass is the time that something takes.
func (m *model) pass(d time.Duration) {
	switch {
	case m.realtime:
		m.clock = time.Now()
	case !m.fast:
		m.clock = m.clock.Add(d)
	}
}

// apply is what the strategy does with marks.
func (m *model) apply(marks []mark) {
	for _, k := range marks {
		if k.state == "active" {
			m.clock = m.clock.Add(m.system().pause(m.clock))
		}
		m.mark(k)
	}
}

// keep is what the strategy does before an installation.
func (m *model) keep() {
	running, _ := m.system().running()
	m.apply(m.system().keep(running))
	m.clock = m.clock.Add(m.system().pause(m.clock))
}

func (m *model) mark(k mark) {
	i := slices.IndexFunc([]int{0, 1}, func(i int) bool { return name(i) == k.slot })
	m.slots[i].tried = false
	switch k.state {
	case "good":
		m.slots[i].ok = true
	case "bad":
		m.slots[i].ok = false
	case "active":
		m.pass(time.Second)
		m.slots[i].ok, m.slots[i].activated = true, m.clock.Truncate(resolution)
		m.order = []int{i, 1 - i}
	}
}

// start starts the machine, as often as it takes.
func (m *model) start() {
	for {
		m.pass(time.Minute)
		i := slices.IndexFunc(m.order, func(i int) bool { return m.slots[i].ok && !m.slots[i].tried })
		if i < 0 {
			// Each was tried: forget that and take the first.
			m.slots[0].tried, m.slots[1].tried = false, false
			i = 0
		} else {
			m.slots[m.order[i]].tried = true
		}
		m.running = m.order[i]
		if !slices.Contains(m.panics, m.content(m.running)) {
			return
		}
	}
}
