package controller

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// askAgain is the wait before a host is asked again for a task whose outcome has
// not come: either may be lost.
const askAgain = 5 * time.Second

// dispatcher has the tasks of one run done by their hosts or at the site, and keeps their
// outcomes until they are on the log. It keeps nothing on disk: after a restart the run
// waits for the same tasks.
type dispatcher struct {
	*dispatching
	// environment is the name on the log of the environment whose run it is.
	environment string
	// ready is called when an outcome has come.
	ready func()
	// requested is the task that is requested of each host; that of the run itself is of none.
	requested map[string]*dispatched
	// outcomes are those that are not on the log yet, in the same way.
	outcomes map[string]message.Outcome
}

// dispatching is what the dispatchers of all runs share.
type dispatching struct {
	Options
	// post has a function run in the loop.
	post func(context.Context, func())
	// places bound the tasks that are run at the site at once.
	places chan struct{}
	// ended are closed at the end of the last task that was run for a host at the
	// site, whichever run it was of.
	ended map[siteTasks]<-chan struct{}
	// folded is how far the log is folded. catchingUp shares catchUp among the tasks, and
	// asking is the trouble with asking for the end of the log, which only catchUp uses.
	folded     progress
	catchingUp *wait.Shared
	asking     throttle.Failing
}

// progress is a sequence that goroutines beside the loop wait for.
type progress struct {
	seq  atomic.Uint64
	grew wait.Watchers
}

func (p *progress) set(seq uint64) {
	p.seq.Store(seq)
	p.grew.Notify()
}

// reach waits until a sequence is reached, and reports whether it is.
func (p *progress) reach(ctx context.Context, seq uint64) bool {
	grew, leave := p.grew.Add()
	defer leave()
	for p.seq.Load() < seq {
		select {
		case <-grew:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// dispatched is a task that was requested. release tells that its outcome is
// needed no more, cancel ends it.
type dispatched struct {
	key             message.Key
	onSite          bool
	gives           []string
	release, cancel context.CancelFunc
}

// siteTasks names tasks at the site that are run one after the other: those of a host, or those
// of the run of one dispatcher.
type siteTasks struct {
	host  string
	ofRun *dispatcher
}

func newDispatching(o Options, post func(context.Context, func())) *dispatching {
	d := &dispatching{Options: o, post: post, places: make(chan struct{}, message.SiteTasks), ended: map[siteTasks]<-chan struct{}{}}
	d.catchingUp = wait.NewShared(d.catchUp)
	return d
}

func newDispatcher(o Options, post func(context.Context, func()), ready func()) *dispatcher {
	return newDispatching(o, post).dispatcher(defaultName, ready)
}

// dispatcher makes the dispatcher of the runs of an environment.
func (d *dispatching) dispatcher(environment string, ready func()) *dispatcher {
	return &dispatcher{dispatching: d, environment: environment, ready: ready, requested: map[string]*dispatched{}, outcomes: map[string]message.Outcome{}}
}

// inTurn names the tasks at the site with which one takes its turn.
func (d *dispatcher) inTurn(t message.Task) siteTasks {
	if t.Kind.OfRun() {
		return siteTasks{ofRun: d}
	}
	return siteTasks{host: t.Host}
}

// ofRun stands for the run itself, in place of a host.
const ofRun = ""

// whose returns of which host a task is, or that it is of the run itself, as a step is wherever it is
// run.
func whose(kind message.TaskKind, host string) string {
	if kind.OfStage() {
		return ofRun
	}
	return host
}

// request has a task done from a time on, in place of the task that was
// requested of its host before. A drain that has begun at the site comes to its
// end all the same, and the task after it: a script that was told to take a host
// out of service may do so though nobody waits for it any more.
func (d *dispatcher) request(ctx context.Context, t message.Task, from time.Time) {
	of := whose(t.Kind, t.Host)
	before := d.requested[of]
	if before != nil && before.key == t.Key() {
		return
	}
	life, cancel := context.WithCancel(ctx)
	needed, release := context.WithCancel(life)
	next := &dispatched{key: t.Key(), onSite: t.OnSite(), gives: t.Gives, release: release, cancel: cancel}
	if before != nil && before.onSite && before.key.Kind == message.Drain {
		before.release()
		// Once the undrain is requested no more, another controller has its outcome.
		next.cancel = func() { cancel(); before.cancel() }
		delete(d.requested, of)
	}
	d.drop(of)
	d.requested[of], t.Environment = next, d.environment
	if !t.OnSite() {
		go d.ask(needed, t, from)
		return
	}
	turn, ended := d.inTurn(t), make(chan struct{})
	earlier := d.ended[turn]
	d.ended[turn] = ended
	go func() {
		defer cancel()
		d.waitUntil(needed, from)
		if earlier != nil {
			<-earlier
		}
		d.run(needed, life, t)
		close(ended)
	}()
}

// done ends a task whose outcome is on the log, be it another controller's.
func (d *dispatcher) done(o message.Outcome) {
	if of := whose(o.Kind, o.Host); d.requested[of] != nil && d.requested[of].key == o.Key() {
		d.drop(of)
	}
}

// drop ends the task that was requested of a host.
func (d *dispatcher) drop(host string) {
	if now := d.requested[host]; now != nil {
		now.cancel()
		delete(d.requested, host)
	}
	delete(d.outcomes, host)
}

func (d *dispatcher) dropAll() {
	for host := range d.requested {
		d.drop(host)
	}
}

// run runs a task at the site if its outcome is still needed.
func (d *dispatcher) run(needed, life context.Context, t message.Task) {
	if !t.Kind.OfRun() {
		select {
		case d.places <- struct{}{}:
			defer func() { <-d.places }()
		case <-needed.Done():
			return
		}
	}
	for !d.caughtUp(needed) {
		if wait.Sleep(needed, askAgain) != nil {
			return
		}
	}
	d.At("before site task")
	o := t.Outcome(false, "this site runs no checks and hooks")
	if d.Site != nil {
		o = d.Site.Run(life, t)
	}
	if needed.Err() == nil {
		d.At("after site task")
		d.post(needed, func() { d.report(o, true) })
	}
}

// caughtUp waits until all records are folded that are on the log now, and reports whether
// they are; false also when the log cannot be asked. A controller that is behind could
// otherwise drain a host that another controller has drained, upgraded and undrained since.
func (d *dispatching) caughtUp(ctx context.Context) bool {
	return d.catchingUp.Do(ctx) == nil && ctx.Err() == nil
}

// catchUp is caughtUp for all tasks that wait.
func (d *dispatching) catchUp(ctx context.Context) error {
	last, err := d.Log.Last(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.asking.Note(d.Logger, d.Now(), err, "cannot ask for the end of the log, which tasks wait for; trying again", "the end of the log, which tasks wait for, can be asked for again", "tenant", d.Tenant)
	if err == nil && !d.folded.reach(ctx, last) {
		err = ctx.Err()
	}
	return err
}

// waitUntil waits until a time. A clock that was set back does not put it off
// for long.
func (d *dispatching) waitUntil(ctx context.Context, from time.Time) {
	_ = wait.Sleep(ctx, min(from.Sub(d.Now()), longestSleep))
}

// ask asks a host from a time on for as long as the outcome is needed. The process that is
// asked is picked before the controller catches up: a process that was started later does not
// remember that the host has run this task already, and that it was undrained since.
func (d *dispatcher) ask(ctx context.Context, t message.Task, from time.Time) {
	d.waitUntil(ctx, from)
	for ctx.Err() == nil {
		addressed, held := d.HostEvents.Addressed(t)
		if held && d.caughtUp(ctx) {
			d.At("before ask")
			if err := d.HostEvents.Send(addressed); err != nil {
				d.Logger.Warn("cannot ask host for a task; trying again", "tenant", d.Tenant, "host", t.Host, "task", t.Kind, "error", err)
			}
		}
		_ = wait.Sleep(ctx, askAgain)
	}
}

// report keeps the outcome of a task that was requested, whose host the outcome names. A host says
// nothing of what is run at the site.
func (d *dispatcher) report(o message.Outcome, fromSite bool) {
	of := whose(o.Kind, o.Host)
	now := d.requested[of]
	if now == nil || now.key != o.Key() || now.onSite != fromSite {
		return
	}
	d.outcomes[of] = d.sealed(o, now.gives)
	d.ready()
}

// news returns an outcome that a run waits for, if there is one, and drops others. Of thousands of
// hosts that answer at once the run notes one after the other.
func (d *dispatcher) news(current *run.State) []message.Outcome {
	for host, o := range d.outcomes {
		if current.Awaits(o) {
			return []message.Outcome{o}
		}
		d.drop(host)
	}
	return nil
}

// sync requests of a host the task that the run waits for, and no other.
func (d *dispatcher) sync(ctx context.Context, current *run.State, host string) {
	t, from, wanted := current.Task(host)
	if !wanted {
		d.drop(host)
		return
	}
	d.request(ctx, t, from)
}

// syncRun requests the task of the run itself for which it waits, if there is one. A step that cannot
// have the outputs of the steps before it has failed.
func (d *dispatcher) syncRun(ctx context.Context, current *run.State, decision run.Decision) {
	if decision.Task == nil {
		d.drop(ofRun)
		return
	}
	t := *decision.Task
	if now := d.requested[ofRun]; t.Kind.OfStage() && (now == nil || now.key != t.Key()) {
		var err error
		if t.Outputs, err = d.open(current.Outputs()); err != nil {
			d.drop(ofRun)
			d.post(ctx, func() { d.outcomes[ofRun] = t.Outcome(false, err.Error()); d.ready() })
			return
		}
	}
	d.request(ctx, t, decision.TaskFrom)
}

// syncAll requests all tasks that a run waits for, but for its own.
func (d *dispatcher) syncAll(ctx context.Context, current *run.State) {
	if hasTasks(current.Rollout()) {
		for _, h := range current.Hosts() {
			d.sync(ctx, current, h.Name)
		}
	}
}

// hasTasks reports whether a run by a policy has tasks of its hosts.
func hasTasks(p rollout.Resolved) bool {
	return len(p.Start) > 0 || slices.ContainsFunc(message.TaskKinds(), func(k message.TaskKind) bool { return k.OfHost() && !k.Of(&p.Rollout).RunsNothing() })
}

// report passes the outcome that a host tells to the run, or to the request, that has asked for it. A
// host tells of no other.
func (s *state) report(host string, o message.Outcome) {
	if o.Host != host {
		return
	}
	s.healths.report(host, o)
	for _, env := range s.inOrder {
		env.tasks.report(o, false)
	}
}

// dropTasks ends the tasks of all runs.
func (s *state) dropTasks() {
	for _, env := range s.inOrder {
		env.tasks.dropAll()
	}
}
