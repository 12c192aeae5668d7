// Package controller opens the runs of one tenant, when a window opens or
// somebody asks, and drives them: it folds the log, gathers what is known besides
// the log (run.Seen), asks run for the next decision, appends that, and answers the
// callers that have waited for it.
//
// Package run decides what a run does, package window and due.go decide when a
// run is opened. The controller keeps nothing that the log and the store do not
// have: when it is killed anywhere, the next one goes on.
//
// A controller is active or passive. A passive controller follows the log, shows
// runs and hosts, and writes nothing. When its role changes it forgets all that it
// knows and reads the log from the beginning.
//
// # The loop
//
// One loop owns the state. It gathers in run.Seen what it knows besides the log: a request
// of an operator, hosts that are silent, heard or deleted, the next freeze, outcomes of
// tasks. run.Next(now, Seen) decides what comes next. The controller appends it, folds it
// when it comes back through the log, and then examines its waiters, the one list of all
// callers that wait for something. An abort takes the same way: a waiter with a request,
// run.Next, append, fold, waiter.
//
// Each watch of the store, and Follow of the log, may end with log.ErrStale and is then
// started again.
//
// # Environments
//
// The runs of several environments go side by side. What the state keeps of one is a struct
// (environment.go), which is passed to what works on it. A record or a heartbeat wakes the
// environments that it concerns; only these are asked for their next decision (turns.go), one append
// at a time. Who is in which environment follows from what is declared (placement.go), but a host
// stays in the run that has named it until that has ended. What holds up the tenant holds up
// all of them.
//
// # Who follows a run
//
// What people see changes with records, with telemetry, and when time passes: a window
// opens, a freeze begins, a stage has soaked. No record says that time has passed, so
// state.turns says when the next such moment is. The loop wakes for it, and watchers are
// notified, so a watcher and a reader always see the same state. The event stream needs no
// queue: a change is a signal, and a client gets the state at the time when it can take it.
//
// News are different: each is delivered. The outbox keeps them in order in a stream of
// the tenant, under ids that are hashes of what they are about. A controller that starts
// derives the news again from the log, and keeps those that are missing; records are
// trimmed only when their news are kept. Spans are handed over in the same way, again with
// the same ids after a start.
package controller
