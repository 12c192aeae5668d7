package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// fewEnvironments is the largest number of environments that all get a row; of more, the idle ones
// are summed up in a line.
const fewEnvironments = 8

// showsEnvironments reports whether status shows environments, and not one run of the tenant.
func (c *statusCommand) showsEnvironments(state v1.State) bool {
	return state.Environments > 0 || c.Environment != ""
}

// environmentsOf returns the environments that are shown, the most urgent first.
func (c *statusCommand) environmentsOf(ctx context.Context, api *client.Client) (all []v1.EnvironmentStatus, err error) {
	if c.Environment != "" {
		one, err := api.EnvironmentStatus(ctx, c.Tenant, c.Environment)
		return []v1.EnvironmentStatus{one}, err
	}
	all, err = api.EnvironmentStatuses(ctx, c.Tenant)
	all = slices.DeleteFunc(all, isEmptyDefault)
	slices.SortFunc(all, v1.EnvironmentStatus.Compare)
	return all, err
}

// isEmptyDefault reports whether an environment is that of the hosts that no other has, and there
// are none.
func isEmptyDefault(e v1.EnvironmentStatus) bool {
	return e.Name == v1.DefaultEnvironment && e.Hosts == 0 && e.IsQuiet()
}

// environmentsJSON prints all that is known of environments, the most urgent first.
func (c *statusCommand) environmentsJSON(ctx context.Context, out io.Writer, api *client.Client, state v1.State, chosen chosenHosts) error {
	all, err := c.environmentsOf(ctx, api)
	if err != nil {
		return err
	}
	runs := []v1.Run{}
	for _, e := range all {
		if e.Run == nil || c.Environment == "" && !e.UnderWay() {
			continue
		}
		r, err := api.Run(ctx, c.Tenant, e.Run.ID)
		if err != nil {
			return err
		}
		r.Events = nil
		runs = append(runs, chosen.only(r))
	}
	return c.json(out, map[string]any{"state": state, "environments": all, "runs": runs})
}

// showEnvironments prints the details of the environment that was asked for, or else a row for each,
// and what the most urgent one needs.
func (c *statusCommand) showEnvironments(ctx context.Context, to *terminal, api *client.Client, state v1.State, chosen chosenHosts) error {
	all, err := c.environmentsOf(ctx, api)
	if err != nil {
		return err
	}
	at := c.format()
	advised := adviseEnvironment
	if state.Hosts == 0 { // The configuration of the tenant is at fault, not the match of an environment.
		advised = func(e v1.EnvironmentStatus, r *v1.Run) []advice { return advise(state.Situation, r) }
	}
	todo := slices.Concat(adviseUnplaced(state.Situation), adviseTenant(at, state))
	switch {
	case c.Environment != "":
		newest, err := newestOf(ctx, api, c.Tenant, all[0])
		if err != nil {
			return err
		}
		c.showOne(to, at, state.Environments, all[0], newest, chosen)
		todo = append(advised(all[0], newest), todo...)
	default:
		c.showTable(to, at, state, all)
		if len(all) > 0 && len(all[0].Needs) > 0 {
			look := advice{"or look at environment " + all[0].Name + " first", command("status", "--environment", all[0].Name)}
			todo = slices.Concat(advised(all[0], all[0].Run), []advice{look}, todo)
		}
		showWarnings(to, at, state)
		showUnmatched(to, state)
	}
	to.line("")
	c.printToDo(to, at, todo)
	return nil
}

// newestOf returns the newest run of an environment with all its hosts; nil if there was none.
func newestOf(ctx context.Context, api *client.Client, tenant string, e v1.EnvironmentStatus) (*v1.Run, error) {
	if e.Run == nil {
		return nil, nil //nolint:nilnil // There was none, which is no error.
	}
	r, err := api.Run(ctx, tenant, e.Run.ID)
	return &r, err
}

// showTable prints what is so for the tenant, and a row for each environment. Of many it leaves out
// those in which nothing happens.
func (c *statusCommand) showTable(to *terminal, at timeFormat, state v1.State, all []v1.EnvironmentStatus) {
	shown, quiet := all, []v1.EnvironmentStatus{}
	if !c.All && len(all) > fewEnvironments {
		n := slices.IndexFunc(all, v1.EnvironmentStatus.IsQuiet) // They come last.
		if n >= 0 {
			shown, quiet = all[:n], all[n:]
		}
	}
	var f facts
	if c.used.several {
		f.add("context", c.used.name)
	}
	f.add("tenant", c.Tenant)
	f.add("environments", environmentsLine(all))
	hosts := fmt.Sprint(state.Hosts)
	if state.Silent > 0 {
		hosts += fmt.Sprintf(", %d silent: %s", state.Silent, text.ListOf(state.SilentHosts, state.Silent, mostNames))
	}
	f.add("hosts", hosts)
	if state.Unplaced > 0 {
		f.add("in no environment", fmt.Sprintf("%d: %s", state.Unplaced, text.ListOf(state.UnplacedHosts, state.Unplaced, mostNames)))
	}
	for _, fact := range tenantFacts(at, state.Situation) {
		f.add(fact[0], fact[1])
	}
	f.print(to)
	to.line("")
	if len(shown) > 0 {
		rows := make([]glance, len(shown))
		for i, e := range shown {
			situation := e.Situation()
			rows[i] = glance{v1.TenantStatus{Tenant: e.Name, Situation: &situation, Run: e.Run, Counts: e.Counts}, adviseEnvironment(e, e.Run)}
		}
		printRows(to, at, "ENVIRONMENT", rows)
	}
	if len(quiet) > 0 {
		to.line(quietLine(at, len(shown) > 0, quiet))
	}
	showPromotions(to, at, shown)
}

// environmentsLine is such as "60: 2 in a run, 1 needs you".
func environmentsLine(all []v1.EnvironmentStatus) string {
	sum := v1.SumUp(all)
	if sum == nil {
		return "none"
	}
	var parts []string
	if sum.UnderWay > 0 {
		parts = append(parts, fmt.Sprintf("%d in a run", sum.UnderWay))
	}
	if sum.NeedPerson > 0 {
		parts = append(parts, text.Count(sum.NeedPerson, "needs you", "need you"))
	}
	if len(parts) == 0 {
		return fmt.Sprint(sum.All)
	}
	return fmt.Sprintf("%d: %s", sum.All, strings.Join(parts, ", "))
}

// quietLine sums up the environments in which nothing happens.
func quietLine(at timeFormat, besides bool, quiet []v1.EnvironmentStatus) string {
	line := text.Count(len(quiet), "environment is idle", "environments are idle")
	if besides {
		line = fmt.Sprintf("and %d idle", len(quiet))
	}
	if first := quiet[0]; first.NextUpgradeAt != nil { // They are in the order of their windows.
		line += fmt.Sprintf(", next window %s (%s)", at.at(*first.NextUpgradeAt), first.Name)
	}
	return line + "; --all shows them"
}

// showOne prints what an environment does: its windows, its newest run, and the hosts of that.
func (c *statusCommand) showOne(to *terminal, at timeFormat, several int, e v1.EnvironmentStatus, newest *v1.Run, chosen chosenHosts) {
	var f facts
	f.add("environment", e.Name)
	if e.Removed {
		f.add("deleted", "yes; its run continues")
	}
	f.add("status", to.paint(statusColour(e.Status), e.Status))
	situation := e.Situation()
	situation.Environments = several
	for _, fact := range situationFacts(at, situation, newest) {
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
}

// adviseEnvironment returns what a person has to do for an environment; r is its newest run, nil
// if there was none.
func adviseEnvironment(e v1.EnvironmentStatus, r *v1.Run) []advice {
	if slices.Contains(e.Needs, v1.NeedsNoHost) {
		return []advice{{"no host of a listed worker application is in environment " + e.Name + ": correct its match or the applications of config, or delete it", command("edit", "environment", e.Name)}}
	}
	return allIn(e.Name, advise(e.Situation(), r))
}

// adviseUnplaced is about hosts that are in no environment.
func adviseUnplaced(s v1.Situation) []advice {
	if s.Unplaced == 0 {
		return nil
	}
	return []advice{{
		"choose the environment of " + text.ListOf(s.UnplacedHosts, s.Unplaced, mostNames) + ": no run upgrades a host that several match",
		command("move", s.UnplacedHosts[0], "--environment", "NAME"),
	}}
}
