package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Ledger is the fold of a whole log: one run after the other.
type Ledger struct {
	// LastCommand is the sequence of the last record that a controller wrote;
	// the next one must be based on it, or the log refuses it (log.ErrBehind).
	LastCommand uint64
	// LastSeq is the sequence of the last record folded.
	LastSeq uint64
	// Ignored counts the records that changed nothing.
	Ignored uint64

	newest, ended *State
	// roster is nil before the first run.
	roster *roster.Roster
	// cells count the hosts that are out of service for the disruption budgets of the tenant.
	cells  roster.Cells
	missed *message.Missed
	// considered is when the last window opened that had its run or was missed:
	// the last one on the log, whatever clock it went by.
	considered time.Time
}

// Missed returns the window that was missed last, or nil. One that has not closed by now was
// missed by a wrong clock alone.
func (l *Ledger) Missed(now time.Time) *message.Missed {
	if l.missed == nil || l.missed.WindowEnd.After(now) {
		return nil
	}
	return l.missed
}

// Roster knows which hosts are out of service, before, during and after runs.
func (l *Ledger) Roster() *roster.Roster {
	if l.roster == nil {
		return &roster.Roster{}
	}
	return l.roster
}

// Cells count the hosts that are out of service for the disruption budgets of the tenant.
func (l *Ledger) Cells() *roster.Cells { return &l.cells }

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
	if e, edited := r.Event.(message.Budgeted); edited {
		return l.budgeted(r, e)
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

// budgeted puts edited budgets in force while a run is under way. Between runs nobody leaves
// service, and the next one is opened with its cells.
func (l *Ledger) budgeted(r message.Decoded, e message.Budgeted) error {
	current := l.Current()
	if current == nil {
		return fmt.Errorf("no run is under way whose budgets record %d could change", r.Seq)
	}
	current.follow(r.Time)
	l.cells.Edit(e)
	current.budgeted(r)
	return nil
}

// open begins the next run.
func (l *Ledger) open(r message.Record, e message.Opened) {
	l.roster = roster.Open(e, r.Time)
	l.cells.Open(e, l.roster)
	l.newest = open(r, e, l.roster)
	if l.missed != nil && !e.Window.IsZero() && e.Window.Before(l.missed.WindowEnd) {
		l.missed = nil // It had not closed yet: the clock was wrong, and the window has its run now or later.
	}
	switch {
	case !e.Window.IsZero():
		l.considered = e.Window
	case !e.Considered.IsZero(): // What came before may be trimmed.
		l.considered = e.Considered
	}
}
