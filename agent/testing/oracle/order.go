package oracle

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Order is what the runs of an environment come after, by the names of environments on the log.
type Order struct {
	After []string
	Soak  time.Duration
}

// orders is what is known of the order of environments (invariant 12).
type orders struct {
	// declared are the orders, by environment.
	declared map[string]Order
	// endings are how the runs of each environment have ended, oldest first.
	endings map[string][]ending
	// followed are, by environment and the one that it comes after, the last run that was followed.
	followed map[[2]string]uint64
}

// ending is how a run has ended.
type ending struct {
	run uint64
	at  time.Time
	// counts tells that the run completed, was of all hosts and went to the last stage.
	counts bool
}

// Order notes what an environment comes after, as long as it is declared.
func (o *Oracle) Order(environment string, declared Order) {
	if o.orders.declared == nil {
		o.orders.declared = map[string]Order{}
	}
	o.orders.declared[environment] = declared
}

// noteEnding notes how the run of the record at hand has ended.
func (o *Oracle) noteEnding(r message.Decoded, e message.Finished) {
	if o.orders.endings == nil {
		o.orders.endings = map[string][]ending{}
	}
	p := o.run
	id := p.id
	if id == 0 {
		id = p.opened
	}
	o.orders.endings[o.environment] = append(o.orders.endings[o.environment], ending{id, r.Time, e.Result == "completed" && !p.chosen && p.until == "" && p.rollsBack.IsZero()})
}

// mayFollow judges that a run is opened only after the environments that its own comes after have
// each completed a run that was not followed yet and that has soaked (invariant 12), unless somebody
// overrides that.
func (o *Oracle) mayFollow(r message.Decoded, e message.Opened, sent time.Time) {
	declared, some := o.orders.declared[e.Environment]
	if !e.RollsBack().IsZero() {
		return // It waits for nobody.
	}
	if !some {
		if len(e.Follows) > 0 || e.OverrideAfter != "" {
			o.violated("invariant 12: record %d follows %v and overrides %q, and environment %s comes after none", r.Seq, e.Follows, e.OverrideAfter, e.Environment)
		}
		return
	}
	if o.orders.followed == nil {
		o.orders.followed = map[[2]string]uint64{}
	}
	chosen := e.Chosen || e.RetryOf != 0
	if e.Chosen && o.repeats() { // What the newest run was to do is still to be done after this one.
		for _, before := range declared.After {
			if key := [2]string{e.Environment, before}; o.orders.followed[key] > 0 {
				o.orders.followed[key]--
			}
		}
	}
	if e.OverrideAfter != "" {
		o.count("runs that override the order of environments")
		return
	}
	for _, before := range declared.After {
		key := [2]string{e.Environment, before}
		last, again := o.orders.followed[key], e.RetryOf != 0 || o.repeats()
		found := slices.DeleteFunc(o.completed(before, declared.Soak, sent), func(run uint64) bool {
			return run < last || run == last && !again // Again: it does once more what another run was to do.
		})
		n := slices.IndexFunc(e.Follows, func(f message.Follow) bool { return f.Environment == before })
		switch {
		case len(found) == 0:
			o.violated("invariant 12: record %d opens a run of environment %s, and environment %q has completed none that it could follow; it says that it follows %v", r.Seq, e.Environment, before, e.Follows)
		case chosen:
			continue
		case n < 0 || !slices.Contains(found, e.Follows[n].Run):
			o.violated("invariant 12: record %d follows %v, and of environment %q it may follow %v", r.Seq, e.Follows, before, found)
		default:
			o.orders.followed[key] = e.Follows[n].Run
			o.count("runs that follow another environment")
		}
	}
}

// completed returns the runs of an environment that can be followed: they were of all its hosts,
// completed and have soaked, and no later one has ended in another way. How long a run has soaked
// nobody can tell while a clock is wrong.
func (o *Oracle) completed(environment string, soak time.Duration, sent time.Time) (runs []uint64) {
	for _, end := range o.orders.endings[environment] {
		switch {
		case !end.counts:
			runs = nil
		case o.schedule.wrong || !o.decided(sent).Before(end.at.Add(soak)):
			runs = append(runs, end.run)
		}
	}
	return runs
}

// repeats reports whether the newest run of the environment at hand followed others and touched no
// host.
func (o *Oracle) repeats() bool {
	p := o.run
	return p != nil && p.finished && !p.chosen && !p.overrides && !p.windowUsed && !p.touched && !p.aborted
}
