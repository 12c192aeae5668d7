package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
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
	// environment is that whose next run is followed; empty is any.
	environment string
	id          uint64
	last        v1.Run
	// past is the ended run that was the newest one at first; 0 until a run was seen.
	past uint64
	// lines are what was printed last of each host, situation what was of the tenant.
	lines     map[string]string
	situation v1.Situation
	told      bool
	// waiting, forecast and counts are what was printed last of the run, countedAt
	// when the counts were.
	waiting, forecast, counts string
	countedAt                 time.Time
	// overdue are the hosts that were overdue, and at which step.
	overdue map[string]string
}

func newProgress(out io.Writer, o *operator, id uint64) *progress {
	return &progress{to: newTerminal(out), o: o, id: id, lines: map[string]string{}}
}

// watch follows until the run has ended.
func (p *progress) watch(ctx context.Context, api *client.Client) error {
	err := p.follow(ctx, api)
	p.to.setBar("")
	switch {
	case p.to.err != nil:
		return p.to.err
	case err != nil && ctx.Err() != nil && p.id != 0:
		return errors.New("stopped watching; the run continues")
	case err != nil && ctx.Err() != nil:
		return errors.New("stopped watching; no run has started")
	case err != nil:
		return err
	case p.last.Result != "completed":
		return errNotCompleted
	}
	return nil
}

// follow returns when the run has ended. Events tell of the newest run alone,
// so a run of the past, and one that a later run has overtaken, is asked for.
func (p *progress) follow(ctx context.Context, api *client.Client) error {
	if p.id != 0 {
		if err := p.ask(ctx, api); err != nil || p.to.err != nil || p.last.Finished() {
			return err
		}
	}
	if err := p.events(ctx, api); err != nil || p.to.err != nil || p.last.Finished() {
		return err
	}
	if err := p.ask(ctx, api); err != nil || p.last.Finished() {
		return err
	}
	return fmt.Errorf("run %d has not ended, though a later one has started", p.id)
}

// events follows the event stream. JSON is of whole runs.
func (p *progress) events(ctx context.Context, api *client.Client) error {
	if p.o.Output == asJSON {
		return api.Watch(ctx, p.o.Tenant, func(r v1.Run) bool { return p.see(r, nil) })
	}
	return api.Follow(ctx, p.o.Tenant, func(n client.News) bool {
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

func (p *progress) ask(ctx context.Context, api *client.Client) error {
	r, err := api.Run(ctx, p.o.Tenant, p.id)
	if err == nil {
		r.Events = nil
		p.show(r, r.Hosts)
	}
	return err
}

// see shows the run that is followed and reports whether there is more to
// come.
func (p *progress) see(r v1.Run, changed []v1.RunHost) bool {
	switch {
	case !p.isOf(r), r.ID < p.id:
		return true
	case p.id == 0 && r.Finished() && (p.past == 0 || p.past == r.ID):
		p.past = r.ID
		return true
	case p.id == 0: // One that has begun and ended since the last event is the next one, too.
		p.id, changed = r.ID, r.Hosts
	case r.ID > p.id:
		return false
	}
	p.show(r, changed)
	return p.to.err == nil && !r.Finished()
}

// isOf reports whether a run is of the environment that is followed: the runs of others go side by
// side with it.
func (p *progress) isOf(r v1.Run) bool {
	if p.last.ID != 0 {
		return r.Environment == p.last.Environment
	}
	return p.environment == "" || p.environment == environmentOf(r)
}

// timeFormat shows times as of now.
func (p *progress) timeFormat() timeFormat { return p.o.format() }

// showSituation prints what has changed for the tenant as a whole.
func (p *progress) showSituation(s v1.Situation) {
	before, first := p.situation, !p.told
	p.situation, p.told = s, true
	at := p.timeFormat()
	switch w := s.OpenWindow; {
	case w != nil && (before.OpenWindow == nil || !before.OpenWindow.End.Equal(w.End)):
		p.line("the window is open until %s", at.at(w.End))
	case w == nil && before.OpenWindow != nil:
		p.line("the window is closed")
	}
	switch f := s.Frozen; {
	case f != nil && before.Frozen == nil:
		p.line("frozen by %s until %s", f.Calendar, at.at(f.To))
	case f == nil && before.Frozen != nil:
		p.line("the freeze is over")
	}
	if next := s.NextUpgradeAt; next != nil && next.After(at.now) && (first || before.NextUpgradeAt == nil || !before.NextUpgradeAt.Equal(*next)) {
		what := "the next window opens"
		if isRetry(s) {
			what = "the next run starts"
		}
		p.line("%s %s, in %s", what, at.at(*next), at.in(*next))
	}
	if c := s.LastClockStep; c != nil && !first && !reflect.DeepEqual(c, before.LastClockStep) {
		p.line("the clock of the site %s", stepped(at, *c))
	}
	if w := s.WaitingFor; w != nil && (before.WaitingFor == nil || before.WaitingFor.Detail != w.Detail) {
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
	if m := s.LastMissed; m != nil && !first && !reflect.DeepEqual(m, before.LastMissed) {
		p.line("the window of %s was missed: %s", at.at(m.Start), at.text(m.Reason))
	}
}

// countEvery is how often the counts of a run with many hosts are printed where lines
// stay.
const countEvery = 10 * time.Second

// show prints what is new in the run.
func (p *progress) show(r v1.Run, changed []v1.RunHost) {
	if p.o.Output == asJSON {
		r = p.chosen.only(r)
		if !reflect.DeepEqual(r, p.last) {
			p.to.err = p.o.json(p.to.out, r)
		}
		p.last = r
		return
	}
	at, first := p.timeFormat(), p.last.ID == 0
	if p.last.ID == r.ID && p.last.Paused != "" && r.Paused == "" && !r.Finished() {
		p.line("run %d: resumed", r.ID)
	}
	p.last = r
	if first {
		p.line("run %d: %s, not after %s", r.ID, text.Count(memberCount(r), "host", "hosts"), at.at(r.NotAfter))
	}
	p.showChanged(at, r, changed)
	p.showCounts(at, r)
	p.showWaiting(at, r)
	p.showOverdue(at, r)
	if p.forecast != r.Forecast && !r.Finished() {
		if p.forecast = r.Forecast; p.forecast != "" {
			p.line("run %d: %s", r.ID, at.text(p.forecast))
		}
	}
	if r.Finished() {
		p.to.setBar("")
		p.line("run %d: %s", r.ID, p.to.paint(resultColour(r.Result), headline(at, r)))
	}
}

// showChanged prints the hosts that have changed: each of a few, and of many those
// that are unhealthy.
func (p *progress) showChanged(at timeFormat, r v1.Run, changed []v1.RunHost) {
	each := p.hosts.All || !p.hosts.Unhealthy && len(p.chosen.only(r).Hosts) <= fewHosts
	for _, h := range changed {
		if !p.chosen.has(h.Hostname) {
			continue
		}
		if !each && !isConspicuous(h) && p.lines[h.Hostname] == "" {
			continue
		}
		if line := hostLine(at, h); p.lines[h.Hostname] != line {
			p.lines[h.Hostname] = line
			p.line("%s  %s", h.Hostname, p.to.paint(hostColour(h), line))
		}
	}
}

// showCounts shows how far the run is: as a bar on a terminal, and of many hosts as a
// line every now and then where lines stay.
func (p *progress) showCounts(at timeFormat, r v1.Run) {
	if p.to.live {
		p.to.setBar(fmt.Sprintf("run %d %s", r.ID, progressLine(r)))
		return
	}
	if len(r.Hosts) <= fewHosts || at.now.Sub(p.countedAt) < countEvery && !r.Finished() {
		return
	}
	counts, members := countHosts(r)
	if line := countLine(counts, members); line != p.counts {
		p.counts, p.countedAt = line, at.now
		p.line("run %d: %s", r.ID, line)
	}
}

// showWaiting prints what the run waits for, unless the lines of its hosts say so, and
// what a person has to do about it.
func (p *progress) showWaiting(at timeFormat, r v1.Run) {
	waits := waitingLine(at, r)
	if waits == p.waiting {
		return
	}
	if p.waiting = waits; waits == "" {
		return
	}
	p.line("run %d: waiting for %s", r.ID, waits)
	p.showToDo(at, r, adviseCourse(r))
}

// showOverdue prints what a person has to do about hosts whose step has begun to fail or has
// become overdue.
func (p *progress) showOverdue(at timeFormat, r v1.Run) {
	before := p.overdue
	p.overdue = map[string]string{}
	for _, h := range r.Hosts {
		if h.OverdueSince != nil || isFailing(h) {
			p.overdue[h.Hostname] = h.Status
		}
	}
	p.showToDo(at, r, adviseSteps(r, func(h v1.RunHost) bool { return before[h.Hostname] != h.Status }))
}

func (p *progress) showToDo(at timeFormat, r v1.Run, todo []advice) {
	for _, a := range todoIn(todo, p.situation, r) {
		p.line("run %d: to do: %s", r.ID, a.line(at, 0))
	}
}

// waitingLine says what a run waits for; empty for a host at work, of which the lines
// of the hosts tell.
func waitingLine(at timeFormat, r v1.Run) string {
	w := r.WaitingFor
	switch {
	case w == nil, w.What == run.ForHost && r.Phase == "open":
		return ""
	case len(w.Hosts) > 0 && (w.Until != nil || strings.Contains(w.Detail, " to be sent ")):
		return ""
	}
	return at.text(w.Detail)
}

func (p *progress) line(format string, args ...any) {
	at := p.timeFormat()
	p.to.line(p.to.paint(grey, at.at(at.now)) + "  " + fmt.Sprintf(format, args...))
}
