package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// hostsCommand lists the hosts, or shows one.
type hostsCommand struct {
	operator
	hostFlags
	selectorFlags
	Host    string `arg:"" optional:"" help:"Show everything about this host." complete:"hosts"`
	Offer   bool   `help:"With a HOST: show each package that an upgrade would change now."`
	Wide    bool   `help:"Show also the role, the labels, the strategy and the version of the agent." short:"w"`
	Refresh bool   `help:"Make the HOST, the hosts that --label, --role and --host choose, or all hosts, check what an upgrade would change now. Reports arrive within a minute or so, later if there are more than 1,000 hosts."`
	Waiting bool   `help:"Show the hosts that wait for approval, with their keys."`
	Limit   int    `help:"Show at most this many hosts, ordered by name (default: all)." placeholder:"N"`
	After   string `help:"Show only hosts after this name (for paging)." placeholder:"HOST" complete:"hosts"`
}

// Run implements the command.
func (c *hostsCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	part, err := c.part()
	if err != nil {
		return err
	}
	if c.Refresh {
		return c.refresh(ctx, out, api, part.Selector)
	}
	if c.Offer {
		return c.offer(ctx, out, api)
	}
	if c.Waiting {
		return c.waiting(ctx, out, api)
	}
	if c.Host != "" {
		return c.one(ctx, out, api)
	}
	hosts, why, err := api.HostsPart(ctx, c.Tenant, part)
	if err != nil {
		return err
	}
	return c.Output.show(out, hosts, func(to *terminal) error {
		state, err := api.State(ctx, c.Tenant, "")
		if err != nil {
			return err
		}
		at := c.format()
		if len(why) > 0 {
			to.line(sentence(part.MatchesNone(why)))
		} else if c.list(to, at, hosts); c.Limit > 0 && len(hosts) >= c.Limit {
			to.linef("There may be more: %s shows the next part.", strings.TrimSpace(fmt.Sprintf("%s --limit %d --after %s", part.Selector, c.Limit, hosts[len(hosts)-1].Hostname)))
		}
		showWarnings(to, at, state)
		return nil
	})
}

// one shows all that is known of a host.
func (c *hostsCommand) one(ctx context.Context, out io.Writer, api *client.Client) error {
	host, err := api.Host(ctx, c.Tenant, c.Host)
	if err != nil {
		return err
	}
	return c.Output.show(out, host, func(to *terminal) error {
		offer, err := api.Offer(ctx, c.Tenant, c.Host)
		if err != nil && !client.HasStatus(err, http.StatusNotFound) {
			return err
		}
		summary := summaryOf(offer)
		if err != nil {
			summary.At = nil
		}
		showHost(to, c.format(), host, summary)
		return nil
	})
}

// Validate implements kong's hook.
func (c *hostsCommand) Validate() error {
	if c.Offer && c.Host == "" {
		return errors.New("--offer: name the HOST whose offer is shown; start --dry-run shows a line for each host")
	}
	if c.Refresh && (c.Offer || c.Limit != 0 || c.After != "") {
		return errors.New("--refresh shows no hosts; leave out --offer, --limit and --after")
	}
	if c.Waiting && (c.Host != "" || c.Wide || c.Refresh || c.Limit != 0 || c.After != "" || c.isGiven()) {
		return errors.New("--waiting shows all hosts that wait for approval; leave out the HOST and the other flags")
	}
	if c.Wide && c.Host != "" {
		return errors.New("--wide is for the list of hosts; one HOST is shown with all that is known of it")
	}
	if c.Host != "" && (c.Limit != 0 || c.After != "") {
		return errors.New("--limit and --after are for the list of hosts; leave them out, or leave out the HOST")
	}
	if c.Host != "" && c.isGiven() {
		return errors.New("--host, --label and --role choose several hosts; leave them out, or leave out the HOST")
	}
	part, err := c.part()
	if err != nil {
		return err
	}
	if wrong := part.Validate(); len(wrong) > 0 {
		return wrong
	}
	return c.operator.Validate()
}

// refresh has hosts look for what an upgrade would change.
func (c *hostsCommand) refresh(ctx context.Context, out io.Writer, api *client.Client, of v1.Selector) error {
	wanted := v1.Refresh(of)
	if c.Host != "" {
		wanted.Hosts = []string{c.Host}
	}
	refreshed, err := api.Refresh(ctx, c.Tenant, wanted)
	if err != nil {
		return err
	}
	return c.Output.say(out, refreshed, "%s", refreshedSentence(refreshed))
}

// refreshedSentence says which hosts look now.
func refreshedSentence(r v1.Refreshed) string {
	sentence := text.Count(r.Asked, "host checks", "hosts check") + " now what an upgrade would change"
	if r.WithinSeconds > 0 {
		sentence += fmt.Sprintf(", one after the other within %s", seconds(r.WithinSeconds))
	}
	if r.Recent > 0 {
		sentence += fmt.Sprintf("; %s asked less than a minute ago", text.Count(r.Recent, "was", "were"))
	}
	if r.Silent > 0 {
		sentence += fmt.Sprintf("; %s silent", text.Count(r.Silent, "is", "are"))
	}
	if sentence += "."; r.Asked == 0 {
		return sentence
	}
	return sentence + " Each reports it when it has fetched its lists: " + command("start", "--dry-run") + " shows it."
}

// part is what of the list is shown.
func (c *hostsCommand) part() (v1.HostFilter, error) {
	selector, err := c.selector()
	return v1.HostFilter{Selector: selector, After: c.After, Limit: c.Limit}, err
}

// offer shows what an upgrade of a host would change if it began now.
func (c *hostsCommand) offer(ctx context.Context, out io.Writer, api *client.Client) error {
	offer, err := api.Offer(ctx, c.Tenant, c.Host)
	if err != nil {
		return err
	}
	return c.plan(out, offer, fmt.Sprintf("%s (reported at %s)", planSummary(offer), c.format().at(offer.At)))
}

// manyHosts is how many hosts a list shows one by one: of more it shows those that are
// unhealthy.
const manyHosts = 100

// list prints the hosts, after a summary where they are many.
func (c *hostsCommand) list(to *terminal, at timeFormat, hosts []v1.Host) {
	online, sick := 0, 0
	var shown []v1.Host
	for _, h := range hosts {
		if h.Online {
			online++
		}
		if needsLook(h) {
			sick++
		} else if c.Unhealthy || !c.All && c.Limit == 0 && len(hosts) > manyHosts {
			continue
		}
		shown = append(shown, h)
	}
	if len(hosts) > manyHosts {
		to.linef("%d hosts: %d online, %d unhealthy.", len(hosts), online, sick)
	}
	hidden := len(hosts) - len(shown)
	switch {
	case len(shown) > 0:
		hostRows(to, at, shown, c.Wide)
	case c.Unhealthy && hidden > 0:
		to.line("No host is unhealthy.")
	case hidden == 0:
		to.line("No host to show.")
	}
	if hidden > 0 && !c.Unhealthy {
		to.linef("%s not shown; --all shows them.", text.Count(hidden, "healthy host", "healthy hosts"))
	}
}

// hostRows prints hosts one by one.
func hostRows(to *terminal, at timeFormat, shown []v1.Host, wide bool) {
	var t table
	head := []string{"HOST", "APPLICATION", "ONLINE", "RELEASE", "OUTDATED SINCE", "LAST RUN", "VERSIONS"}
	sorted := slices.ContainsFunc(shown, func(h v1.Host) bool { return h.Environment != "" || h.Unplaced })
	if sorted {
		head = slices.Insert(head, 1, "ENVIRONMENT")
	}
	if wide {
		head = append(head, "ROLE", "LABELS", "STRATEGY", "AGENT")
	}
	t.add(head...)
	for _, h := range shown {
		colours, online := map[int]string{}, 2
		row := []string{h.Hostname, h.Application, onlineCell(h), h.Release, sinceCell(at, h.OutdatedSince), lastRun(at, h), versionsLine(h.Versions)}
		if sorted {
			row, online = slices.Insert(row, 1, environmentCell(h)), online+1
		}
		if !h.Online {
			colours[online] = red
		}
		if h.Unplaced {
			colours[1] = red
		}
		if wide {
			row = append(row, cmp.Or(h.Role, "none"), labelsLine(h.Labels), cmp.Or(h.Strategy, "unknown"), cmp.Or(h.AgentVersion, "unknown"))
		}
		t.addIn(colours, row...)
	}
	t.print(to)
	if n := countUnplaced(shown); n > 0 {
		to.line("")
		to.linef("No run upgrades %s in no environment, because several match. Change the match of one (%s), or move the host: %s",
			text.Count(n, "host that is", "hosts that are"), command("edit", "environments"), command("move", "HOST", "--environment", "NAME"))
	}
}

// countUnplaced counts the hosts that are in no environment.
func countUnplaced(hosts []v1.Host) (n int) {
	for _, h := range hosts {
		if h.Unplaced {
			n++
		}
	}
	return n
}

// environmentCell is a cell of the table: in which environment a host is, and whether somebody has
// moved it there.
func environmentCell(h v1.Host) string {
	switch {
	case h.Unplaced:
		return "none"
	case h.Assigned:
		return h.Environment + " (assigned)"
	}
	return h.Environment
}

// needsLook reports whether somebody has to look at a host: it is silent or in no environment, or its
// last run could not upgrade it.
func needsLook(h v1.Host) bool {
	return !h.Online || h.Unplaced || h.LastRun != nil && (h.LastRun.Status == string(run.HostFailed) || h.LastRun.Status == string(run.Unreachable))
}

// showWarnings prints what is wrong with hosts, also with such that are not known yet.
func showWarnings(to *terminal, at timeFormat, state v1.State) {
	if len(state.Warnings) == 0 {
		return
	}
	to.line("")
	var t table
	t.add("WARNING", "SINCE", "WHAT")
	for _, w := range state.Warnings {
		t.addIn(map[int]string{0: yellow}, w.Host, at.at(w.Since), at.text(w.Text))
	}
	t.print(to)
	if more := state.WarningCount - len(state.Warnings); more > 0 {
		to.linef("and %d more", more)
	}
}

// onlineCell is a cell of the table: whether a host is online, and locked or busy.
func onlineCell(h v1.Host) string {
	if h.LockedSince != nil {
		return yesNo(h.Online) + ", locked"
	}
	if h.Busy != nil {
		return "yes, busy"
	}
	return yesNo(h.Online)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// lastRun is a cell of the table: how the host fares in its last run.
func lastRun(at timeFormat, h v1.Host) string {
	if h.LastRun == nil {
		return "-"
	}
	text := fmt.Sprintf("%d %s", h.LastRun.ID, statusInRun(*h.LastRun))
	if h.MissedSince != nil {
		text += ", missed since " + at.at(*h.MissedSince)
	}
	return text
}

// sinceCell is a cell of the table: when something began; empty if it did not.
func sinceCell(at timeFormat, since *time.Time) string {
	if since == nil {
		return ""
	}
	return at.at(*since)
}

// showHost prints all that is known of a host.
func showHost(to *terminal, at timeFormat, h v1.Host, offer v1.OfferSummary) {
	var f facts
	f.add("host", h.Hostname)
	f.add("application", h.Application)
	f.add("online", yesNo(h.Online)+lastSeen(at, h))
	if h.LockedSince != nil {
		f.add("locked", "since "+at.at(*h.LockedSince)+": it reboots by itself, and is out of service until then")
	}
	if h.Busy != nil {
		f.add("busy", h.Busy.Reason+", until "+at.at(h.Busy.Until)+": no upgrade begins before it is idle")
	}
	f.add("environment", environmentFact(h))
	f.add("role", cmp.Or(h.Role, "none"))
	f.add("labels", labelsLine(h.Labels))
	f.add("strategy", h.Strategy)
	f.add("release", releaseFact(h))
	f.add("agent version", cmp.Or(h.AgentVersion, "unknown")+protocolText(h.Protocol))
	f.add("lease", leaseLine(at, h.Lease))
	f.add("last run", lastRunLine(at, h.LastRun))
	f.add("outdated since", sinceCell(at, h.OutdatedSince))
	if h.MissedSince != nil {
		f.add("missed since", at.at(*h.MissedSince)+": no run has upgraded it since")
	}
	f.add("next upgrade", offerLine(at, offer))
	addInventory(&f, at, h.Inventory)
	for _, w := range h.Warnings {
		f.add("warning", at.text(w.Text)+" (since "+at.at(w.Since)+")")
	}
	versions := "none reported"
	if h.VersionsAt != nil {
		versions = "reported at " + at.at(*h.VersionsAt)
	}
	f.add("versions", versions)
	for _, name := range slices.Sorted(maps.Keys(h.Versions)) {
		f.add("  "+name, h.Versions[name])
	}
	if len(h.Reports) > 0 {
		f.title("reports")
	}
	for i, r := range h.Reports {
		text := reportLine(r)
		if text == "" && i == len(h.Reports)-1 {
			text = "the first report"
		}
		f.add("  "+at.at(r.At), cmp.Or(text, "no version has changed"))
	}
	f.print(to)
}

// environmentFact says in which environment a host is; empty while there is none but default.
func environmentFact(h v1.Host) string {
	if h.Unplaced {
		return "none, because several match it: no run upgrades it; to move it: " + command("move", h.Hostname, "--environment", "NAME")
	}
	return environmentCell(h)
}

// releaseFact says which release a host has, and which it had before; empty if it has had none.
func releaseFact(h v1.Host) string {
	if h.Was == "" {
		return h.Release
	}
	return cmp.Or(h.Release, "none") + ", before that " + h.Was
}

func lastSeen(at timeFormat, h v1.Host) string {
	if h.LastSeen == nil {
		return ", not heard of since the site was started"
	}
	return ", last seen at " + at.at(*h.LastSeen)
}

func labelsLine(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func protocolText(protocol int) string {
	if protocol == 0 {
		return ""
	}
	return fmt.Sprintf(", protocol %d", protocol)
}

func leaseLine(at timeFormat, l *v1.HostLease) string {
	switch {
	case l == nil:
		return "no worker has ever held it"
	case l.Vacant:
		return fmt.Sprintf("given back by worker %s at %s, epoch %d", l.Worker, at.at(l.Since), l.Epoch)
	}
	return fmt.Sprintf("worker %s, process %s, epoch %d, since %s", l.Worker, l.Incarnation, l.Epoch, at.at(l.Since))
}

func lastRunLine(at timeFormat, r *v1.HostRun) string {
	if r == nil {
		return "none"
	}
	text := fmt.Sprintf("%d, %s", r.ID, cmp.Or(r.Result, r.Phase))
	if r.Release != "" {
		text = fmt.Sprintf("%d to release %s, %s", r.ID, r.Release, cmp.Or(r.Result, r.Phase))
	}
	if r.EndedAt != nil {
		text += " at " + at.at(*r.EndedAt)
	}
	return text + "; this host: " + statusInRun(*r)
}

// statusInRun is the status of a host in a run, with the class of its failure.
func statusInRun(r v1.HostRun) string {
	text := shownStatus(r.Status, r.RolledBack)
	if r.Class != "" {
		text += " (" + r.Class + ")"
	}
	if r.UpToDate {
		text += " (was up to date)"
	}
	return text
}

// reportLine says what a report of versions has changed; empty for nothing.
func reportLine(r v1.VersionReport) string {
	var parts []string
	for _, c := range r.Changes[:min(len(r.Changes), maxShown)] {
		switch {
		case c.From == "":
			parts = append(parts, c.Package+" "+c.To+" is new")
		case c.To == "":
			parts = append(parts, c.Package+" "+c.From+" is gone")
		default:
			parts = append(parts, c.Package+" "+c.From+" to "+c.To)
		}
	}
	return text.ListOf(parts, r.Changed, maxShown)
}

// maxShown is the number of packages that a line of the table shows.
const maxShown = 4

func versionsLine(versions map[string]string) string {
	var parts []string
	for name, version := range versions {
		parts = append(parts, name+" "+version)
	}
	slices.Sort(parts)
	return text.List(parts, maxShown)
}

// forgetCommand deletes a host that no longer exists.
type forgetCommand struct {
	reasoned
	confirming
	Host string `arg:"" help:"Name of the host, as hosts shows it." complete:"hosts"`
}

// Run implements the command.
func (c *forgetCommand) Run(ctx context.Context, person *console, out io.Writer) error {
	if wrong := (v1.Ask{Reason: c.Reason}).Validate("forget"); len(wrong) > 0 {
		return wrongFlags(wrong)
	}
	if err := c.asks(ctx, &c.confirming, person, v1.Selector{Hosts: []string{c.Host}}, func(r v1.Run) string { return costOfHost(r, c.Host, "Deleting") }); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	if err := api.DeleteHost(ctx, c.Tenant, c.Host, c.Reason); err != nil {
		return c.format().refusal(err)
	}
	return c.Output.say(out, map[string]string{"tenant": c.Tenant, "forgotten": c.Host},
		"Host %s of tenant %s is deleted. It returns when its worker connects again; remove its key to keep it out.", c.Host, c.Tenant)
}
