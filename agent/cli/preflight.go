package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// rehearse shows what a start would do.
func (c *operator) rehearse(ctx context.Context, out io.Writer, api *client.Client, body v1.Start) error {
	p, err := api.Preflight(ctx, c.Tenant, body)
	if err != nil {
		return err
	}
	if p.Health != nil {
		complete, err := api.CompleteHealth(ctx, c.Tenant, *p.Health)
		if err != nil {
			return err
		}
		p.Health = &complete
	}
	err = c.Output.show(out, p, func(to *terminal) error {
		showPreflight(to, c.format(), p)
		return nil
	})
	if err == nil && p.Refused != "" {
		what := "a start"
		if body.IsRollback() {
			what = "a rollback"
		}
		err = fmt.Errorf("%s would be refused now: %s", what, c.format().text(p.Refused))
	}
	if err == nil && p.Health != nil {
		err = failedChecks(*p.Health)
	}
	return err
}

// showPreflight prints what a start would do.
func showPreflight(to *terminal, at timeFormat, p v1.Preflight) {
	to.line("Nothing is started, because of --dry-run.")
	if p.Run == nil {
		return
	}
	var f facts
	members, leftOut := divideHosts(*p.Run)
	begins := "now"
	if p.Refused != "" {
		begins = "not now; this is what would start at " + at.at(p.Run.OpenedAt)
	}
	f.add("starts", begins)
	f.add("release", releaseOf(*p.Run))
	f.add("rolls back", rollbackOf(*p.Run))
	if p.UpToDate != "" {
		f.add("nothing to do", p.UpToDate+"; a window opens no run then")
	}
	f.add("not after", at.at(p.Run.NotAfter))
	if w := p.SkippedWindow; w != nil {
		f.add("skipped window", skippedFact(at, *w)+"; only a start by hand opens a run in it")
	}
	f.add("hosts", fmt.Sprintf("%d, and %d left out", len(members), len(leftOut)))
	f.add("expected", expectation(at, p))
	offers := offersOf(p)
	if p.Run.RollbackOf == 0 {
		f.add("changes", offersLine(at, members, offers))
		f.add("reported", agesLine(at, members, offers))
	} else {
		f.add("changes", "each host finds out in prepare whether it can go back, and to what")
	}
	for _, stage := range p.Run.Stages {
		switch {
		case stage.DoneIn != 0:
			f.add("stage "+stage.Name, fmt.Sprintf("done in run %d", stage.DoneIn))
			continue
		case stage.Phase == v1.StageLater:
			f.add("stage "+stage.Name, "for a later run")
			continue
		case stage.Step != nil:
			f.add("stage "+stage.Name, "a step")
			continue
		}
		f.add("stage "+stage.Name, fmt.Sprintf("%s, at most %d out of service", text.Count(stage.Hosts, "host", "hosts"), stage.MaxUnavailable))
		stageHosts(&f, at, *p.Run, members, stage.Name, offers)
	}
	for _, h := range leftOut {
		texts := []string{cmp.Or(at.text(h.Note), h.Error)}
		if h.SlotReason != "" {
			texts = append(texts, outOfService+h.SlotReason)
		}
		f.add("left out "+h.Hostname, strings.Join(texts, "; "))
	}
	for _, w := range p.Warnings {
		f.add("warning", to.paint(yellow, w.String()))
	}
	for _, m := range p.Missing {
		where := "missing on " + m.Host
		if m.Host == "" {
			where = "missing at the site"
		}
		f.add(where, strings.Join(m.What, "; "))
	}
	if len(p.Unknown) > 0 {
		f.add("unknown", "these hosts do not report their scripts, because their workers are too old or have too many: "+someOf(p.Unknown))
	}
	healthFacts(&f, to, p.Health)
	f.print(to)
}

// healthFacts adds the checks that failed, and how many passed.
func healthFacts(f *facts, to *terminal, r *v1.HealthReport) {
	if r == nil {
		return
	}
	passed := 0
	for _, c := range r.Checks {
		switch c.Result {
		case v1.HealthPassed:
			passed++
		case v1.HealthFailed:
			f.add("start check "+c.Check, to.paint(red, fmt.Sprintf("failed on %s: %s", cmp.Or(c.Host, "the site"), c.Text)))
		}
	}
	f.add("start checks", fmt.Sprintf("%d of %d passed", passed, len(r.Checks)))
}

// expectation says how long the run will take and whether it fits.
func expectation(at timeFormat, p v1.Preflight) string {
	if p.Usual == nil {
		return "unknown: no earlier run has upgraded a host"
	}
	basis := fmt.Sprintf("with %s to prepare and %s for a host, as in run %d", seconds(p.Usual.PrepareSeconds), seconds(p.Usual.HostSeconds), p.Usual.Run)
	switch {
	case p.Run.ExpectedEnd == nil && p.Run.Forecast != "":
		return at.text(p.Run.Forecast) + " (" + basis + ")"
	case p.Run.ExpectedEnd == nil:
		return "unknown"
	}
	end := fmt.Sprintf("done at %s, after %s, %s", at.at(*p.Run.ExpectedEnd), window.FormatDuration(p.Run.ExpectedEnd.Sub(p.Run.OpenedAt)), basis)
	switch {
	case p.Run.Forecast != "":
		return "does not fit: " + at.text(p.Run.Forecast) + "; " + end
	case p.Fits != nil && *p.Fits:
		return "fits: " + end
	}
	return end
}

func seconds(n int) string { return window.FormatDuration(time.Duration(n) * time.Second) }

// divideHosts returns the hosts that a run would upgrade, in their order, and those that
// are left out: by the rollout, or because they are silent.
func divideHosts(r v1.Run) (members, leftOut []v1.RunHost) {
	for _, h := range r.Hosts {
		if h.Stage == "" || h.Status == unreachable {
			leftOut = append(leftOut, h)
		} else {
			members = append(members, h)
		}
	}
	return members, leftOut
}

// outOfService precedes the reason why a host is out of service already.
const outOfService = "out of service now: "

// unreachable is the status of a member that is left out when the run is opened.
const unreachable = "unreachable"

// maxInStage is how many hosts of a stage are shown.
const maxInStage = 50

// stageHosts adds the hosts of a stage in their order.
func stageHosts(f *facts, at timeFormat, r v1.Run, members []v1.RunHost, stage string, offers map[string]v1.OfferSummary) {
	n := 0
	for _, h := range members {
		if h.Stage != stage {
			continue
		}
		if n++; n > maxInStage {
			continue
		}
		var texts []string
		if r.RollbackOf == 0 { // What an upgrade would change says nothing of a rollback.
			texts = append(texts, offerLine(at, offers[h.Hostname]))
		}
		if h.ExpectedEnd != nil {
			texts = append(texts, "done at "+at.at(*h.ExpectedEnd))
		}
		if h.SlotReason != "" {
			texts = append(texts, outOfService+h.SlotReason)
		}
		f.add(fmt.Sprintf("  %d. %s", n, h.Hostname), strings.Join(texts, "; "))
	}
	if n > maxInStage {
		f.add(fmt.Sprintf("  and %d more", n-maxInStage), "--output json has all")
	}
}
