package simulated

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// machine drives a host at random, interrupts upgrades where a real crash could, and
// counts the upgrades that have had their effect.
type machine struct {
	t    *rapid.T
	dir  string
	host *Host
	run  uint64
	// installed and booted count the upgrades of base-os and kernel.
	installed, booted int
}

func (m *machine) must(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) job() strategy.Job {
	j := strategy.Job{Run: m.run, Progress: func(int, string) {}, Fetch: true}
	plan, err := m.host.Plan(context.Background(), j)
	m.must(err)
	j.Plan = plan
	return j
}

// boot activates the kernel that the last upgrade installed, if any.
func (m *machine) boot() {
	m.must(m.host.Boot(context.Background()))
	m.booted++
}

func (m *machine) reopen() {
	h, err := Open(m.dir, Options{})
	m.must(err)
	m.host = h
}

// TestEveryUpgradeThatHappenedIsCountedOnce compares the effects log with the package
// database and with Resume.
func TestEveryUpgradeThatHappenedIsCountedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{t: rt, dir: t.TempDir(), run: 1}
		m.reopen()
		for range rapid.IntRange(1, 6).Draw(rt, "runs") {
			m.run += rapid.Uint64Range(0, 1).Draw(rt, "another run")
			want, pending := m.attempt(rapid.IntRange(0, 3).Draw(rt, "cut"))
			if rapid.Bool().Draw(rt, "reopen") {
				m.reopen()
			}
			if rapid.Bool().Draw(rt, "boot") && pending {
				m.boot()
				want = strategy.Done
			}
			got, err := m.host.Resume(context.Background(), m.job())
			m.must(err)
			if got != want {
				rt.Fatalf("resume of run %d is %v, want %v", m.run, got, want)
			}
			if got == strategy.RebootRequired {
				m.boot()
			}
			m.compare()
		}
	})
}

// attempt upgrades up to a point: 0 nothing but the record, 1 up to its line
// in the log, 2 up to the package database, 3 to the end.
func (m *machine) attempt(cut int) (want strategy.Outcome, pending bool) {
	if cut == 3 {
		_, err := m.host.Upgrade(context.Background(), m.job())
		m.must(err)
		m.installed++
		return strategy.RebootRequired, true
	}
	current, err := m.host.packages()
	m.must(err)
	u := newUpgrade(m.run, "", current, m.job().Plan, true)
	u.Earlier, err = m.host.count(actionUpgrade, m.run)
	m.must(err)
	m.must(m.host.writeUpgrade(u))
	if cut == 0 {
		m.tear()
		return strategy.NotDone, false
	}
	m.must(m.host.record(actionUpgrade, m.run))
	m.installed++
	if cut == 2 {
		m.must(m.host.write(packagesFile, u.Running))
	}
	return strategy.RebootRequired, true
}

// tear leaves an incomplete line, as a crash does.
func (m *machine) tear() {
	f, err := os.OpenFile(m.host.path(effectsFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	m.must(err)
	_, err = f.WriteString(`{"action":"upgrade","run":` + strconv.FormatUint(m.run, 10))
	m.must(err)
	m.must(f.Close())
}

func (m *machine) compare() {
	p, err := m.host.packages()
	m.must(err)
	if got, want := p["base-os"], "1."+strconv.Itoa(m.installed); got != want {
		m.t.Fatalf("base-os is %s, want %s", got, want)
	}
	if got, want := p[kernel], "6.1."+strconv.Itoa(m.booted); got != want {
		m.t.Fatalf("kernel is %s, want %s", got, want)
	}
	effects, err := m.host.Effects()
	m.must(err)
	upgrades := 0
	for _, e := range effects {
		if e.Action == actionUpgrade {
			upgrades++
		}
	}
	if upgrades != m.installed {
		m.t.Fatalf("%d upgrades are logged, %d took place", upgrades, m.installed)
	}
}

func TestRaise(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.0": "1.1", "6.1.9": "6.1.10", "2-rc1": "2-rc2", "1.0-beta": "1.1-beta", "stable": "stable.1",
		"99999999999999999999": "100000000000000000000", "v9": "v10",
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			if got := nextVersion(version); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		})
	}
}

func FuzzEffects(f *testing.F) {
	f.Add([]byte("{\"action\":\"boot\",\"run\":3,\"boot-id\":\"x\"}\n{\"act"))
	f.Fuzz(func(t *testing.T, data []byte) {
		effects, err := parseEffects(data)
		if lines := strings.Count(string(data), "\n"); err == nil && len(effects) != lines {
			t.Fatalf("%d effects of %d whole lines", len(effects), lines)
		}
	})
}
