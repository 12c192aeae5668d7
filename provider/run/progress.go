package run

import (
	"fmt"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// changes tells in one line each what is new in next. The zero Run as prior
// makes everything new.
func changes(prior, next v1.Run) []string {
	var lines []string
	if upgraded := upgradedHosts(next); next.Phase != prior.Phase || upgraded != upgradedHosts(prior) {
		lines = append(lines, fmt.Sprintf("run %d is %s: %d of %d hosts upgraded", next.ID, next.Phase, upgraded, len(next.Hosts)))
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

// colon puts a colon before a text that is there.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
