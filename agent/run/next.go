package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Act is what a step asks for.
type Act int

// The acts of a step.
const (
	// Wait asks for nothing before Step.Until or the next record.
	Wait Act = iota
	// Send asks for Step.Command to be appended to the log.
	Send
	// Finish asks for Step.Event to be appended to the log.
	Finish
)

// Step is what has to happen next.
type Step struct {
	Act     Act
	Command message.Command
	Event   message.Event
	// Until is when to ask again if no record comes before.
	Until time.Time
	// Silent are the hosts whose recovery a Wait waits for: once one is heard
	// of or deleted, an event Recovered has to be appended. The caller must not
	// change it.
	Silent []string
}

// Next returns the run's next step at a time: prepare everybody, then upgrade
// one host at a time, stop at the first failure, end at not-after (AV-59 to
// AV-68). A silent host is out of service like one that is being upgraded, so
// while there is one no host is upgraded (design.md 5, invariant 1).
func (s *State) Next(now time.Time) Step {
	switch {
	case s.Over():
		return Step{}
	case !now.Before(s.NotAfter):
		return s.timedOut()
	case s.Phase == Open:
		return send(message.Command{Action: message.Prepare, Hosts: s.pending(), NotAfter: s.NotAfter})
	case s.failed >= 0:
		return s.stop(s.hosts[s.failed])
	case s.counts[Pending]+s.counts[HostPreparing] > 0:
		return Step{Until: s.NotAfter}
	case s.busy >= 0 && s.hosts[s.busy].Status == RebootPending:
		return send(message.Command{Action: message.Reboot, Host: s.hosts[s.busy].Name})
	case s.busy >= 0:
		return Step{Until: s.NotAfter}
	case s.blocked():
		return Step{Until: s.NotAfter, Silent: s.silent}
	case s.next < len(s.hosts):
		return send(message.Command{Action: message.Upgrade, Host: s.hosts[s.next].Name})
	}
	return s.end()
}

// blocked reports whether a host that has its turn has to wait because a
// silent one holds the slot.
func (s *State) blocked() bool { return s.next < len(s.hosts) && len(s.silent) > 0 }

func send(c message.Command) Step { return Step{Act: Send, Command: c} }

func finish(result Result, reason string) Step {
	return Step{Act: Finish, Event: message.Event{Event: message.Finished, Result: string(result), Reason: reason}}
}

func (s *State) pending() []string {
	hosts := make([]string, 0, s.counts[Pending])
	for _, h := range s.hosts {
		if h.Status == Pending {
			hosts = append(hosts, h.Name)
		}
	}
	return hosts
}

func (s *State) stop(h Host) Step {
	return finish(Failed, message.CleanText(fmt.Sprintf("host %s failed: %s", h.Name, h.Error)))
}

func (s *State) timedOut() Step {
	reason := "not-after " + s.NotAfter.UTC().Format(time.RFC3339) + " has passed"
	if waiting, ok := s.Waiting(); ok {
		reason += "; the run was waiting for " + waiting.Detail
	}
	return finish(TimedOut, reason)
}

func (s *State) end() Step {
	if s.counts[Upgraded] == len(s.hosts) {
		return finish(Completed, fmt.Sprintf("%d of %d hosts upgraded", len(s.hosts), len(s.hosts)))
	}
	return finish(Partial, fmt.Sprintf("%d of %d hosts upgraded; left out: %s",
		s.counts[Upgraded], len(s.hosts), s.names(func(st Status) bool { return st != Upgraded })))
}

// What a run may wait for.
const (
	// ForHost means that a host has yet to answer.
	ForHost = "host"
	// Slot means that a silent host counts as out of service in its place.
	Slot = "slot"
)

// Waiting is what a run waits for, and since when.
type Waiting struct {
	// What is ForHost or Slot.
	What   string
	Detail string
	Since  time.Time
}

// silentDetail says which hosts hold the slot, and how it becomes free.
func (s *State) silentDetail() string {
	verb := "is"
	if len(s.silent) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s, which %s silent, to come back or to be deleted", list(s.silent), verb)
}

// Waiting tells what the run waits for; false when it waits for nothing.
func (s *State) Waiting() (Waiting, bool) {
	switch {
	case s.Over() || s.Phase == Open:
		return Waiting{}, false
	case s.busy >= 0:
		h := s.hosts[s.busy]
		return Waiting{What: ForHost, Detail: fmt.Sprintf("%s to answer %s", h.Name, h.Status.asked()), Since: h.Since}, h.Status.asked() != ""
	case s.counts[HostPreparing] > 0:
		names := s.names(func(st Status) bool { return st == HostPreparing })
		return Waiting{What: ForHost, Detail: names + " to answer prepare", Since: s.changed}, true
	case s.failed < 0 && s.blocked():
		return Waiting{What: Slot, Detail: s.silentDetail(), Since: s.OpenedAt}, true
	}
	return Waiting{}, false
}

// names lists the hosts whose status fits.
func (s *State) names(fits func(Status) bool) string {
	var names []string
	for _, h := range s.hosts {
		if fits(h.Status) {
			names = append(names, h.Name)
		}
	}
	return list(names)
}

// maxNames bounds how many hosts a sentence names.
const maxNames = 3

// list is names as people read them.
func list(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}
