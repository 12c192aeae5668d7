package run

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// mostFollowed is the number of hosts up to which a person is told of each change of each host.
const mostFollowed = 20

// changes returns a line for each difference of next from prior. prior may be
// the zero Run. In a run of many hosts, brief leaves out the hosts that do well: a line tells
// of them together, one for each percent.
func changes(prior, next v1.Run, brief bool) []string {
	brief = brief && len(next.Hosts) > mostFollowed
	var lines []string
	if next.Phase != prior.Phase || advance(next, brief) != advance(prior, brief) {
		lines = append(lines, fmt.Sprintf("run %d is %s: %d of %s upgraded", next.ID, next.Phase, upgradedHosts(next), text.Count(len(next.Hosts), "host", "hosts")))
	}
	if w, was := next.WaitingFor, prior.WaitingFor; w != nil && (was == nil || w.What != was.What || w.Detail != was.Detail && !brief) {
		lines = append(lines, fmt.Sprintf("run %d waits for %s: %s", next.ID, w.What, w.Detail))
	}
	if next.Paused != "" && prior.Paused == "" {
		lines = append(lines, fmt.Sprintf("run %d is paused %s", next.ID, next.Paused))
	}
	known := map[string]v1.RunHost{}
	for _, h := range prior.Hosts {
		known[h.Hostname] = h
	}
	for _, h := range next.Hosts {
		if was := known[h.Hostname]; (h.Status != was.Status || h.Error != was.Error) && (!brief || h.Error != "") {
			lines = append(lines, fmt.Sprintf("host %s is %s%s", h.Hostname, h.Status, colon(h.Error)))
		}
	}
	if next.Finished() && !prior.Finished() {
		lines = append(lines, fmt.Sprintf("run %d ended: %s%s", next.ID, next.Result, colon(next.Reason)))
	}
	return lines
}

// advance counts how far a run has come: in hosts, or in percent.
func advance(r v1.Run, brief bool) int {
	if upgraded := upgradedHosts(r); !brief || upgraded == 0 {
		return upgraded
	}
	return upgradedHosts(r) * 100 / len(r.Hosts)
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
