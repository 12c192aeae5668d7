package dnf_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// attack interrupts a transaction that an action has begun. It reports whether it came in time.
type attack struct {
	name   string
	action string
	times  int
	strike func(m *machine) bool
}

func attacks() []attack {
	return []attack{
		{"dnf killed", "upgrade", realhost.Times(1, 2, 20), func(m *machine) bool {
			struck := m.kill("dnf5?")
			realhost.Until(m.t, "the upgrade ends without dnf", time.Minute, m.ended)
			return struck
		}},
		{"dnf and worker killed", "upgrade", realhost.Times(1, 1, 10), func(m *machine) bool { return m.kill("osupgrade-agent", "dnf5?") }},
		{"dnf killed and the power cut", "upgrade", realhost.Times(1, 1, 6), func(m *machine) bool {
			defer m.cut()
			return m.kill("dnf5?")
		}},
		{"power cut", "upgrade", realhost.Times(1, 1, 15), (*machine).cut},
		{"power cut twice in a row", "upgrade", realhost.Times(1, 1, 6), func(m *machine) bool {
			struck := m.cut()
			m.begin("resume")
			time.Sleep(time.Duration(500+rand.IntN(2500)) * time.Millisecond) //nolint:gosec // any moment of the repair
			m.cut()
			return struck
		}},
		{"dnf killed in the rollback", "rollback", realhost.Times(1, 1, 5), func(m *machine) bool { return m.kill("dnf5?") }},
		{"power cut in the rollback", "rollback", realhost.Times(1, 1, 5), (*machine).cut},
	}
}

// family are packages whose scripts take a moment and leave a mark.
func family(version string) (packs []pack) {
	for i := range 3 {
		name := fmt.Sprintf("appliance-%d", i)
		packs = append(packs, pack{name: name, version: version, post: "sleep 0.3; echo " + version + " >/var/lib/" + name + ".marked"})
	}
	return packs
}

// begin has the program carry out an action, and does not wait for it.
func (m *machine) begin(action string) {
	m.t.Helper()
	m.Must("rm -f /var/out; (setsid " + m.request(action) + " >/var/out 2>&1; echo ended >>/var/out) >/dev/null 2>&1 </dev/null &")
}

// ended reports whether the action of begin has ended.
func (m *machine) ended() bool {
	m.t.Helper()
	return strings.HasSuffix(m.Must("cat /var/out"), "ended\n")
}

// kill kills programs as the kernel does when memory is short.
func (m *machine) kill(programs ...string) (struck bool) {
	m.t.Helper()
	for _, program := range programs {
		if _, err := m.Run(m.t.Context(), "pkill -9 -x '"+program+"'"); err == nil {
			struck = true
		}
	}
	return struck
}

// cut cuts the power and turns it on again.
func (m *machine) cut() (struck bool) {
	m.t.Helper()
	struck = !m.ended()
	m.Cut()
	m.Start()
	return struck
}

// is checks that the family has a version: in the database, in its files, and by its scripts.
func (m *machine) is(version string) {
	m.t.Helper()
	m.has("appliance-0-"+version+"-1.noarch", "appliance-1-"+version+"-1.noarch", "appliance-2-"+version+"-1.noarch")
	if wrong := m.Must("rpm -V appliance-0 appliance-1 appliance-2 || true"); wrong != "" {
		m.t.Errorf("rpm -V: %s", wrong)
	}
	if got := m.Must("cat /var/lib/appliance-?.marked"); got != strings.Repeat(version+"\n", 3) {
		m.t.Errorf("the scripts left %q, want %s three times", got, version)
	}
}

// TestRealAttacks interrupts transactions at random moments. The action that takes them up
// ends well, and then the host is what that says: after resume it has the planned versions
// and no others, after rollback those of before, each with its files and its script run.
func TestRealAttacks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s system) {
		for _, a := range attacks() {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, s, family("1.0")...)
				m.publish(family("2.0")...)
				both := 0
				realhost.Strike(t, a.name, a.times, func(int) bool {
					m.prepare()
					if a.action == "rollback" {
						m.must("upgrade")
					}
					m.begin(a.action)
					realhost.Until(t, "the transaction", time.Minute, func() bool { return m.Must("grep -c 'Running transaction$' /var/out || true") != "0\n" })
					time.Sleep(time.Duration(rand.IntN(1800)) * time.Millisecond) //nolint:gosec // any moment
					struck := a.strike(m)
					if strings.Count(m.Must("rpm -qa 'appliance*'"), "\n") > 3 {
						both++
					}
					if a.action == "upgrade" {
						m.resume()
						m.is("2.0")
					}
					m.must("rollback")
					m.is("1.0")
					return struck
				})
				t.Logf("%s: %d attempts left both versions in the database; all ended well", a.name, both)
			})
		}
	})
}

// resume takes an upgrade up again, to its end.
func (m *machine) resume() {
	m.t.Helper()
	switch got := m.act("resume"); got.status {
	case 0:
	case 11:
		m.must("upgrade")
	default:
		m.t.Fatalf("resume ends with %d:\n%s", got.status, got.text)
	}
	m.done()
}
