package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Order says which environments an environment comes after: its runs follow theirs.
//
// A run can be followed if it had all hosts of its environment, went to its last stage and completed. When a later run of
// that environment ends with another result, it can be followed no longer: the environments that
// come after wait for the next run that completes. Each follows a run after its soak, and only once.
// All of this is decided from the log, so a restart does not change it.
type Order struct {
	// Environments are their names on the log.
	Environments []string
	// Soak is how long ago a run must have completed.
	Soak time.Duration
}

// Predecessors are the runs that must come before a run of an environment by its Order, and whether
// they have.
type Predecessors struct {
	// Follows are the runs that it would follow. Without Waits they are of all environments of
	// the order.
	Follows []message.Follow
	// Waits is what the run waits for, for people; empty when it waits for nothing. Until is when
	// that is over; zero when only a record can tell.
	Waits string
	Until time.Time
}

// Predecessors returns which runs a run of an environment that is opened now follows, or what it waits
// for. again marks a retry, which follows the same runs as the run that it retries.
func (l *Ledger) Predecessors(environment string, order Order, now time.Time, again bool) Predecessors {
	e := l.Of(environment)
	again = again || e.mayRepeat()
	var p Predecessors
	for _, name := range order.Environments {
		before := l.Of(name)
		from := e.followed(name)
		if !again {
			from++
		}
		n := slices.IndexFunc(before.completed, func(c message.Completion) bool { return c.Run >= from })
		if n < 0 {
			return Predecessors{Waits: before.whyIncomplete(e.followed(name))}
		}
		first := before.completed[n]
		if at := first.At.Add(order.Soak); now.Before(at) {
			return Predecessors{Until: at, Waits: fmt.Sprintf("%s, which soaks until %s: run %d completed at %s", environmentNamed(name), stamp(at), first.Run, stamp(first.At))}
		}
		for _, c := range before.completed[n:] {
			if !now.Before(c.At.Add(order.Soak)) {
				first = c
			}
		}
		p.Follows = append(p.Follows, message.Follow{Environment: name, Run: first.Run})
	}
	return p
}

// whyIncomplete says, for people, why no run of an environment can be followed. followed is the last
// run of it that was.
func (e *Environment) whyIncomplete(followed uint64) string {
	complete := environmentNamed(e.Name) + " to complete"
	newest := e.Newest()
	switch {
	case e.Key() == 0:
		return complete + " a run: it has had none"
	case newest == nil:
		return fmt.Sprintf("%s a run: none since run %d", complete, e.Key())
	case !newest.Over():
		return fmt.Sprintf("%s: run %d is in progress", complete, newest.Key())
	case newest.Key() == followed:
		return fmt.Sprintf("%s another run: run %d was followed already", complete, followed)
	case newest.Result == Completed && newest.IsRollback():
		return fmt.Sprintf("%s a run: run %d rolled back %s", complete, newest.Key(), newest.RollsBack.Runs())
	case newest.Result == Completed && newest.Until != "":
		return fmt.Sprintf("%s a run of all its stages: run %d ended after stage %s", complete, newest.Key(), newest.Until)
	case newest.Result == Completed && newest.Chosen:
		return fmt.Sprintf("%s a run of all its hosts: run %d was of chosen ones", complete, newest.Key())
	}
	return fmt.Sprintf("%s a run: run %d ended as %s", complete, newest.Key(), newest.Result)
}

// environmentNamed is an environment for people.
func environmentNamed(name string) string {
	if name == "" {
		name = message.DefaultEnvironment
	}
	return "environment " + name
}

// followed returns the last run of another environment that a run of this one has followed; 0 for
// none.
func (e *Environment) followed(environment string) uint64 {
	for _, f := range e.follows {
		if f.Environment == environment {
			return f.Run
		}
	}
	return 0
}

// Follows are the runs of other environments that the runs of this one have followed so far.
func (e *Environment) Follows() []message.Follow { return e.follows }

// Completed are the runs that those of other environments may follow, the newest is the last.
func (e *Environment) Completed() []message.Completion { return e.completed }

// FollowsOfChosen are those that a run of chosen hosts tells. It follows none itself: if the newest
// run touched no host, what that has followed is still to be followed, also after the chosen ones.
func (e *Environment) FollowsOfChosen() []message.Follow {
	if e.mayRepeat() {
		return nil
	}
	return e.follows
}

// mayRepeat reports whether the newest run has followed others and touched no host, so that the
// next one follows the same.
func (e *Environment) mayRepeat() bool {
	newest := e.Newest()
	return newest != nil && newest.Over() && !newest.UsesWindow() && !newest.Chosen && newest.OverrideAfter == ""
}

// complete notes the end of a run for those that follow it.
func (e *Environment) complete(ended *State) {
	if ended.Result != Completed || ended.Chosen || ended.Until != "" || ended.IsRollback() {
		e.completed = nil
		return
	}
	e.completed = append(slices.Clip(e.completed), message.Completion{Run: ended.Key(), At: ended.EndedAt})
	e.completed = e.completed[max(0, len(e.completed)-message.MaxCompletions):]
}

// setBack corrects the times after the clock of the log was set back: no run has completed later than
// now, or its soak would seem to last as much longer.
func (e *Environment) setBack(now time.Time) {
	e.completed = slices.Clone(e.completed)
	for i := range e.completed {
		e.completed[i].At = times.Earlier(e.completed[i].At, now)
	}
}
