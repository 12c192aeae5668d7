package run

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// judge tells what a run's end means for the apply: a run that is completed is
// good, a partial one is a warning, and any other is an error.
func judge(tenant string, r v1.Run, diags *diag.Diagnostics) {
	detail := explain(tenant, r)
	switch r.Result {
	case "completed":
	case "partial":
		diags.AddWarning("Not all hosts of "+TypeName+" were upgraded", detail)
	default:
		diags.AddError("Unable to complete "+TypeName,
			detail+"\n\nA run cannot be undone. Put right what it names and apply again, which starts another run.")
	}
}

// explain gives the run's reason and what the hosts said.
func explain(tenant string, r v1.Run) string {
	lines := []string{fmt.Sprintf("Run %d of tenant %s ended with the result %s%s", r.ID, tenant, r.Result, colon(r.Reason))}
	for _, h := range r.Hosts {
		if h.Status != "upgraded" {
			lines = append(lines, fmt.Sprintf("  host %s is %s%s", h.Hostname, h.Status, colon(h.Error)))
		}
	}
	return strings.Join(lines, "\n")
}
