package run

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// changes returns a line for each difference of next from prior. prior may be
// the zero Run.
func changes(prior, next v1.Run) []string {
	var lines []string
	if upgraded := upgradedHosts(next); next.Phase != prior.Phase || upgraded != upgradedHosts(prior) {
		lines = append(lines, fmt.Sprintf("run %d is %s: %d of %s upgraded", next.ID, next.Phase, upgraded, text.Count(len(next.Hosts), "host", "hosts")))
	}
	if w := next.WaitingFor; w != nil && (prior.WaitingFor == nil || w.Detail != prior.WaitingFor.Detail) {
		lines = append(lines, fmt.Sprintf("run %d waits for %s: %s", next.ID, w.What, w.Detail))
	}
	known := map[string]v1.RunHost{}
	for _, h := range prior.Hosts {
		known[h.Hostname] = h
	}
	for _, h := range next.Hosts {
		if was := known[h.Hostname]; h.Status != was.Status || h.Error != was.Error {
			lines = append(lines, fmt.Sprintf("host %s is %s%s", h.Hostname, h.Status, colon(h.Error)))
		}
	}
	if next.Finished() && !prior.Finished() {
		lines = append(lines, fmt.Sprintf("run %d ended: %s%s", next.ID, next.Result, colon(next.Reason)))
	}
	return lines
}

func upgradedHosts(r v1.Run) int {
	n := 0
	for _, h := range r.Hosts {
		if h.Status == "upgraded" {
			n++
		}
	}
	return n
}

// colon puts a colon before a text that is not empty.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// judge adds an error if a run's result is not accepted.
func judge(tenant string, r v1.Run, accepted bool, diags *diag.Diagnostics) {
	detail := explain(tenant, r)
	switch {
	case accepted && r.Result == "completed":
	case accepted:
		diags.AddWarning("Not all hosts of "+TypeName+" were upgraded", detail)
	case r.Result == "partial":
		diags.AddError("Not all hosts of "+TypeName+" were upgraded", detail+fmt.Sprintf(
			"\n\nTo upgrade the hosts that are left: correct the cause and set retry_of = %d. "+
				"To start another run of all hosts: apply again. To succeed with such a result: set accept = [\"completed\", \"partial\"].", r.ID))
	default:
		diags.AddError("Unable to complete "+TypeName,
			detail+"\n\nA run cannot be undone. Correct the cause and apply again, which starts another run.")
	}
}

// explain lists the run's result and the hosts that were not upgraded.
func explain(tenant string, r v1.Run) string {
	lines := []string{fmt.Sprintf("Run %d of tenant %s ended with the result %s%s", r.ID, tenant, r.Result, colon(r.Reason))}
	for _, h := range r.Hosts {
		if h.Status != "upgraded" {
			lines = append(lines, fmt.Sprintf("  host %s is %s%s", h.Hostname, h.Status, colon(h.Error)))
		}
	}
	return strings.Join(lines, "\n")
}
