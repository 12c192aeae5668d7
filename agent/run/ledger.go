package run

import (
	"fmt"
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
	missed        *Missed
	// considered is when the last window opened that had its run or was missed:
	// the last one on the log, whatever clock it went by.
	considered time.Time
}

// Missed is a window that has closed without a run.
type Missed struct {
	Start, End time.Time
	Reason     string
}

// Missed returns the window that was missed last, or nil.
func (l *Ledger) Missed() *Missed { return l.missed }

// Unwell returns the hosts that hold a slot since the run that ended last. The
// next one is opened with them.
func (l *Ledger) Unwell() []message.Unwell {
	if l.newest == nil || !l.newest.Over() {
		return nil
	}
	return l.newest.roster.Unwell()
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

// Fold takes in the next record. An error means that it changed no run, and
// says why. A record that was folded before is passed over in silence: a
// reader that starts again may deliver it twice.
func (l *Ledger) Fold(r message.Record) error {
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

func (l *Ledger) fold(r message.Record) error {
	if l.Current() == nil && r.Kind == message.EventRecord {
		event, err := message.DecodeEvent(r.Body)
		switch {
		case err != nil:
			return err
		case event.Event == message.Missed:
			l.miss(event)
			return nil
		case event.Event == message.Opened:
			l.open(r, event)
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

// miss notes a window without a run.
func (l *Ledger) miss(e message.Event) {
	l.missed = &Missed{Start: *e.Window, End: *e.NotAfter, Reason: e.Reason}
	l.considered = l.missed.Start
}

// open begins the next run.
func (l *Ledger) open(r message.Record, e message.Event) {
	l.newest = open(r, e)
	switch {
	case e.Window != nil:
		l.considered = *e.Window
	case e.Considered != nil: // What came before may be trimmed.
		l.considered = *e.Considered
	}
}
