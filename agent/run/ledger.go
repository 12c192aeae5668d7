package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Ledger is the fold of a whole log: one run after the other.
type Ledger struct {
	// LastCommand is the sequence of the last record that a controller wrote;
	// the next one must be based on it (design.md 4, "one writer").
	LastCommand uint64
	// LastSeq is the sequence of the last record folded.
	LastSeq uint64
	// Ignored counts the records that changed nothing.
	Ignored uint64

	newest, ended *State
	missed        *message.Missed
	// considered is when the last window opened that had its run or was missed:
	// the last one on the log, whatever clock it went by.
	considered time.Time
}

// Missed returns the window that was missed last, or nil.
func (l *Ledger) Missed() *message.Missed { return l.missed }

// OutOfService returns the hosts that are out of service since the last run, which
// has ended.
func (l *Ledger) OutOfService() map[string]bool {
	hosts := map[string]bool{}
	if l.newest != nil {
		for _, e := range l.newest.roster.Lasting() {
			hosts[e.Host] = true
		}
	}
	return hosts
}

// Opening returns the roster that the next run is opened with: the members that
// are silent, the hosts that count and are no members, and whoever is out of service
// since the runs before.
func (l *Ledger) Opening(silent []string, others []message.Entry) []message.Entry {
	entries := slices.Clone(others)
	for _, host := range silent {
		entries = append(entries, message.Entry{Host: host, Silent: true})
	}
	if l.newest == nil {
		return entries
	}
	known := make(map[string]int, len(entries))
	for i, e := range entries {
		known[e.Host] = i
	}
	for _, lasting := range l.newest.roster.Lasting() {
		i, listed := known[lasting.Host]
		switch {
		case !listed:
			entries = append(entries, lasting)
		case lasting.Owes.Any() || entries[i].Silent: // Who was silent and is not has recovered.
			entries[i].Since, entries[i].Owes = lasting.Since, lasting.Owes
		}
	}
	return entries
}

// Considered is when the last window opened that had its run or was missed;
// zero when none did. Windows before it are done with.
func (l *Ledger) Considered() time.Time { return l.considered }

// Newest returns the run that was opened last, ended or not; nil before the
// first.
func (l *Ledger) Newest() *State { return l.newest }

// Current returns the run that is under way, or nil.
func (l *Ledger) Current() *State {
	if l.newest == nil || l.newest.Over() {
		return nil
	}
	return l.newest
}

// Ended returns the last run that has ended, or nil.
func (l *Ledger) Ended() *State { return l.ended }

// Fold applies the next record. An error means that it changed no run, and
// says why. A record that was folded before is passed over in silence: a
// reader that starts again may deliver it twice.
func (l *Ledger) Fold(r message.Decoded) error {
	if r.Seq <= l.LastSeq {
		return nil
	}
	l.LastSeq = r.Seq
	if r.Kind == message.CommandAll || r.Kind == message.CommandHost || r.Kind == message.EventRecord {
		l.LastCommand = r.Seq
	}
	err := l.fold(r)
	if err != nil {
		l.Ignored++
	}
	return err
}

func (l *Ledger) fold(r message.Decoded) error {
	if _, skipped := r.Event.(message.Skipped); skipped {
		return nil
	}
	if l.Current() == nil && r.Kind == message.EventRecord {
		switch e := r.Event.(type) {
		case nil:
			return r.Err
		case message.Missed:
			l.missed, l.considered = &e, e.Window
			return nil
		case message.Opened:
			l.open(r.Record, e)
			return nil
		}
	}
	if l.newest == nil {
		return fmt.Errorf("record %d belongs to no run", r.Seq)
	}
	err := l.newest.Fold(r)
	if l.newest.Over() {
		l.ended = l.newest
	}
	return err
}

// open begins the next run.
func (l *Ledger) open(r message.Record, e message.Opened) {
	l.newest = open(r, e)
	switch {
	case !e.Window.IsZero():
		l.considered = e.Window
	case !e.Considered.IsZero(): // What came before may be trimmed.
		l.considered = e.Considered
	}
}
