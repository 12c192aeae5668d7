package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// statusCommand shows a tenant's state and its newest run.
type statusCommand struct {
	operator
	hostFlags
	matchFlags
	environmentFlag
}

// Help is the longer text of --help.
func (c *statusCommand) Help() string {
	return "If the tenant has environments, you see them in a table, the most urgent first, and what you can do about the first that needs you.\n\n" +
		"With --tenant '*' you see all tenants that you may see in a table, the most urgent first: what is in progress, how far it is, " +
		"when the next window opens, and what needs you. --output json has all of it."
}

// Validate implements kong's hook.
func (c *statusCommand) Validate() error {
	switch {
	case c.Tenant == allTenants && (c.Unhealthy || c.isGiven()):
		return errors.New("--tenant '*' shows tenants and no hosts; leave out --unhealthy, --host, --label and --role, or name one tenant")
	case c.Tenant == allTenants && c.Environment != "":
		return errors.New("--tenant '*' shows tenants and not their environments; leave out --environment, or name one tenant")
	}
	return c.operator.Validate()
}

// hostFlags choose which hosts of a run are shown.
type hostFlags struct {
	All       bool `help:"Show every host, however many there are." xor:"hosts"`
	Unhealthy bool `help:"Show only hosts that failed, are silent, or are out of service." xor:"hosts"`
}

// fewHosts is how many hosts are shown one by one. Of more only those are shown that
// are unhealthy, and the rest as a summary.
const fewHosts = 20

// Run implements the command.
func (c *statusCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.Tenant == allTenants {
		return c.showAll(ctx, out, api)
	}
	chosen, err := c.hostsOf(ctx, api, c.Tenant)
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		state, err := api.State(ctx, c.Tenant, "")
		if err != nil {
			return err
		}
		if c.showsEnvironments(state) {
			return c.environmentsJSON(ctx, out, api, state, chosen)
		}
		runs, err := api.Runs(ctx, c.Tenant, v1.RunFilter{})
		if err != nil {
			return err
		}
		for i := range runs {
			runs[i] = chosen.only(runs[i])
		}
		return c.json(out, map[string]any{"state": state, "runs": runs})
	}
	state, newest, err := newestState(ctx, api, c.Tenant)
	if err != nil {
		return err
	}
	to := newTerminal(out)
	if c.showsEnvironments(state) {
		if err := c.showEnvironments(ctx, to, api, state, chosen); err != nil {
			return err
		}
		return to.err
	}
	c.show(to, c.format(), state, newest, chosen)
	return to.err
}

// newestState returns the state of a tenant and its newest run, nil when there is none,
// as they are at one moment. They are two requests, so a run may begin or end between
// them: then both are asked for again.
func newestState(ctx context.Context, api *client.Client, tenant string) (v1.State, *v1.Run, error) {
	const tries = 3
	for try := 1; ; try++ {
		state, err := api.State(ctx, tenant, "")
		if err != nil {
			return state, nil, err
		}
		runs, err := api.Runs(ctx, tenant, v1.RunFilter{Limit: 1})
		if err != nil {
			return state, nil, err
		}
		if len(runs) == 0 {
			return state, nil, nil
		}
		if isIdle := state.Status == "idle"; isIdle == runs[0].Finished() || try == tries {
			return state, &runs[0], nil
		}
	}
}

// show prints the state: what is, the newest run, its stages and hosts, and what to
// do now.
func (c *statusCommand) show(to *terminal, at timeFormat, state v1.State, newest *v1.Run, chosen chosenHosts) {
	var f facts
	if c.used.several {
		f.add("context", c.used.name)
	}
	f.add("tenant", c.Tenant)
	f.add("status", to.paint(statusColour(state.Status), state.Status))
	for _, fact := range situationFacts(at, state.Situation, newest) {
		f.add(fact[0], fact[1])
	}
	if newest != nil {
		runFacts(&f, to, at, *newest)
		chosen.fact(&f, *newest)
	}
	f.print(to)
	if newest != nil {
		showStages(to, *newest)
		c.showHosts(to, at, chosen.only(*newest))
	}
	showWarnings(to, at, state)
	showUnmatched(to, state)
	to.line("")
	c.printToDo(to, at, append(advise(state.Situation, newest), adviseTenant(at, state)...))
}

// adviseTenant returns what a person has to do for a tenant, whatever its runs do.
func adviseTenant(at timeFormat, state v1.State) []advice {
	return slices.Concat(adviseApprovals(state), adviseCalendars(at, state.Calendars), adviseCertificates(state.Certificates))
}

// printToDo prints what to do now.
func (c *statusCommand) printToDo(to *terminal, at timeFormat, todo []advice) {
	printAdvice(to, at, todo)
	if c.used.typed && slices.ContainsFunc(todo, func(a advice) bool { return a.command != "" }) {
		to.linef("Add --context %s to these commands.", c.used.name)
	}
}

// situationFacts tell of hosts, windows and freezes.
func situationFacts(at timeFormat, s v1.Situation, newest *v1.Run) [][2]string {
	hosts := fmt.Sprint(s.Hosts)
	if s.Silent > 0 {
		hosts += fmt.Sprintf(", %d silent: %s", s.Silent, text.ListOf(s.SilentHosts, s.Silent, mostNames))
	}
	all := append([][2]string{{"hosts", hosts}, {"promotion", promotionLine(at, s.Promotion)}}, windowFacts(at, s, newest)...)
	all = append(all, tenantFacts(at, s)...)
	if m := s.MissedSince(newest); m != nil {
		all = append(all, [2]string{"last missed", fmt.Sprintf("the window of %s: %s", at.at(m.Start), at.text(m.Reason))})
	}
	if w := s.WaitingFor; w != nil {
		name := "waiting for"
		if w.What == waitsForLog {
			name = "stopped"
		}
		all = append(all, [2]string{name, waiting(at, *w)})
	}
	if c := s.LastClockJump; c != nil {
		all = append(all, [2]string{"clock", jumped(at, *c)})
	}
	return all
}

// windowFacts tell of windows.
func windowFacts(at timeFormat, s v1.Situation, newest *v1.Run) (all [][2]string) {
	if w := s.OpenWindow; w != nil {
		all = append(all, [2]string{"window", openWindow(at, s, *w, newest)})
	}
	if w := s.SkippedWindow; w != nil {
		all = append(all, [2]string{"skipped window", skippedFact(at, *w)})
	}
	switch next := s.NextUpgradeAt; {
	case next == nil && s.OpenWindow == nil:
		all = append(all, [2]string{"next window", "none"})
	case next != nil && next.After(at.now):
		name := "next window"
		if isRetry(s) {
			name = "next run"
		}
		all = append(all, [2]string{name, at.at(*next) + ", in " + at.in(*next)})
	}
	return all
}

// skippedFact tells which window was skipped, by whom and why.
func skippedFact(at timeFormat, w v1.SkippedWindow) string {
	return fmt.Sprintf("%s, by %s: %s", at.at(w.Start), w.By, w.Reason)
}

// tenantFacts tell of freezes, calendars, budgets and locked hosts, which are the tenant's.
func tenantFacts(at timeFormat, s v1.Situation) (all [][2]string) {
	if f := s.Frozen; f != nil {
		all = append(all, [2]string{"frozen", fmt.Sprintf("by %s until %s", f.Calendar, at.at(f.To))})
	}
	for _, c := range s.Calendars {
		all = append(all, [2]string{"calendar", fetched(at, c)})
	}
	for _, b := range s.Budgets[:min(len(s.Budgets), mostNames)] {
		all = append(all, [2]string{"budget", budgetFact(b)})
	}
	for _, r := range s.BudgetRefusals[:min(len(s.BudgetRefusals), mostNames)] {
		all = append(all, [2]string{"budget", fmt.Sprintf("%s: its query has kept hosts in service since %s: %s", r.Budget, at.at(r.Since), r.Reason)})
	}
	if s.LockCount > 0 {
		all = append(all, [2]string{"locked", lockFact(at, s)})
	}
	return all
}

// budgetFact says how many hosts of a disruption budget are out of service.
func budgetFact(b v1.BudgetState) string {
	name := b.Budget
	switch {
	case b.Label != "" && b.Value != "":
		name += ", " + b.Label + " " + b.Value
	case b.Label != "":
		name += ", no " + b.Label
	}
	return fmt.Sprintf("%s: %d of at most %d out of service: %s", name, b.OutOfService, b.MaxUnavailable, text.ListOf(b.Hosts, b.OutOfService, mostNames))
}

// lockFact names the hosts that reboot by themselves, those locked longest first.
func lockFact(at timeFormat, s v1.Situation) string {
	var named []string
	for _, lock := range s.Locks {
		named = append(named, fmt.Sprintf("%s since %s", lock.Host, at.at(lock.Since)))
	}
	return text.ListOf(named, s.LockCount, mostNames)
}

// isRetry reports whether the next run is opened in the window that is open, because the
// last one touched no host.
func isRetry(s v1.Situation) bool {
	return s.OpenWindow != nil && s.NextUpgradeAt != nil && s.NextUpgradeAt.After(s.OpenWindow.Start) && s.NextUpgradeAt.Before(s.OpenWindow.End)
}

// jumped tells of a jump of the site's clock.
func jumped(at timeFormat, c v1.ClockJump) string {
	by := c.To.Sub(c.From)
	if by < 0 {
		return fmt.Sprintf("was set back by %s, to %s", window.FormatDuration(-by), at.at(c.To))
	}
	return fmt.Sprintf("was set forward by %s, to %s, or the machine was suspended", window.FormatDuration(by), at.at(c.To))
}

// openWindow tells of a window that is open: until when, with which run, and how to
// start another once that has ended.
func openWindow(at timeFormat, s v1.Situation, w v1.OpenWindow, newest *v1.Run) string {
	text := "open until " + at.at(w.End)
	switch {
	case w.UpToDate != "":
		return text + "; it needs no run: " + at.text(w.UpToDate)
	case w.Run == 0:
		return text + "; its run has not started"
	case newest == nil || !newest.Finished():
		return fmt.Sprintf("%s; run %d is in progress", text, w.Run)
	}
	start := command("start")
	if len(newest.Follows) > 0 || newest.OverrideAfter != "" { // It waits for those that it comes after to complete another run.
		start = command("start", "--override-after", "…")
	}
	return fmt.Sprintf("%s; run %d has ended; to start another: %s", text, w.Run, todoIn([]advice{{command: start}}, s, *newest)[0].command)
}

// runFacts tell of a run as a whole.
func runFacts(f *facts, to *terminal, at timeFormat, r v1.Run) {
	name := fmt.Sprintf("run %d", r.ID)
	if r.Finished() {
		f.add(name, to.paint(resultColour(r.Result), r.Result)+strings.TrimPrefix(headline(at, r), r.Result))
	} else {
		f.add(name, r.Phase)
	}
	f.add("progress", progressLine(r))
	f.add("started", at.at(r.OpenedAt)+" by "+beginner(r))
	if r.EndedAt != nil {
		f.add("ended", at.at(*r.EndedAt)+", after "+took(r))
	}
	if !r.Finished() {
		if r.Aborted == "" {
			f.add("not after", at.at(r.NotAfter))
		}
		if r.EndsBy != nil {
			f.add("ends by", at.at(*r.EndsBy)+", whatever its hosts do")
		}
	}
	if r.RetryOf != 0 {
		f.add("retry of", fmt.Sprintf("run %d", r.RetryOf))
	}
	f.add("release", releaseOf(r))
	if r.Release != nil {
		for _, line := range r.Release.Differing {
			f.add("differing", line)
		}
	}
	if r.GoesOnSince != 0 {
		f.add("goes on", fmt.Sprintf("where the runs since run %d ended", r.GoesOnSince))
	}
	if r.Until != "" {
		f.add("until", "stage "+r.Until+"; the next run goes on there")
	}
	f.add("follows", followedRuns(r))
	f.add("overrides after", r.OverrideAfter)
	f.add("way back", wayBack(at, r.WayBack))
	f.add("paused", r.Paused)
	f.add("aborted", r.Aborted)
	if r.WaitingFor != nil {
		f.add("waiting for", waiting(at, *r.WaitingFor))
	}
	if r.ExpectedEnd != nil {
		f.add("expected end", expected(at, *r.ExpectedEnd))
	}
	f.add("forecast", at.text(r.Forecast))
}

// releaseOf is the release that a run installs, with its version; empty for none.
func releaseOf(r v1.Run) string {
	switch {
	case r.Release == nil:
		return ""
	case r.Release.Version == "" || r.Release.Version == r.Release.Name:
		return r.Release.Name
	}
	return fmt.Sprintf("%s (%s)", r.Release.Name, r.Release.Version)
}

// followedRuns are the runs of other environments that a run follows; empty when there are none.
func followedRuns(r v1.Run) string {
	var all []string
	for _, f := range r.Follows {
		all = append(all, fmt.Sprintf("run %d of %s", f.Run, f.Environment))
	}
	return strings.Join(all, ", ")
}

// wayBack tells until which stage a run can be rolled back; empty if its rollout does not say.
func wayBack(at timeFormat, w *v1.WayBack) string {
	switch {
	case w == nil:
		return ""
	case w.Closed != nil:
		return fmt.Sprintf("none since %s, when stage %s began", at.at(*w.Closed), w.Until)
	}
	return wayBackOpen(w)
}

// expected tells when something is expected to end.
func expected(at timeFormat, end time.Time) string {
	if !end.After(at.now) {
		return "later than expected: this takes longer than it did for other hosts"
	}
	return at.at(end) + ", in " + at.in(end)
}

// waiting tells what is waited for, since when and until when.
func waiting(at timeFormat, w v1.WaitingFor) string {
	text := at.text(w.Detail) + ", " + at.since(w.Since)
	// The detail of what ends at a known time tells that itself.
	if w.Until != nil && !strings.Contains(text, at.at(*w.Until)) {
		text += ", gives up " + at.at(*w.Until)
	}
	return text
}

// progressLine counts the hosts of a run by their status.
func progressLine(r v1.Run) string {
	counts, members := countHosts(r)
	bar := progressBar(counts[string(run.Upgraded)], counts[string(run.HostFailed)]+counts[rolledBack], members)
	return strings.TrimSpace(bar + " " + countLine(r, counts, members))
}

// rolledBack is the status in which a host is shown whose upgrade was rolled back.
const rolledBack = "rolled-back"

// upToDate counts the upgraded hosts that had nothing to change.
const upToDate = "up-to-date"

// shownStatus is the status of a host as people see it in a run that rolls back another one, or 0. A host
// that a rollback has brought back is not shown as upgraded, nor as rolled-back, which tells of a failed
// upgrade.
func shownStatus(status string, isRolledBack bool, rollbackOf uint64) string {
	switch {
	case isRolledBack:
		return rolledBack
	case rollbackOf != 0 && status == string(run.Upgraded):
		return "back"
	case rollbackOf != 0 && status == string(run.HostUpgrading):
		return "going-back"
	}
	return status
}

// statusIn is shownStatus of a host of a run.
func statusIn(r v1.Run, h v1.RunHost) string {
	return shownStatus(h.Status, h.RolledBack, r.RollbackOf)
}

// countHosts counts the members of a run by their status. Hosts that are left out have
// no stage.
func countHosts(r v1.Run) (counts map[string]int, members int) {
	counts = map[string]int{}
	for _, h := range r.Hosts {
		if h.Stage != "" {
			counts[shownStatus(h.Status, h.RolledBack, 0)]++
			members++
			if h.UpToDate {
				counts[upToDate]++
			}
		}
	}
	return counts, members
}

// memberCount is how many hosts a run is to upgrade.
func memberCount(r v1.Run) int {
	_, members := countHosts(r)
	return members
}

// statusOrder is the order in which statuses are counted: what is done, then what went
// wrong, then what is at work, then what is to come.
var statusOrder = []string{
	string(run.HostFailed), rolledBack, string(run.Unreachable), string(run.Skipped),
	string(run.Draining), string(run.HostUpgrading), string(run.RebootPending), string(run.Rebooting), string(run.Checking),
	string(run.HostPreparing), string(run.Prepared), string(run.Pending),
}

// countLine is such as "12 of 40 upgraded, 1 failed, 2 rebooting, 25 prepared".
func countLine(r v1.Run, counts map[string]int, members int) string {
	if members == 0 {
		return ""
	}
	achieved := run.Achieved(members, counts[string(run.Upgraded)], counts[upToDate])
	if r.RollbackOf != 0 {
		achieved = run.RolledBack(members, counts[string(run.Upgraded)])
	}
	parts := []string{achieved}
	for _, status := range statusOrder {
		if n := counts[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(parts, ", ")
}

// showStages prints the stages of a run that has more than one, with the hosts that
// are out of service.
func showStages(to *terminal, r v1.Run) {
	if len(r.Stages) < 2 {
		return
	}
	out := map[string][]string{}
	for _, h := range r.Hosts {
		if h.Slot != nil && len(out[h.Stage]) < mostNames {
			out[h.Stage] = append(out[h.Stage], h.Hostname)
		}
	}
	to.line("")
	var t table
	done := "UPGRADED"
	if r.RollbackOf != 0 {
		done = "BACK"
	}
	t.add("STAGE", "PHASE", "HOSTS", done, "FAILED", "OUT OF SERVICE")
	for _, g := range r.Stages {
		if g.Step != nil {
			t.addIn(map[int]string{1: phaseColour(g.Phase)}, g.Name, g.Phase, "-", "-", "-", stepText(g))
			continue
		}
		if g.DoneIn != 0 || g.Phase == v1.StageLater {
			t.addIn(map[int]string{1: phaseColour(g.Phase)}, g.Name, g.Phase, fmt.Sprint(g.Hosts), fmt.Sprint(g.Upgraded), "-", strings.TrimPrefix(doneIn(g), ", "))
			continue
		}
		held := fmt.Sprintf("%d, at most %d", g.OutOfService, g.MaxUnavailable)
		if names := out[g.Name]; len(names) > 0 {
			held += ": " + text.ListOf(names, max(g.OutOfService, len(names)), mostNames)
		}
		t.addIn(map[int]string{1: phaseColour(g.Phase)}, g.Name, g.Phase, fmt.Sprint(g.Hosts), fmt.Sprint(g.Upgraded), fmt.Sprint(g.Failed), held)
	}
	t.print(to)
}

// stepText tells of a step where the table of stages has the hosts out of service.
func stepText(g v1.RunStage) string {
	s, said := *g.Step, "a step"+doneIn(g)
	if s.Host != "" {
		said += " on " + s.Host
	}
	if s.Error != "" {
		said += fmt.Sprintf(", failed %s: %s", text.Count(s.Tries, "time", "times"), s.Error)
	}
	return said
}

// doneIn tells of a stage in which earlier run it was done; empty for a stage of this run or a later one.
func doneIn(g v1.RunStage) string {
	if g.DoneIn == 0 {
		return ""
	}
	return fmt.Sprintf(", in run %d", g.DoneIn)
}

// showHosts prints the hosts of a run: each of a few, and of many those that are
// unhealthy.
func (f hostFlags) showHosts(to *terminal, at timeFormat, r v1.Run) {
	var shown []v1.RunHost
	sick := 0
	for _, h := range r.Hosts {
		if isConspicuous(h) {
			sick++
		} else if f.Unhealthy || !f.All && len(r.Hosts) > fewHosts {
			continue
		}
		shown = append(shown, h)
	}
	hidden := len(r.Hosts) - len(shown)
	if more := len(shown) - fewHosts; !f.All && !f.Unhealthy && more > 0 {
		shown = shown[:fewHosts]
	}
	to.line("")
	if len(shown) > 0 {
		hostTable(to, at, r, shown)
	}
	switch {
	case f.Unhealthy && sick == 0:
		to.line("No host is unhealthy.")
	case f.All || f.Unhealthy || hidden == 0:
	case sick > len(shown):
		to.linef("%d more unhealthy hosts; --unhealthy shows them, --all shows all %d hosts.", sick-len(shown), len(r.Hosts))
	default:
		to.linef("%s not shown; --all shows them.", text.Count(hidden, "healthy host", "healthy hosts"))
	}
}

// isConspicuous reports whether a person should look at a host: it is unhealthy, or its action fails
// or takes unusually long.
func isConspicuous(h v1.RunHost) bool { return unhealthy(h) || isFailing(h) || h.OverdueSince != nil }

// unhealthy reports whether a host failed, was left out because it could not be reached, or is
// out of service though it is not at work.
func unhealthy(h v1.RunHost) bool {
	s := run.Status(h.Status)
	return s == run.HostFailed || s == run.Unreachable || h.Slot != nil && (s.Final() || s == run.Prepared || s == run.Pending)
}

func hostTable(to *terminal, at timeFormat, r v1.Run, hosts []v1.RunHost) {
	var t table
	t.add("HOST", "STAGE", "STATUS", "SINCE", "NOTE")
	for _, h := range hosts {
		since := ""
		if h.Since != nil {
			since = at.at(*h.Since)
		}
		notes := hostNotes(at, h)
		if h.GivesUpAt != nil {
			notes = append(notes, "gives up "+at.at(*h.GivesUpAt))
		}
		t.addIn(map[int]string{2: hostColour(h)}, h.Hostname, h.Stage, statusIn(r, h), since, strings.Join(notes, "; "))
	}
	t.print(to)
}

// hostNotes tell what is to be known of a host besides its status.
func hostNotes(at timeFormat, h v1.RunHost) []string {
	var notes []string
	add := func(note string) {
		if note != "" {
			notes = append(notes, note)
		}
	}
	add(h.Error)
	if h.Class != "" {
		add("class " + h.Class)
	}
	if h.UpToDate {
		add("was up to date")
	}
	add(at.text(h.Note))
	if !strings.Contains(h.Progress, h.Failing) {
		add("fails and tries again: " + h.Failing)
	}
	add(h.Progress)
	if h.Slot != nil && (h.Error != "" || unhealthy(h)) {
		add("out of service since " + at.at(*h.Slot) + ": " + at.text(h.SlotReason))
	}
	if h.Seconds > 0 && h.Status == string(run.Upgraded) {
		add("took " + window.FormatDuration(time.Duration(h.Seconds)*time.Second))
	}
	return notes
}

// hostLine is a host in one line.
func hostLine(at timeFormat, r v1.Run, h v1.RunHost) string {
	line := statusIn(r, h)
	if notes := hostNotes(at, h); len(notes) > 0 {
		line += ": " + strings.Join(notes, "; ")
	}
	return line
}

// headline is a run's phase, or its result and why.
func headline(at timeFormat, r v1.Run) string {
	if r.Result == "" {
		return r.Phase
	}
	if strings.HasPrefix(r.Reason, r.Result+" ") { // Such as "aborted by ann: fire drill".
		return r.Reason
	}
	return r.Result + ": " + at.text(r.Reason)
}

func beginner(r v1.Run) string {
	if r.Trigger == "manual" {
		text := "hand (" + r.RequestedBy + ")"
		if back := rollbackOf(r); back != "" {
			text += ", rollback of " + back
		}
		if r.RequestReason != "" {
			text += ": " + r.RequestReason
		}
		return text
	}
	return "its window"
}

func statusColour(status string) string {
	switch status {
	case "idle":
		return green
	case "waiting", "paused", "aborting":
		return yellow
	}
	return ""
}

func resultColour(result string) string {
	if result == string(run.Completed) {
		return green
	}
	return red
}

func phaseColour(phase string) string {
	switch phase {
	case "done":
		return green
	case "waiting-for-approval", "soaking":
		return yellow
	case "skipped", v1.StageLater:
		return grey
	}
	return ""
}

func hostColour(h v1.RunHost) string {
	switch run.Status(h.Status) {
	case run.Upgraded:
		return green
	case run.HostFailed, run.Unreachable:
		return red
	case run.Skipped:
		return grey
	}
	return ""
}
