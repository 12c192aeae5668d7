package cli

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// plan shows what a run changes on a host, or what the host offers to change, below a line.
func (c *operator) plan(out io.Writer, plan v1.HostPlan, head string) error {
	return c.Output.show(out, plan, func(to *terminal) error {
		to.line(head)
		if len(plan.Changes) > 0 {
			to.line("")
			var t table
			t.add("PACKAGE", "FROM", "TO")
			for _, change := range plan.Changes {
				t.add(change.Package, cmp.Or(change.From, "-"), cmp.Or(change.To, "-"))
			}
			t.print(to)
		}
		if len(plan.Held) > 0 {
			to.line("")
			var t table
			t.add("HELD", "VERSION", "OFFERED", "REASON")
			for _, held := range plan.Held {
				t.add(held.Package, cmp.Or(held.Version, "-"), cmp.Or(held.Offered, "-"), held.Reason)
			}
			t.print(to)
		}
		return nil
	})
}

// summaryOf returns a plan in numbers.
func summaryOf(plan v1.HostPlan) v1.OfferSummary {
	return v1.OfferSummary{At: &plan.At, Changes: len(plan.Changes), Held: len(plan.Held), DownloadBytes: plan.DownloadBytes, Reboot: plan.Reboot, Release: plan.Release}
}

// planSummary is a plan in one line.
func planSummary(plan v1.HostPlan) string { return numbersLine(summaryOf(plan)) }

// numbersLine is a plan in numbers, in one line.
func numbersLine(plan v1.OfferSummary) string {
	line := text.Count(plan.Changes, "change", "changes")
	if plan.Release != nil {
		line += " to release " + plan.Release.Name
	}
	line += besides(plan)
	if plan.Reboot != "" {
		line += ", a reboot: " + plan.Reboot
	}
	return line
}

// besides is what there is to a plan besides its changes and the reboot.
func besides(plan v1.OfferSummary) (line string) {
	if plan.Held > 0 {
		line += fmt.Sprintf(", %d held", plan.Held)
	}
	if plan.DownloadBytes > 0 {
		line += fmt.Sprintf(", %.1f MiB to fetch", float64(plan.DownloadBytes)/(1<<20))
	}
	return line
}

// isStale reports whether an offer is so old that its host should have sent another.
func isStale(offered, now time.Time) bool { return now.Sub(offered) > report.Offer.Again+time.Hour }

// offerLine is what a host offers to change, in one line.
func offerLine(at timeFormat, offer v1.OfferSummary) string {
	if offer.At == nil {
		return "changes unknown"
	}
	line := numbersLine(offer)
	if isStale(*offer.At, at.now) {
		line += fmt.Sprintf(" (reported %s ago, and not since)", window.FormatDuration(at.now.Sub(*offer.At).Truncate(time.Hour)))
	}
	return line
}

// offersLine adds up what the members of a run offer to change.
func offersLine(at timeFormat, members []v1.RunHost, offers map[string]v1.OfferSummary) string {
	var all v1.OfferSummary
	told, changing, reboots, stale := 0, 0, 0, 0
	for _, h := range members {
		offer := offers[h.Hostname]
		if offer.At == nil {
			continue
		}
		told++
		all.Changes += offer.Changes
		all.Held += offer.Held
		all.DownloadBytes += offer.DownloadBytes
		if offer.Changes > 0 {
			changing++
		}
		if offer.Reboot != "" {
			reboots++
		}
		if isStale(*offer.At, at.now) {
			stale++
		}
	}
	if told == 0 {
		return "unknown: no host has reported what would change"
	}
	line := fmt.Sprintf("%s on %s", text.Count(all.Changes, "change", "changes"), text.Count(changing, "host", "hosts")) + besides(all)
	if reboots > 0 {
		line += ", " + text.Count(reboots, "reboot", "reboots")
	}
	if stale > 0 {
		line += fmt.Sprintf("; %s reported more than a day ago", text.Count(stale, "host", "hosts"))
	}
	if silent := len(members) - told; silent > 0 {
		line += fmt.Sprintf("; %s reported nothing", text.Count(silent, "host has", "hosts have"))
	}
	return line
}

// agesLine says how old the reports are that tell what the members of a run offer to change, and
// how to get new ones.
func agesLine(at timeFormat, members []v1.RunHost, offers map[string]v1.OfferSummary) string {
	var oldest, newest time.Time
	for _, h := range members {
		if told := offers[h.Hostname].At; told != nil {
			oldest, newest = times.Sooner(oldest, *told), times.Later(newest, *told)
		}
	}
	const refresh = "to make hosts check now: "
	switch {
	case len(members) == 0:
		return ""
	case oldest.IsZero():
		return refresh + command("hosts", "--refresh")
	}
	ages := at.age(newest) + " ago"
	if oldest := at.age(oldest); oldest != at.age(newest) {
		ages = at.age(newest) + " to " + oldest + " ago"
	}
	return ages + "; " + refresh + command("hosts", "--refresh")
}

// offersOf returns what hosts offer to change, by their names.
func offersOf(p v1.Preflight) map[string]v1.OfferSummary {
	offers := make(map[string]v1.OfferSummary, len(p.Offers))
	for _, offer := range p.Offers {
		offers[offer.Hostname] = offer.OfferSummary
	}
	return offers
}
