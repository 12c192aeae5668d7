package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// witnesses compares what hosts have seen of the log with what is on it.
type witnesses struct {
	log log.Log
	guard.Witness
	// suspects are the positions that are not on the log as far as it is folded, by
	// host. The log may have more records by now.
	suspects map[string]message.Position
	// elsewhere are the hosts that are at work on a command of another log: the site was
	// restored, and does not know of it.
	elsewhere map[string]bool
	// known are what hosts know of the log that is not on it, by host.
	known map[string]error
	// furthest is the highest sequence that any of them knows.
	furthest uint64
}

func newWitnesses(o Options) witnesses {
	return witnesses{log: o.Log, Witness: guard.NewWitness(), suspects: map[string]message.Position{}, elsewhere: map[string]bool{}, known: map[string]error{}}
}

// hear notes the position of a host, and reports whether there is something to decide. A
// position on another log says nothing of this one.
func (w *witnesses) hear(host string, p *message.Position) (changed bool) {
	elsewhere := p != nil && p.Log != w.log.Identity() && p.Busy
	if changed = elsewhere != w.elsewhere[host]; elsewhere {
		w.elsewhere[host] = true
	} else {
		delete(w.elsewhere, host)
	}
	if p != nil && p.Log == w.log.Identity() && w.Compare(host, *p) != nil {
		w.suspects[host], changed = *p, true
	}
	return changed
}

// hold is what holds up every run while a host is at work on a command of the log before
// the site was restored: it is out of service, and the run does not know. A host that is
// silent holds up nothing: the run counts it as such.
func (w *witnesses) hold(online func(host string) bool) *message.Paused {
	var busy []string
	for host := range w.elsewhere {
		if online(host) {
			busy = append(busy, host)
		}
	}
	if len(busy) == 0 {
		return nil
	}
	slices.Sort(busy)
	return &message.Paused{By: message.ByAgent, Why: "at work on commands from before the site was restored: " + text.List(busy, mostNamed)}
}

// compare compares the log with all suspects once it is folded as far as it goes, and
// reports whether any of them knows more. folded is the newest record that is folded.
func (w *witnesses) compare(ctx context.Context, folded uint64) (found bool, err error) {
	if len(w.suspects) == 0 {
		return false, nil
	}
	if last, err := w.log.Last(ctx); err != nil || last > folded {
		return false, err
	}
	for host, position := range w.suspects {
		if err := w.Compare(host, position); err != nil {
			w.known[host], found = err, true
			w.furthest = max(w.furthest, position.Seq)
		}
	}
	w.suspects = map[string]message.Position{}
	return found, nil
}

// mostNamed is how many hosts are named that know more of the log than the log.
const mostNamed = 3

// errOlderCopy means that hosts know more of the log than is on it.
var errOlderCopy = errors.New("the log is not the one that its hosts know, but an older copy")

// err says which hosts know more.
func (w *witnesses) err() error {
	hosts := slices.Sorted(maps.Keys(w.known))
	var reasons []string
	for _, host := range hosts[:min(len(hosts), mostNamed)] {
		reasons = append(reasons, w.known[host].Error())
	}
	if more := len(hosts) - len(reasons); more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more know such things", more))
	}
	return fmt.Errorf("%w: %s", errOlderCopy, strings.Join(reasons, "; "))
}

// compareWitnesses has the alarm raised if a host knows more of the log than is on it.
// What is told of further hosts is added to the alarm.
func (s *state) compareWitnesses(ctx context.Context) {
	found, err := s.witnesses.compare(ctx, s.ledger.LastSeq)
	if err != nil {
		s.Logger.Warn("cannot compare the log with what its hosts know of it", "tenant", s.Tenant, "error", err)
	}
	switch {
	case !found:
		return
	case errors.Is(s.alarm, errOlderCopy):
		s.setAlarm(s.witnesses.err()) // It names all hosts.
	default:
		s.raise(s.witnesses.err()) // Another alarm stays.
	}
	s.guard.told(s.witnesses.furthest)
}
