package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Each host makes its offers by the release to which its environment goes, so that an empty offer means
// that the host has it. The controller says to a host which release that is whenever a heartbeat names
// another one: nothing is stored, and a message that is lost is sent again.

// goal is the release to which the hosts of an environment go.
type goal struct {
	// pin is nil if the options of each host decide; known is false while nobody can say, as after the
	// release was withdrawn.
	pin   *release.Pin
	known bool
	kind  release.Kind
	// until is when it becomes another one by itself: an environment that follows goes to another release
	// each day. It is zero for never.
	until time.Time
	// current is false once something has changed on which it may depend. goesOn is that on which it does
	// besides what is declared.
	current bool
	goesOn  *release.Pin
}

// digest returns the digest of the release; empty for none.
func (g goal) digest() string {
	if g.pin == nil {
		return ""
	}
	return g.pin.Digest
}

// toldGoal is the digest that a host was told last, when, and how often in vain.
type toldGoal struct {
	digest string
	at     time.Time
	times  int
}

// mostPatience bounds how often the wait doubles until a host is told again that does not take note.
const mostPatience = 5

// tells reports whether a host is to be told the goal at a time: its last heartbeat names another
// release, and it has had the time to take note of what it was told.
func (g goal) tells(h *host, now time.Time) bool {
	switch {
	case !g.known || h.offersBy == g.digest():
		return false
	case g.pin != nil && !slices.Contains(h.Releases, g.kind):
		return false // It would not go there.
	case h.told.at.IsZero() || h.told.digest != g.digest():
		return true
	}
	return now.Sub(h.told.at).Abs() >= message.Silence<<min(h.told.times-1, mostPatience)
}

// goalAt returns the release to which the hosts of an environment go at a time.
func (i *intent) goalAt(environment string, goesOn *release.Pin, now time.Time) goal {
	pinned, until, err := i.releaseAt(environment, goesOn, now)
	g := goal{until: until, current: true, goesOn: goesOn}
	if err != nil || pinned == nil {
		g.known = err == nil
		return g
	}
	r, err := pinned.Release()
	g.pin, g.known, g.kind = pinned, err == nil, r.Kind()
	return g
}

// followGoal finds out to which release the hosts of an environment go, once that may have changed, and
// returns when that is the next time.
func (s *state) followGoal(env *environment, now time.Time) time.Time {
	before := env.goal
	if before.current && (before.until.IsZero() || now.Before(before.until)) {
		return before.until
	}
	env.goal = s.intent.goalAt(env.name, env.goesOn(), now)
	if env.goal.digest() != before.digest() {
		env.rouse()
		s.show()
	}
	return env.goal.until
}

// goalsChange notes which environments may go to another release because an object was written or deleted.
func (s *state) goalsChange(seen store.Object) {
	for _, env := range s.inOrder {
		switch {
		case seen.Kind == store.Environment && onLog(seen.Name) != env.name:
		case seen.Kind == store.Release && s.intent.target(env.name).Named() != seen.Name:
		case seen == (store.Object{}), seen.Kind == store.Environment, seen.Kind == store.Release, seen.Kind == store.Config:
			env.goal.current = false
		}
	}
}

// mostTold bounds how many hosts are told at once; the others are with their next heartbeat.
const mostTold = 1000

// tellGoals tells the hosts of an environment at once when it goes to another release.
func (s *state) tellGoals(env *environment, now time.Time) {
	goal := env.goal
	if !goal.known || goal.digest() == env.toldGoal {
		return
	}
	env.toldGoal = goal.digest()
	left := mostTold
	for name, known := range s.hosts.in(env.name) {
		if left--; left < 0 {
			return
		}
		if s.hosts.present.online(name) {
			s.tellGoal(known, now)
		}
	}
}

// tellGoal tells a host that has just been heard of to which release its environment goes, if it does
// not know.
func (s *state) tellGoal(known *host, now time.Time) {
	env := s.environments[known.Environment]
	if !s.active || !s.isLoaded || env == nil || known.Unplaced {
		return
	}
	goal := env.goal
	if !goal.tells(known, now) {
		return
	}
	if known.told.digest != goal.digest() {
		known.told.times = 0
	}
	known.told = toldGoal{digest: goal.digest(), at: now, times: known.told.times + 1}
	// Each may fetch from the same mirror.
	within := time.Duration(len(s.hosts.in(env.name))/looksPerSecond) * time.Second
	if err := s.HostEvents.Ask(known.Name, log.Ask{Kind: report.Offer, Within: within, ByRelease: true, Release: goal.pin}); err != nil {
		s.Logger.Warn("cannot tell a host to which release it goes", "tenant", s.Tenant, "host", known.Name, "error", err)
	}
}

// digestFor is hosts.goal.
func (s *state) digestFor(known *host) (digest string, some bool) {
	env := s.environments[known.Environment]
	if env == nil || known.Unplaced {
		return "", false
	}
	return env.goal.digest(), env.goal.known
}

// wouldChange is how many packages an upgrade of a host would change to the release to which it goes;
// nil if it has made no offer by that.
func (h *hosts) wouldChange(known *host) *int {
	if digest, some := h.goal(known); !some || digest != known.offersBy {
		return nil
	}
	return known.changes
}

// hasRelease reports whether a host has said last that it has the release by which it makes its offers.
func (h *host) hasRelease() bool { return h.offersBy != "" && h.changes != nil && *h.changes == 0 }

// have returns whether a host surely has a release: it is heard of, and has last made an empty offer by
// it. Of a release that installs what there is at the time nobody knows that before a run.
func (s *state) have(pinned *release.Pin) func(host string) bool {
	if pinned == nil {
		return nil
	}
	if r, err := pinned.Release(); err != nil || !r.Fixed() {
		return nil
	}
	return func(name string) bool {
		known := s.hosts.known[name]
		return known != nil && known.hasRelease() && known.offersBy == pinned.Digest && s.hosts.present.online(name)
	}
}

// resting finds out which environments have nothing to do. Each is looked at once, however many come
// before it.
type resting struct {
	*state
	now   time.Time
	found map[*environment]rest
}

// resting begins to find out which environments have nothing to do at a time.
func (s *state) resting(now time.Time) resting { return resting{s, now, map[*environment]rest{}} }

// rely is have if the next run of an environment may leave out the hosts that have a release, and nil
// as long as environments that come after it have something to do: their runs follow its runs.
func (r resting) rely(env *environment, pinned *release.Pin) func(host string) bool {
	have := r.have(pinned)
	if have == nil {
		return nil
	}
	for _, name := range r.intent.followers()[env.name] {
		if r.nothingToDo(r.environment(name)).why == "" {
			return nil
		}
	}
	return have
}

// nothingToDo says why a run of an environment has nothing to do; zero if it has, or if nobody can say.
func (r resting) nothingToDo(env *environment) rest {
	found, asked := r.found[env]
	if !asked {
		r.found[env] = rest{} // In a cycle, which only two edits at once can make, all have something to do.
		found = r.look(env)
		r.found[env] = found
	}
	return found
}

func (r resting) look(env *environment) (none rest) {
	pinned, err := r.releaseOf(env, r.now)
	if err != nil {
		return none
	}
	have := r.rely(env, pinned)
	if have == nil {
		return none
	}
	fleet := r.fleet(env, nil)
	if r.fit(fleet, pinned) != nil {
		return none
	}
	planned, err := r.intent.plan(env.name, fleet, env.course(v1.Start{}, pinned))
	if err != nil {
		return none
	}
	left := planned.Left(have)
	if !left.Nothing() {
		return none
	}
	return rest{why: haveIt(left.Have, pinned), release: pinned.Ref().String()}
}

// haveIt says how many hosts have a release.
func haveIt(hosts int, pinned *release.Pin) string {
	if hosts == 1 {
		return fmt.Sprintf("the only host has release %s", pinned.Name)
	}
	return fmt.Sprintf("all %s have release %s", text.Count(hosts, "host", "hosts"), pinned.Name)
}

// rest is why an open window needs no run, the release that all hosts have, and since when; the zero
// value if that is not so.
type rest struct {
	why, release string
	since        time.Time
}

// rest notes that an open window needs no run, and logs that once.
func (s *state) rest(env *environment, now time.Time, rests rest, until time.Time) time.Time {
	if before := env.rests; before.why != rests.why || before.release != rests.release {
		rests.since = view.Time(now)
		env.notIdle()
		env.rests = rests
		s.Logger.Info("a window is open and needs no run", "tenant", s.Tenant, "environment", nameOf(env.name), "reason", rests.why)
		s.show()
	}
	return until
}
