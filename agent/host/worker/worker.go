package worker

import (
	"context"
	"sync/atomic"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Worker is a worker of one host.
type Worker struct {
	Options
	lock *durable.Lock
	// identity distinguishes this worker from other workers of the host.
	identity string
	lease    *lease
	// state is what the loop decides by. written is the same, for the goroutines beside the
	// loop; never nil while they run.
	state   decide.State
	written atomic.Pointer[decide.State]
	// prepared is the plan that the strategy has just made, until it is on disk.
	prepared message.ChangeSet
	// given returns the outputs of steps that the site has given for the upgrade that begins; nil if
	// there are none for it.
	given func(context.Context) (map[string]string, error)
	// gotten is the release that the site has just given, until it is on disk.
	gotten *release.Pin
	// lastFailure is why the last try of the action that is being retried has failed.
	lastFailure string
	// failedAt is the largest percentage that a failed try of the action has told, reached that of
	// the try in progress.
	failedAt int
	reached  atomic.Int64
	// idle is signalled when it has changed whether the host is busy.
	idle wait.Signal
	// labels are those of the host that were read last.
	labels atomic.Pointer[map[string]string]
	// planKept is signalled when a prepare is over: the journal tells whether its plan counts.
	planKept wait.Signal
	// passes are checks that have passed, and of which the site is not told yet. passDue is
	// signalled when there are some, or somebody may have accepted what is on trial. passed
	// are those that the loop has taken and not settled yet; nil when there are none.
	passes  chan settling
	passDue wait.Signal
	passed  *settling
	// journaled is closed once there is a journal.
	journaled chan struct{}
	bootID    string
	commands  commandQueue
	// reports are the replies that wait for a report of the versions. One report
	// serves all of them.
	reports *wait.Queue[chan struct{}, struct{}]
	// changed is signalled when the versions may have changed.
	changed wait.Signal
	// offerDue is signalled when the versions were read, so that the plan is, too. atHost
	// is full while an action or a plan is in progress.
	offerDue wait.Signal
	atHost   chan struct{}
	// goal is the release by which offers are made, changes what the newest of them changes; nil
	// before the first.
	goal    atomic.Pointer[goal]
	changes atomic.Pointer[offered]
	// fetches is set from when somebody has asked the host to look anew until it does, anew
	// until its offer is sent. looking is set while a look is put off.
	fetches, anew, looking atomic.Bool
	// current is the action of the strategy that is in progress; nil when none is.
	current atomic.Pointer[actionOf]
	// outputs are the actions whose output is to be sent.
	outputs *wait.Queue[actionOf, struct{}]
	tasks   *tasks
	// count counts what was left alone.
	ignoredCount atomic.Uint64
	// ignored is the last ignored command of each kind, and foreignLog the last
	// log other than the journal's. Each is logged once.
	ignored    map[message.Kind]position
	foreignLog string
	self       self
}

// position is the position of a command in a log.
type position struct {
	log string
	seq uint64
}

// warn logs an error unless the worker is stopping.
func (w *Worker) warn(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		w.Log.Warn(what, "host", w.Host, "error", err)
	}
}

// actionOf is an action of a run.
type actionOf struct {
	run    uint64
	action string
}
