package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// watchCommand follows a run.
type watchCommand struct {
	operator
	hostFlags
	matchFlags
	environmentFlag
	ID runID `arg:"" optional:"" help:"Id of the run (default: the current one, or else the next one)." complete:"runs"`
}

// Run implements the command.
func (c *watchCommand) Run(ctx context.Context, out io.Writer) error {
	if c.Tenant == allTenants {
		return fmt.Errorf("--tenant: %q is every tenant, and watch follows the runs of one; to see all: %s", allTenants, command("status", "--tenant", "'*'"))
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	chosen, err := c.hostsOf(ctx, api, c.Tenant)
	if err != nil {
		return err
	}
	if c.Output == asText && c.ID == 0 {
		_, _ = fmt.Fprintf(out, "Following the runs of tenant %s; press Ctrl-C to stop watching.\n", c.Tenant)
	}
	p := newProgress(out, &c.operator, uint64(c.ID))
	p.hosts, p.chosen, p.environment = c.hostFlags, chosen, c.Environment
	return p.watch(ctx, api)
}

// progress turns what changes into lines.
type progress struct {
	to    *terminal
	o     *operator
	hosts hostFlags
	// chosen are the hosts that are shown.
	chosen chosenHosts
	// environment is the only one whose runs are followed; empty is any.
	environment string
	// id is the only run that is followed; 0 is those under way, or else the next one.
	id uint64
	// newest is the highest id of a run that was seen.
	newest uint64
	// runs are the newest runs that are followed, by environment; behind are earlier runs that a later
	// one has overtaken and that are asked for.
	runs   map[string]*followed
	behind []*followed
	// failed tells that a run has ended that did not complete.
	failed bool
	// situation is what was printed last of the tenant.
	situation v1.Situation
	told      bool
}

// followed is a run that is followed, and what was printed last of it.
type followed struct {
	last v1.Run
	// lines are of each host.
	lines map[string]string
	// waiting, forecast and counts are of the run, countedAt when the counts were printed.
	waiting, forecast, counts string
	countedAt                 time.Time
	// overdue are the hosts that were overdue, and in which status.
	overdue map[string]string
}

func newProgress(out io.Writer, o *operator, id uint64) *progress {
	return &progress{to: newTerminal(out), o: o, id: id, runs: map[string]*followed{}}
}

// watch follows until the runs have ended.
func (p *progress) watch(ctx context.Context, api *client.Client) error {
	err := p.follow(ctx, api)
	p.to.setBar("")
	switch {
	case p.to.err != nil:
		return p.to.err
	case err != nil && ctx.Err() != nil && len(p.runs) > 1:
		return errors.New("stopped watching; the runs continue")
	case err != nil && ctx.Err() != nil && (p.id != 0 || len(p.runs) > 0):
		return errors.New("stopped watching; the run continues")
	case err != nil && ctx.Err() != nil:
		return errors.New("stopped watching; no run has started")
	case err != nil:
		return err
	}
	if p.failed {
		return errNotCompleted
	}
	return nil
}

// follow returns when the runs have ended. Events tell only of the newest run of an environment, so an
// older run is read with a request.
func (p *progress) follow(ctx context.Context, api *client.Client) error {
	if p.id != 0 {
		f := &followed{}
		if err := p.ask(ctx, api, p.id, f); err != nil || p.to.err != nil || f.last.Finished() {
			return err
		}
		p.environment = environmentOf(f.last)
	}
	if err := p.events(ctx, api); err != nil || p.to.err != nil {
		return err
	}
	for _, f := range p.behind {
		if err := p.ask(ctx, api, f.last.ID, f); err != nil {
			return err
		}
		if !f.last.Finished() {
			return fmt.Errorf("run %d has not ended, though a later one has started", f.last.ID)
		}
	}
	return nil
}

// events follows the event stream. JSON is of whole runs.
func (p *progress) events(ctx context.Context, api *client.Client) error {
	if p.o.Output == asJSON {
		return api.Watch(ctx, p.o.Tenant, func(r v1.Run) bool { return p.see(r, nil) })
	}
	// Only a site with environments knows the parameter.
	only := p.environment
	if only == v1.DefaultEnvironment && p.id != 0 {
		only = ""
	}
	return api.Follow(ctx, p.o.Tenant, only, func(n client.News) bool {
		switch {
		case n.Contact != nil:
			p.showContact(*n.Contact)
		case n.Situation != nil:
			p.showSituation(*n.Situation)
		default:
			return p.see(*n.Run, n.Hosts)
		}
		return p.to.err == nil
	})
}

// showContact prints that the site cannot be reached, or that it is back.
func (p *progress) showContact(c client.Contact) {
	at := p.timeFormat()
	if c.Trouble == "" {
		p.line("the site is back; it could not be reached %s", at.since(c.Since))
		return
	}
	p.line("the site has been unreachable since %s: %s", at.at(c.Since), c.Trouble)
}

// ask asks for a run, and shows it as what has become of it.
func (p *progress) ask(ctx context.Context, api *client.Client, id uint64, f *followed) error {
	r, err := api.Run(ctx, p.o.Tenant, id)
	if err == nil {
		r.Events = nil
		if p.runs[r.Environment] == nil {
			p.runs[r.Environment] = f
		}
		p.show(f, r, r.Hosts)
	}
	return err
}

// see shows a run that is followed and reports whether there is more to come.
func (p *progress) see(r v1.Run, changed []v1.RunHost) (more bool) {
	isFirst, isNew := p.newest == 0, r.ID > p.newest
	p.newest = max(p.newest, r.ID)
	f := p.runs[r.Environment]
	switch {
	case !p.isOf(r), f != nil && r.ID < f.last.ID:
		return true
	case f != nil && r.ID == f.last.ID:
	case f != nil && !f.last.Finished(): // It has ended unseen, or is about to.
		p.behind = append(p.behind, f)
		delete(p.runs, r.Environment)
		return p.goesOn()
	case p.id != 0:
		return false
	case r.Finished() && (isFirst || !isNew): // It had ended before.
		return true
	default: // One that has begun and ended since the last event is the next one, too.
		f, changed = &followed{}, r.Hosts
		p.runs[r.Environment] = f
	}
	p.show(f, r, changed)
	return p.to.err == nil && p.goesOn()
}

// goesOn reports whether a run that is followed is under way.
func (p *progress) goesOn() bool {
	for _, f := range p.runs {
		if !f.last.Finished() {
			return true
		}
	}
	return false
}

// isOf reports whether a run is of the environment that is followed: the runs of others go side by
// side with it.
func (p *progress) isOf(r v1.Run) bool {
	return p.environment == "" || p.environment == environmentOf(r)
}

// isOfSeveral reports whether runs of several environments are followed.
func (p *progress) isOfSeveral() bool {
	return p.environment == "" && (p.situation.Environments > 0 || len(p.runs) > 1)
}

// timeFormat shows times as of now.
func (p *progress) timeFormat() timeFormat { return p.o.format() }

// showSituation prints what has changed for the tenant as a whole.
func (p *progress) showSituation(s v1.Situation) {
	before, first := p.situation, !p.told
	p.situation, p.told = s, true
	at := p.timeFormat()
	if !p.isOfSeveral() {
		p.showWindows(at, before, s)
	}
	switch f := s.Frozen; {
	case f != nil && before.Frozen == nil:
		p.line("frozen by %s until %s", f.Calendar, at.at(f.To))
	case f == nil && before.Frozen != nil:
		p.line("the freeze is over")
	}
	if next := s.NextUpgradeAt; !p.isOfSeveral() && next != nil && next.After(at.now) && (first || before.NextUpgradeAt == nil || !before.NextUpgradeAt.Equal(*next)) {
		what := "the next window opens"
		if isRetry(s) {
			what = "the next run starts"
		}
		p.line("%s %s, in %s", what, at.at(*next), at.in(*next))
	}
	if c := s.LastClockJump; c != nil && !first && !reflect.DeepEqual(c, before.LastClockJump) {
		p.line("the clock of the site %s", jumped(at, *c))
	}
	if w := s.WaitingFor; w != nil && (before.WaitingFor == nil || before.WaitingFor.Detail != w.Detail) && (w.What == waitsForLog || !p.isOfSeveral()) {
		begins := startsAfter(s)
		if w.What == waitsForLog {
			begins = "stopped: "
		}
		p.line("%s%s", begins, at.text(w.Detail))
	}
	if s.Silent != before.Silent {
		if s.Silent == 0 {
			p.line("no host is silent any more")
		} else {
			p.line("%s: %s", text.Count(s.Silent, "host is silent", "hosts are silent"), text.ListOf(s.SilentHosts, s.Silent, mostNames))
		}
	}
	if m := s.LastMissed; !p.isOfSeveral() && m != nil && !first && !reflect.DeepEqual(m, before.LastMissed) {
		p.line("the window of %s was missed: %s", at.at(m.Start), at.text(m.Reason))
	}
}

// showWindows prints whether a window has opened or closed.
func (p *progress) showWindows(at timeFormat, before, s v1.Situation) {
	switch w := s.OpenWindow; {
	case w != nil && (before.OpenWindow == nil || !before.OpenWindow.End.Equal(w.End)):
		p.line("the window is open until %s", at.at(w.End))
	case w == nil && before.OpenWindow != nil:
		p.line("the window is closed")
	}
	if w := s.OpenWindow; w != nil && w.UpToDate != "" && (before.OpenWindow == nil || before.OpenWindow.UpToDate != w.UpToDate) {
		p.line("the window needs no run: %s", at.text(w.UpToDate))
	}
}

// countEvery is how often the counts of a run with many hosts are printed where lines
// stay.
const countEvery = 10 * time.Second

// show prints what is new in a run.
func (p *progress) show(f *followed, r v1.Run, changed []v1.RunHost) {
	p.failed = p.failed || r.Finished() && r.Result != "completed"
	if p.o.Output == asJSON {
		r = p.chosen.only(r)
		if !reflect.DeepEqual(r, f.last) {
			p.to.err = p.o.json(p.to.out, r)
		}
		f.last = r
		return
	}
	at, first := p.timeFormat(), f.last.ID == 0
	if f.last.ID == r.ID && f.last.Paused != "" && r.Paused == "" && !r.Finished() {
		p.runLine(r, "resumed")
	}
	f.last = r
	if first {
		hosts := text.Count(memberCount(r), "host", "hosts")
		if r.Release != nil {
			hosts += ", release " + r.Release.Name
		}
		if back := rollbackOf(r); back != "" {
			hosts += ", rollback of " + back
		}
		limits := "not after " + at.at(r.NotAfter)
		if r.EndsBy != nil {
			limits += ", ends by " + at.at(*r.EndsBy)
		}
		p.runLine(r, "%s, %s", hosts, limits)
	}
	p.showChanged(at, f, changed)
	p.showCounts(at, f)
	p.showWaiting(at, f)
	p.showOverdue(at, f)
	if f.forecast != r.Forecast && !r.Finished() {
		if f.forecast = r.Forecast; f.forecast != "" {
			p.runLine(r, "%s", at.text(f.forecast))
		}
	}
	if r.Finished() {
		p.to.setBar("")
		p.runLine(r, "%s", p.to.paint(resultColour(r.Result), headline(at, r)))
	}
}

// runLine prints a line about a run.
func (p *progress) runLine(r v1.Run, format string, args ...any) {
	p.line("%srun %d: "+format, append([]any{p.prefix(r), r.ID}, args...)...)
}

// prefix is how a line begins that is about the run of one of several environments.
func (p *progress) prefix(r v1.Run) string {
	if !p.isOfSeveral() {
		return ""
	}
	return environmentOf(r) + "  "
}

// showChanged prints the hosts of a run that have changed: each of a few, and of many those that are
// unhealthy.
func (p *progress) showChanged(at timeFormat, f *followed, changed []v1.RunHost) {
	each := p.hosts.All || !p.hosts.Unhealthy && len(p.chosen.only(f.last).Hosts) <= fewHosts
	for _, h := range changed {
		if !p.chosen.has(h.Hostname) {
			continue
		}
		if !each && !isConspicuous(h) && f.lines[h.Hostname] == "" {
			continue
		}
		if line := hostLine(at, f.last, h); f.lines[h.Hostname] != line {
			if f.lines == nil {
				f.lines = map[string]string{}
			}
			f.lines[h.Hostname] = line
			p.line("%s%s  %s", p.prefix(f.last), h.Hostname, p.to.paint(hostColour(h), line))
		}
	}
}

// showCounts shows how far a run is: as a bar on a terminal, and of many hosts as a
// line every now and then where lines stay.
func (p *progress) showCounts(at timeFormat, f *followed) {
	r := f.last
	if p.to.live {
		p.to.setBar(p.bar())
		return
	}
	if len(r.Hosts) <= fewHosts || at.now.Sub(f.countedAt) < countEvery && !r.Finished() {
		return
	}
	counts, members := countHosts(r)
	if line := countLine(r, counts, members); line != f.counts {
		f.counts, f.countedAt = line, at.now
		p.runLine(r, "%s", line)
	}
}

// bar is how far the runs under way are.
func (p *progress) bar() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.runs)) {
		switch r := p.runs[name].last; {
		case r.Finished():
		case !p.isOfSeveral():
			return fmt.Sprintf("run %d %s", r.ID, progressLine(r))
		default:
			counts, members := countHosts(r)
			parts = append(parts, fmt.Sprintf("%s %d of %d", environmentOf(r), counts[string(run.Upgraded)], members))
		}
	}
	return strings.Join(parts, ", ")
}

// showWaiting prints what a run waits for, unless the lines of its hosts say so, and
// what a person has to do about it.
func (p *progress) showWaiting(at timeFormat, f *followed) {
	waits := waitingLine(at, f.last)
	if waits == f.waiting {
		return
	}
	if f.waiting = waits; waits == "" {
		return
	}
	p.runLine(f.last, "waiting for %s", waits)
	p.showToDo(at, f.last, adviseCourse(f.last))
}

// showOverdue prints what a person has to do about hosts whose action has begun to fail or has
// become overdue.
func (p *progress) showOverdue(at timeFormat, f *followed) {
	before := f.overdue
	f.overdue = map[string]string{}
	for _, h := range f.last.Hosts {
		if h.OverdueSince != nil || isFailing(h) {
			f.overdue[h.Hostname] = h.Status
		}
	}
	p.showToDo(at, f.last, adviseDelays(f.last, func(h v1.RunHost) bool { return before[h.Hostname] != h.Status }))
}

func (p *progress) showToDo(at timeFormat, r v1.Run, todo []advice) {
	for _, a := range todoIn(todo, p.situation, r) {
		p.runLine(r, "to do: %s", a.line(at, 0))
	}
}

// waitingLine says what a run waits for; empty for a host at work, of which the lines
// of the hosts tell.
func waitingLine(at timeFormat, r v1.Run) string {
	w := r.WaitingFor
	switch {
	case w == nil, w.What == run.ForHost && r.Phase == "open":
		return ""
	case len(w.Hosts) > 0 && (w.Until != nil || w.Sending):
		return ""
	}
	return at.text(w.Detail)
}

func (p *progress) line(format string, args ...any) {
	at := p.timeFormat()
	p.to.line(p.to.paint(grey, at.at(at.now)) + "  " + fmt.Sprintf(format, args...))
}
