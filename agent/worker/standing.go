package worker

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// standing is how a worker stands towards the host's one seat (AV-15).
type standing int

const (
	// asking means that it was asked for and the answer may come any moment.
	asking standing = iota
	// unheard means that no answer came: the site cannot be reached.
	unheard
	// taken means that another worker has it.
	taken
	// held means that this worker has it.
	held
)

// What there is to do because of the seat.
const (
	// DoStand waits until the worker stands otherwise.
	DoStand Do = "stand"
	// DoSucceed begins anew after another worker, or without a journal.
	DoSucceed Do = "succeed"
)

// allow returns what a worker that stands so may do, of what its journal says
// that there is to do. away tells that another worker has had the seat since
// the journal's run was taken up, or may have.
//
// That two workers of a host never both upgrade it in one run (design.md 5,
// invariant 2) rests on this: only the worker that took up the run's prepare
// as its own and answered it from the seat goes on to the upgrade.
//
//   - A worker takes nothing up that was on the log when it last came into the
//     seat from elsewhere (DoSucceed); it answers that with an error, and so
//     all that follows in the same run.
//   - So two workers that both take up one prepare both came into the seat
//     before it was sent. The one that came first had lost the seat by then,
//     without knowing: its answer to the prepare is refused with ErrTaken, and
//     it is away from there on, so it never comes to the upgrade.
//   - A worker that did come to the upgrade is therefore the only one, and may
//     finish what it has begun whoever has the seat now. It must: a host is
//     not left half upgraded.
//
// What was begun is known from the journal alone, so a host that the site does
// not answer goes on with it (design.md 6), but takes nothing up.
func (j Journal) allow(do Do, s standing, away bool) Do {
	switch {
	case s == asking:
		return DoStand
	case j.begun(do):
		return do
	case s == taken || s == unheard && (away || do == Nothing || do == DoReply):
		return DoStand
	case away && do == DoReply && j.Action != message.Prepare:
		// It is true, and nobody else can tell.
		return do
	case away:
		return DoSucceed
	}
	return do
}

// begun reports whether a step goes on with what has had an effect, or may
// have. An upgrade that is known not to have begun is not resumed but begun.
func (j Journal) begun(do Do) bool {
	switch do {
	case DoResume, DoVerify, DoRollback, DoBooted:
		return true
	case DoReboot:
		return j.Asked
	default:
		return false
	}
}

// over reports whether a worker that ends may give the seat to another one:
// nothing is in hand, and no command can come that only this journal allows.
// Between two steps of a run, as long as the next one may be sent, the seat is
// kept: another worker can only answer that it does not know, which fails the
// host for this run, when this one may be back in a moment.
//
// Whatever this says does no harm to invariant 2: a worker that gives the seat
// back has ended, and when it is started again it goes on from here only if
// its tenure tells that no other worker has had the seat meanwhile.
func (j Journal) over(now time.Time) bool {
	switch j.Phase {
	case Idle:
		return true
	case Answered:
		next := j.Action != message.Reboot && j.Result == permits(after(j.Action))
		return !next || !now.Before(j.NotAfter)
	default:
		return false
	}
}

// after returns the step that comes after an action.
func after(a message.Action) message.Action {
	if a == message.Prepare {
		return message.Upgrade
	}
	return message.Reboot
}
