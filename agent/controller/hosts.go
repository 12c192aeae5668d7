package controller

import (
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// hosts is what is known of a tenant's hosts: what the store has of them, and
// what they have said since the start.
type hosts struct {
	tenant string
	logger *slog.Logger
	known  map[string]*host
	// given returns the labels that a host was given when it joined; nil means none.
	given func(host string) map[string]string
	// order are those by name; nil when they have changed.
	order []*host
	// deleted are the hosts that were deleted and not heard of since, and who has
	// deleted them, and why. A host that is merely not known may be at work: it was not
	// written yet when the controller before this one died.
	deleted map[string]run.Deletion
	present presence
	// ran are the known hosts by their last run; nil before somebody asks for these.
	ran *lastRuns
	// byEnvironment are the known hosts by environment; nil while all are in default.
	byEnvironment *byEnvironment
	// busy is what the hosts that are online have said in their last heartbeat: why they
	// are not to be upgraded now, or nil.
	busy  map[string]*message.NotNow
	stall stall
	// goal returns the digest of the release to which a host goes, empty for none; false while nobody
	// can say.
	goal func(*host) (digest string, known bool)
	// turned is called with each host that has come online, has fallen silent or was deleted.
	turned func(name string)
	// joined is when a host was first heard of that was not known.
	joined time.Time
	// versions are what hosts have reported, versionsRead the revision of the
	// store up to which that was read; versionsComplete tells that all reports
	// that were there at the start have been read. While they are read anew,
	// unconfirmed are the hosts whose report was not seen again so far.
	versions map[string]reported
	// recent are the last reports, oldest first, for the event stream.
	recent           []recentReport
	unconfirmed      map[string]bool
	versionsRead     uint64
	versionsComplete bool
}

// host is what is known of a host.
type host struct {
	store.Host
	// seen is when its worker was last heard of; zero when not since the
	// start.
	seen time.Time
	// placed tells that it was decided before in which environment it is.
	placed bool
	// skew is how far its clock was ahead of the site's at the last heartbeat.
	skew time.Duration
	// changes is how many packages an upgrade would change, as its last heartbeat said; nil
	// while its worker does not know. offersBy is the digest of the release of that upgrade.
	changes    *int
	offersBy   string
	told       toldGoal
	progress   message.Progress
	progressAt time.Time
	// self is what it has and lacks for a run, as it said last.
	self message.SelfReport
	// outputAskedAt is when it was asked last for what its action has printed, lookAskedAt when
	// for what an upgrade would change.
	outputAskedAt, lookAskedAt time.Time
}

// reported is what a host said of its versions, and when.
type reported struct {
	versions map[string]string
	at       time.Time
}

// recentReport is a report and the revision of the store that it has.
type recentReport struct {
	number uint64
	v1.VersionsEvent
}

// maxRecent bounds the reports that are kept for the event stream.
const maxRecent = 256

// telemetry is the latest that a host has said of itself, and when; a zero time means
// that it has said nothing of the kind.
type telemetry struct {
	alive      message.Alive
	aliveAt    time.Time
	progress   message.Progress
	progressAt time.Time
	// outcome is of the last task that it has told of; nil for none.
	outcome *message.Outcome
	// planned is the run whose plan of the host was stored last; 0 for none.
	planned uint64
}

func newHosts(o Options) hosts {
	return hosts{
		tenant: o.Tenant, logger: o.Logger, given: o.Labels, known: map[string]*host{}, deleted: map[string]run.Deletion{}, present: newPresence(),
		goal: func(*host) (string, bool) { return "", true }, turned: func(string) {}, versions: map[string]reported{}, busy: map[string]*message.NotNow{},
	}
}

// heard notes a heartbeat. It reports whether what the host says of itself is new,
// and whether anything has changed that a run may depend on: the heartbeat of a host that
// is known and online changes nothing.
func (h *hosts) heard(name string, a message.Alive, at time.Time) (described, changed bool) {
	h.expire(at)
	a.Labels = h.labels(name, a.Labels)
	known := h.known[name]
	if described = known == nil; described {
		known = &host{Host: store.Host{Tenant: h.tenant, Name: name}}
		h.known[name], h.order = known, nil
		delete(h.deleted, name)
		h.joined = at
	}
	wasOnline := h.present.online(name)
	had := known.hasRelease()
	known.seen, known.self, known.changes, known.offersBy = at, a.SelfReport, a.Changes, a.Release
	h.present.hear(name, at)
	if described = described || !says(a, &known.Host); described {
		known.Application, known.AgentVersion, known.Protocol = a.Application, a.AgentVersion, a.Protocol
		known.Role, known.Labels, known.Releases, known.Rollbacks = a.Role, a.Labels, a.Releases, a.Rollbacks
	}
	if !wasOnline {
		h.logger.Info("host is online", "tenant", h.tenant, "host", name, "application", a.Application)
		h.turned(name)
	}
	before := h.busy[name]
	h.busy[name] = a.Busy
	told := (before == nil) != (a.Busy == nil) || before != nil && !before.Equal(*a.Busy)
	changed = described || !wasOnline || told || had != known.hasRelease()
	since := outdatedSince(known.OutdatedSince, h.wouldChange(known), view.Time(at))
	described = described || !since.Equal(known.OutdatedSince)
	known.OutdatedSince = since
	return described, changed
}

// labels returns the labels of a host that says of itself that it has some: those that it was
// given win.
func (h *hosts) labels(name string, said map[string]string) map[string]string {
	if h.given == nil {
		return said
	}
	given := h.given(name)
	if len(given) == 0 {
		return said
	}
	all := make(map[string]string, len(said)+len(given))
	maps.Copy(all, said)
	maps.Copy(all, given)
	return all
}

// says reports whether a heartbeat describes its host as it is known.
func says(a message.Alive, known *store.Host) bool {
	return a.Application == known.Application && a.AgentVersion == known.AgentVersion &&
		a.Protocol == known.Protocol && a.Role == known.Role && maps.Equal(a.Labels, known.Labels) && slices.Equal(a.Releases, known.Releases) && a.Rollbacks == known.Rollbacks
}

// progressed notes what a host tells for people, and reports whether it is
// known: nothing is decided on it.
func (h *hosts) progressed(name string, p message.Progress, at time.Time) bool {
	host, known := h.known[name]
	if known {
		host.progress, host.progressAt = p, at
	}
	return known
}

// told is what a member of a run has told of its present status; zero when it has told
// nothing.
func (h *hosts) told(r *run.State, member run.Host) view.Told {
	host := h.known[member.Name]
	if host == nil {
		return view.Told{}
	}
	return view.ToldOf(r, member, host.progress, host.progressAt)
}

// endActions shows of each host that ends its action itself before the run gives it up when it does
// so, as far as it has told its limit. The limit counts from a moment after the command, so this
// is about when.
func (h *hosts) endActions(shown *v1.Run, now time.Time) {
	for i := range shown.Hosts {
		host := &shown.Hosts[i]
		known, status := h.known[host.Hostname], run.Status(host.Status)
		if known == nil || known.self.ActionLimitSeconds == 0 || host.Since == nil || host.GivesUpAt == nil || status != run.HostPreparing && status != run.HostUpgrading {
			continue
		}
		givesUp, ends := *host.GivesUpAt, host.Since.Add(time.Duration(known.self.ActionLimitSeconds)*time.Second)
		if !ends.After(now) || !ends.Before(givesUp) {
			continue
		}
		host.GivesUpAt = &ends
		if w := shown.WaitingFor; w != nil && w.Until != nil && w.Until.Equal(givesUp) && len(w.Hosts) == 1 && w.Hosts[0] == host.Hostname {
			w.Until = &ends
		}
	}
}

// expire notes who has fallen silent. After a time in which this process was
// stopped nobody has: nobody listened.
func (h *hosts) expire(now time.Time) {
	if late, was := h.stall.wasAway(now); was {
		h.logger.Warn("nothing was decided for a while: the agent was stopped",
			"tenant", h.tenant, "late", late, "judging-at", h.stall.judgeAt)
		h.present.hearAll(now)
	}
	for _, name := range h.present.expire(now) {
		h.logger.Warn("host is silent", "tenant", h.tenant, "host", name, "for", message.Silence)
		delete(h.busy, name)
		h.turned(name)
	}
}

// jump follows a jump of the clock: who is online was heard of now.
func (h *hosts) jump(c clockJump) {
	h.stall.jump(c)
	h.present.hearAll(c.to)
	h.present.setBack(c.to)
	for _, known := range h.known {
		known.seen, known.progressAt = times.Earlier(known.seen, c.to), times.Earlier(known.progressAt, c.to)
	}
}

// isOnline reports whether a host is online now.
func (h *hosts) isOnline(name string, now time.Time) bool {
	h.expire(now)
	return h.present.online(name)
}

// delete drops a host that was deleted from the store.
func (h *hosts) delete(name string, d run.Deletion) {
	h.byEnvironment.leave(h.known[name])
	h.ran.leave(h.known[name])
	delete(h.known, name)
	h.order = nil
	delete(h.versions, name)
	h.deleted[name] = d
	h.present.forget(name)
	delete(h.busy, name)
	h.turned(name)
}

// sorted returns all known hosts by name.
func (h *hosts) sorted() []*host {
	if h.order == nil {
		h.order = slices.SortedFunc(maps.Values(h.known), func(a, b *host) int { return strings.Compare(a.Name, b.Name) })
	}
	return h.order
}

// listed returns those of some hosts whose application is one of a list, for a run
// of those that only names; nil names all.
func (h *hosts) listed(of map[string]*host, applications []v1.WorkerApplication, only map[string]bool) []plan.Host {
	var fleet []plan.Host
	for name, host := range having(of, applications) {
		fleet = append(fleet, plan.Host{
			Name: name, Application: host.Application, Role: host.Role, Labels: host.Labels, Silent: !h.present.online(name),
			NonMember: only != nil && !only[name],
		})
	}
	return fleet
}

// having returns those of some hosts whose application is one of a list, in no order.
func having(of map[string]*host, applications []v1.WorkerApplication) iter.Seq2[string, *host] {
	listed := map[string]bool{}
	for _, a := range applications {
		listed[a.Name] = true
	}
	return func(yield func(string, *host) bool) {
		for name, host := range of {
			if listed[host.Application] && !yield(name, host) {
				return
			}
		}
	}
}

// ended notes how each host has come out of a run that has ended. live means that the run ends now,
// and is not folded again after a start; only then does what hosts say belong to its end. An
// upgraded host whose worker cannot tell what is left to change is no longer outdated. keep is
// called with it, because the log does not record that.
func (h *hosts) ended(r *run.State, live bool, keep func(store.Host)) {
	for _, member := range r.Hosts() {
		known := h.known[member.Name]
		if known == nil || isNoted(known.LastRun, r.Key()) {
			continue
		}
		h.ran.leave(known)
		known.LastRun = view.HostRun(r, member)
		if r.ID != 0 { // A run that has prepared no host leaves the window to the next one.
			known.MissedSince = missedSince(known.MissedSince, member.Status, view.Time(r.EndedAt))
		}
		if run.Changed(r, member) {
			known.ChangedBy = r.Key()
		}
		if member.Status == run.Upgraded {
			has := hasAfter(known.Host, r)
			known.Release, known.Was = has.Release, has.Was
		}
		h.ran.enter(known)
		if live && member.Status == run.Upgraded && h.wouldChange(known) == nil && !known.OutdatedSince.IsZero() {
			known.OutdatedSince = time.Time{} // Its worker may never say that nothing is left to change.
			keep(known.Host)
		}
	}
}

// isNoted reports whether a host's last run covers the end of a run for good, so that it is not
// noted again: what the host has said since must stay.
func isNoted(last v1.HostRun, id uint64) bool {
	return last.ID > id || last.ID == id && last.Status == string(run.Upgraded)
}

// outdatedSince returns since when a host is outdated, after a heartbeat: an upgrade that begins
// now would change so many packages; nil is not known. before is since when it was; zero when it
// was not.
func outdatedSince(before time.Time, changes *int, heard time.Time) time.Time {
	switch {
	case changes == nil:
		return before
	case *changes == 0:
		return time.Time{}
	case before.IsZero():
		return heard
	}
	return before
}

// missedSince returns since when a host has missed its upgrades, after a run of which it was a
// member has ended. before is since when it had; zero when it had not.
func missedSince(before time.Time, status run.Status, ended time.Time) time.Time {
	switch {
	case status == run.Upgraded:
		return time.Time{}
	case before.IsZero():
		return ended
	}
	return before
}

// rereadVersions is called before all reports are read from the beginning.
func (h *hosts) rereadVersions() {
	h.unconfirmed = map[string]bool{}
	for name := range h.versions {
		h.unconfirmed[name] = true
	}
}

// report notes what a host reported of its versions.
func (h *hosts) report(r store.Reported) {
	if r.Key == "" { // The end of those that were there at first.
		for name := range h.unconfirmed {
			delete(h.versions, name)
		}
		h.versionsComplete, h.unconfirmed = true, nil
		return
	}
	name, _ := log.Host(r.Key)
	delete(h.unconfirmed, name)
	delete(h.versions, name)
	versions, err := map[string]string(nil), r.Err
	if err == nil && r.Body != nil {
		if versions, err = message.DecodeVersions(r.Body); err == nil {
			h.versions[name] = reported{versions: versions, at: r.At}
			h.announce(name, r)
		}
	}
	if err != nil {
		h.logger.Warn("versions ignored", "tenant", h.tenant, "host", r.Key, "error", err)
	}
	h.versionsRead = max(h.versionsRead, r.Number)
}

// announce notes a report for the event stream, unless it is one of those that were
// there when the reading of all reports began.
func (h *hosts) announce(name string, r store.Reported) {
	if !h.versionsComplete || r.Number <= h.versionsRead {
		return
	}
	e := v1.VersionsEvent{Hostname: name, VersionReport: v1.VersionReport{At: r.At}}
	if len(r.History) > 0 {
		e.VersionReport = r.History[0]
	}
	e.At = view.Time(e.At)
	h.recent = append(h.recent, recentReport{r.Number, e})
	h.recent = h.recent[max(0, len(h.recent)-maxRecent):]
}

// reportsSince returns the reports after a revision that the event stream has
// not told, and the revision up to which it then has.
func (h *hosts) reportsSince(number uint64) (events []v1.VersionsEvent, upTo uint64) {
	for _, r := range h.recent {
		if r.number > number {
			events = append(events, r.VersionsEvent)
		}
	}
	return events, h.versionsRead
}

// count returns how many hosts there are.
func (h *hosts) count(now time.Time) int {
	h.expire(now)
	return len(h.known)
}

// view shows those of the known hosts that a filter chooses, by name. newest returns the newest run that people see of the
// environment in whose runs a host is; nil is none.
func (h *hosts) view(now time.Time, newest func(host string) *run.State, filter v1.HostFilter) []v1.Host {
	h.expire(now)
	chosen := h.sorted()
	if filter.After != "" {
		first, found := slices.BinarySearchFunc(chosen, filter.After, func(h *host, after string) int { return strings.Compare(h.Name, after) })
		if found {
			first++
		}
		chosen = chosen[first:]
	}
	if !filter.IsZero() {
		chosen = fitting(chosen, filter.Matcher(), filter.Limit)
	}
	if filter.Limit > 0 {
		chosen = chosen[:min(len(chosen), filter.Limit)]
	}
	all := make([]v1.Host, len(chosen))
	for i, host := range chosen {
		all[i] = h.viewOf(host, newest(host.Name))
	}
	return all
}

// fitting returns the hosts that a selector chooses: the first ones up to a limit, or all if that
// is 0.
func fitting(all []*host, selector v1.Matcher, limit int) (chosen []*host) {
	for _, h := range all {
		if selector.Fits(h.Name, h.Role, h.inEnvironment(), h.Labels) {
			if chosen = append(chosen, h); len(chosen) == limit {
				break
			}
		}
	}
	return chosen
}

// inEnvironment is the name of the environment that the host is in; empty for none.
func (h *host) inEnvironment() string {
	if h.Unplaced {
		return ""
	}
	return nameOf(h.Environment)
}

// viewOf shows a host.
func (h *hosts) viewOf(host *host, newest *run.State) v1.Host {
	r := h.versions[host.Name]
	shown := v1.Host{
		Hostname: host.Name, Application: host.Application, Online: h.present.online(host.Name), LastSeen: view.OptionalTime(host.seen),
		Role: host.Role, Labels: host.Labels, AgentVersion: host.AgentVersion, Protocol: host.Protocol,
		Strategy: host.self.Strategy,
		Versions: r.versions, VersionsAt: view.OptionalTime(r.at), OutdatedSince: view.OptionalTime(host.OutdatedSince), MissedSince: view.OptionalTime(host.MissedSince),
	}
	if h.byEnvironment != nil {
		host.showWhere(&shown)
	}
	if said := h.busy[host.Name]; said != nil {
		shown.Busy = &v1.HostBusy{Reason: said.Reason, Until: said.Until}
	}
	has := host.has(newest)
	shown.Release, shown.Was = has.Release.Name, has.Was.Name
	last := host.LastRun
	if newest != nil {
		if member, found := newest.Host(host.Name); found {
			last = view.HostRun(newest, member)
			if member.Status == run.Upgraded {
				shown.MissedSince = nil // Also before the end of the run, at which that is noted.
			}
		}
	}
	if last.ID != 0 {
		shown.LastRun = &last
	}
	return shown
}

// turned has the runs that count a host be told whether it is online.
func (s *state) turned(host string) {
	s.lastOf(host).unreported[host] = true
	s.wake(host)
	if len(s.intent.budgets) == 0 || !s.ledger.Unwatched(host) {
		return
	}
	for _, env := range s.inOrder { // It may share a cell with hosts of any run.
		env.unreported[host] = true
		env.rouse()
	}
}
