package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Overdue is a host that takes unusually long in its phase: it may be right to wait for it until its
// limit, but a person should look. A host that falls silent in it is overdue at once,
// unless it reboots.
//
// A phase takes unusually long after three times as long as other hosts of the run took for it,
// and no sooner than after five minutes. As long as no other host has passed it, that is half of
// its limit.
type Overdue struct {
	Host, Stage string
	// Awaited is what the run waits for.
	Awaited message.Awaited
	// Waiting has it in words, since when the phase lasts and until when the run waits.
	Waiting
	// From is since when the host is overdue.
	From time.Time
	// Silent is since when the host has not been heard of; zero while it is heard of.
	Silent time.Time
	// Usual is how long the phase took other hosts; zero when none has passed it.
	Usual time.Duration
}

const (
	// unusual is how many times as long as for other hosts a phase may take.
	unusual = 3
	// soonest is how long each phase may take, however fast other hosts were: some machines
	// take minutes to boot.
	soonest = 5 * time.Minute
)

// Why says in words why the host is overdue. The text stays the same while the host is overdue
// for the same reason.
func (o Overdue) Why() string {
	if !o.Silent.IsZero() {
		return "it has been silent since " + stamp(o.Silent)
	}
	return "this takes unusually long"
}

// Overdue returns the hosts that are overdue, those first that have been so for longest.
// silent are the hosts that are not heard of, and since when: the log does not tell that of a
// host at work, because it is out of service anyway. Neither the hosts at work that are in
// time nor those that have yet to answer prepare are looked at one by one.
func (s *State) Overdue(now time.Time, silent map[string]time.Time) []Overdue {
	if s.Over() {
		return nil
	}
	var all []Overdue
	for _, a := range awaited {
		from := s.overdueAfter(a.phase, a.Awaited)
		for _, t := range s.waitedFor(a.phase, now.Add(-from)) {
			all = append(all, s.overdueHost(t, t.since.Add(from), silent))
		}
	}
	late := make(map[string]int, len(all)) // Where each host is among all.
	for i := range all {
		late[all[i].Host] = i
	}
	for host, since := range silent {
		i, err := s.member(host)
		if err != nil || s.members[i].IsAbsent() || !s.members[i].needsContact() {
			continue
		}
		t := ticket{host: i, since: times.Later(s.members[i].since, since)}
		if n, is := late[host]; !is {
			all = append(all, s.overdueHost(t, t.since, silent))
		} else {
			all[n].From = times.Sooner(all[n].From, t.since)
		}
	}
	slices.SortFunc(all, func(a, b Overdue) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Host, b.Host)) })
	return all
}

func (s *State) overdueHost(t ticket, from time.Time, silent map[string]time.Time) Overdue {
	m := &s.members[t.host]
	w, works := s.busyWith(m)
	if !works {
		w = Waiting{What: ForHost, Detail: m.Name + " to answer prepare", Since: s.sentAt, Until: s.givesUp(m), Hosts: []string{m.Name}}
	}
	return Overdue{
		Host: m.Name, Stage: s.stages.list[m.Group].Name, Awaited: awaitedAt(m.phase), Waiting: w,
		From: from, Silent: silent[m.Name], Usual: s.paces[m.phase].usual,
	}
}

// needsContact reports whether the run waits for a host in a phase in which it should be heard
// of: a host that reboots is not.
func (m *member) needsContact() bool {
	switch m.phase {
	case preparing:
		return m.isAwaited()
	case draining, upgrading, checkingAfter, undraining:
		return true
	}
	return false
}

// overdueAfter is after how long a phase takes unusually long.
func (s *State) overdueAfter(at hostPhase, a message.Awaited) time.Duration {
	limit := s.rollout.limit(a)
	if s.paces[at].count == 0 {
		return limit / 2
	}
	return min(limit, max(soonest, unusual*s.paces[at].usual))
}

// waitedFor returns the hosts that came to a phase by a time, and that the run waits for.
func (s *State) waitedFor(at hostPhase, by time.Time) (all []ticket) {
	for _, t := range s.queues[at] {
		if t.since.After(by) {
			break
		}
		if !t.isVoid(s.members) {
			all = append(all, t)
		}
	}
	if at == preparing && !s.sentAt.IsZero() && !s.sentAt.After(by) && s.counts.unprepared > 0 {
		for i := range s.members {
			if s.members[i].isAwaited() {
				all = append(all, ticket{host: i, since: s.sentAt})
			}
		}
	}
	return all
}

// nextOverdue is when the next host becomes overdue by time alone; zero when none will.
func (s *State) nextOverdue(now time.Time) (at time.Time) {
	for _, a := range awaited {
		unprepared := a.phase == preparing && s.counts.unprepared > 0
		if len(s.queues[a.phase]) == 0 && !unprepared {
			continue
		}
		after := s.overdueAfter(a.phase, a.Awaited)
		if from := s.sentAt.Add(after); unprepared && from.After(now) {
			at = times.Sooner(at, from)
		}
		for _, t := range s.queues[a.phase] {
			if from := t.since.Add(after); from.After(now) {
				at = times.Sooner(at, from)
				break
			}
		}
	}
	return at
}
