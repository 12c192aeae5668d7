package cli

import (
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// promotionLine says how far an environment has come to a release; empty if no run has gone to one. It is
// such as "spring -> summer: 260 of 412 hosts; steps done: backup; rollback open until stage rest begins".
func promotionLine(at timeFormat, p *v1.Promotion) string {
	if p == nil {
		return ""
	}
	release := p.Release
	if p.Was != "" {
		release = p.Was + " -> " + p.Release
	}
	hosts := fmt.Sprintf("%d of %s", p.Hosts.Has, text.Count(p.Hosts.Of, "host", "hosts"))
	if back := p.RolledBack; back != nil {
		return fmt.Sprintf("%s: rolled back by run %d, %s%s; %s still have it", release, back.Run, at.at(back.At), byWhom(back.By, back.Reason), hosts)
	}
	parts := []string{release + ": " + hosts}
	if len(p.StepsDone) > 0 {
		parts = append(parts, "steps done: "+strings.Join(p.StepsDone, ", "))
	}
	return strings.Join(append(parts, rollbackOpen(at, p.WayBack)), "; ")
}

// rollbackOpen tells whether a release can be rolled back.
func rollbackOpen(at timeFormat, w *v1.WayBack) string {
	if w != nil && w.Closed != nil {
		return fmt.Sprintf("no rollback since %s, when stage %s began", at.at(*w.Closed), w.Until)
	}
	return "rollback " + wayBackOpen(w)
}

// wayBackOpen tells until when there is a way back.
func wayBackOpen(w *v1.WayBack) string {
	if w == nil {
		return "open"
	}
	return fmt.Sprintf("open until stage %s begins", w.Until)
}

// byWhom tells who has started something, and why.
func byWhom(by, why string) string {
	switch {
	case by == "":
		return ""
	case why == "":
		return " by " + by
	}
	return fmt.Sprintf(" by %s (%s)", by, why)
}

// showPromotions prints how far environments have come to a release, those that go to one.
func showPromotions(to *terminal, at timeFormat, all []v1.EnvironmentStatus) {
	var t table
	t.add("ENVIRONMENT", "RELEASE")
	for _, e := range all {
		if e.Promotion != nil {
			t.add(e.Name, promotionLine(at, e.Promotion))
		}
	}
	if len(t.rows) > 1 {
		to.line("")
		t.print(to)
	}
}
