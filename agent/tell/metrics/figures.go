package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// figuresTimeout is how long a scrape waits for a controller: one that reads its log at
// its start, or hangs, is shown as not up, and holds up no other metric.
const figuresTimeout = 2 * time.Second

// The metrics of a tenant that are read at the time of a scrape. All but the first are
// absent while the controller does not answer.
var (
	upDesc      = desc("osupgrade_controller_up", "1 while the tenant's controller answers. After a start it answers once it has read its log.")
	servingDesc = desc("osupgrade_controller_serving", "1 while the tenant's controller can work, 0 while its log is not trusted or accepts no records.")
	alarmDesc   = desc("osupgrade_log_alarm", "1 while the log is not trusted and no command is sent: see /readyz.")
	failsDesc   = desc("osupgrade_log_failing", "1 after an append to the log failed, until one succeeds.")
	seqDesc     = desc("osupgrade_log_last_sequence", "The sequence of the last record of the log.")

	hostsDesc       = desc("osupgrade_hosts", "Hosts of the configured applications, by state: in-service, being-upgraded, unhealthy, silent, absent or locked.", "state")
	othersDesc      = desc("osupgrade_hosts_other_applications", "Known hosts whose application is not configured.")
	outdatedDesc    = desc("osupgrade_hosts_outdated", "Hosts on which an upgrade would change something now.")
	longestDesc     = desc("osupgrade_hosts_outdated_longest_seconds", "For how long the longest-outdated host has been outdated.")
	missedDesc      = desc("osupgrade_hosts_missed", "Hosts that missed an upgrade and have not caught up.")
	unversionedDesc = desc("osupgrade_hosts_without_versions", "Hosts that have reported no versions.")
	ageDesc         = desc("osupgrade_host_versions_age_seconds", "For each host, how long its versions have been unchanged.")
	warningsDesc    = desc("osupgrade_host_warnings", "Warnings about hosts outside of runs, by kind.", "kind")

	windowOpenDesc  = desc("osupgrade_window_open", "1 while a window is open.")
	windowStartDesc = desc("osupgrade_window_start_timestamp_seconds", "When the current window opened or, between windows, when the next one opens. Absent if none will.")
	windowEndDesc   = desc("osupgrade_window_end_timestamp_seconds", "When that window closes.")
	frozenDesc      = desc("osupgrade_frozen", "1 while a freeze is in force.")

	calendarAgeDesc     = desc("osupgrade_calendar_age_seconds", "How long ago a calendar with a URL was last fetched. Absent if it never was.", "calendar")
	calendarFailingDesc = desc("osupgrade_calendar_failing", "1 while a calendar with a URL cannot be fetched: 3 tries in a row or more have failed.", "calendar")

	budgetMostDesc = desc("osupgrade_budget_max_unavailable", "How many hosts of a disruption budget may be out of service, by the value of its label. Only the 100 fullest are shown.", "budget", "value")
	budgetOutDesc  = desc("osupgrade_budget_out_of_service", "How many of these hosts are out of service, or about to be.", "budget", "value")

	runActiveDesc   = desc("osupgrade_run_active", "1 while a run is in progress. Otherwise the other metrics of a run are absent.")
	runPhaseDesc    = desc("osupgrade_run_phase", "1 for the phase of the current run, 0 for all others.", "phase")
	runPausedDesc   = desc("osupgrade_run_paused", "1 while the current run is paused.")
	runOpenedDesc   = desc("osupgrade_run_opened_timestamp_seconds", "When the current run was opened.")
	runNotAfterDesc = desc("osupgrade_run_not_after_timestamp_seconds", "When the current run stops sending commands.")
	runHostsDesc    = desc("osupgrade_run_hosts", "Hosts of the current run, by status.", "status")
	runOverdueDesc  = desc("osupgrade_run_hosts_overdue", "Hosts of the current run whose step takes unusually long, or that fell silent at it.")
	runWaitingDesc  = desc("osupgrade_run_waiting_seconds", "How long the current run has been waiting, by what it waits for: host, slot, budget, check, hook, approval, resume, soak or splay.", "what")
	slotsDesc       = desc("osupgrade_run_slots", "How many hosts of a stage of the current run may be out of service.", "stage")
	heldDesc        = desc("osupgrade_run_slots_held", "How many hosts of a stage of the current run are out of service.", "stage")
)

// The metrics of webhooks. A tenant has 20 at most.
var (
	webhookQueueDesc = desc("osupgrade_webhook_queue", "News that are waiting to be sent to a webhook.", "webhook")
	webhookDeadDesc  = desc("osupgrade_webhook_dead", "News that were given up after failed attempts and can be sent again.", "webhook")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// tenantCollector reads the figures of a tenant at the time of a scrape.
type tenantCollector struct{ *Tenant }

// Describe implements prometheus.Collector.
func (tenantCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		upDesc, servingDesc, alarmDesc, failsDesc, seqDesc, hostsDesc, othersDesc, outdatedDesc, longestDesc, missedDesc, unversionedDesc, ageDesc, warningsDesc,
		windowOpenDesc, windowStartDesc, windowEndDesc, frozenDesc, calendarAgeDesc, calendarFailingDesc, budgetMostDesc, budgetOutDesc, runActiveDesc, runPhaseDesc, runPausedDesc, runOpenedDesc, runNotAfterDesc,
		runHostsDesc, runOverdueDesc, runWaitingDesc, slotsDesc, heldDesc, webhookQueueDesc, webhookDeadDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c tenantCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), figuresTimeout)
	defer cancel()
	f, err := c.figures(ctx)
	out <- gauge(upDesc, truth(err == nil))
	if err != nil {
		return
	}
	c.collectWebhooks(ctx, out)
	now := time.Now()
	out <- gauge(servingDesc, truth(f.Serving))
	out <- gauge(alarmDesc, truth(f.Alarm))
	out <- gauge(failsDesc, truth(f.LogFails))
	out <- gauge(seqDesc, float64(f.LastSeq))
	collectHosts(out, f)
	open := !f.WindowStart.IsZero() && !now.Before(f.WindowStart) && now.Before(f.WindowEnd)
	out <- gauge(windowOpenDesc, truth(open))
	out <- gauge(frozenDesc, truth(f.Frozen))
	if !f.WindowStart.IsZero() {
		out <- gauge(windowStartDesc, seconds(f.WindowStart))
		out <- gauge(windowEndDesc, seconds(f.WindowEnd))
	}
	for _, c := range f.Calendars {
		if c.Age >= 0 {
			out <- gauge(calendarAgeDesc, c.Age.Seconds(), c.Name)
		}
		out <- gauge(calendarFailingDesc, truth(c.Failing), c.Name)
	}
	for _, b := range f.Budgets {
		out <- gauge(budgetMostDesc, float64(b.MaxUnavailable), b.Budget, b.Value)
		out <- gauge(budgetOutDesc, float64(b.Out+b.Reserved), b.Budget, b.Value)
	}
	out <- gauge(runActiveDesc, truth(f.Run != nil))
	if f.Run != nil {
		collectRun(out, *f.Run, now)
	}
}

func collectHosts(out chan<- prometheus.Metric, f controller.Figures) {
	for _, service := range roster.Services() {
		out <- gauge(hostsDesc, float64(f.Hosts[service]), string(service))
	}
	out <- gauge(othersDesc, float64(f.Others))
	out <- gauge(outdatedDesc, float64(f.Outdated))
	out <- gauge(longestDesc, f.OutdatedFor.Seconds())
	out <- gauge(missedDesc, float64(f.Missed))
	out <- gauge(unversionedDesc, float64(f.Unversioned))
	count, sum, buckets := uint64(0), 0.0, map[float64]uint64{}
	for _, bound := range ageBuckets {
		buckets[bound] = 0
	}
	for _, age := range f.VersionAges {
		count++
		sum += age.Seconds()
		for _, bound := range ageBuckets {
			if age.Seconds() <= bound {
				buckets[bound]++
			}
		}
	}
	out <- prometheus.MustNewConstHistogram(ageDesc, count, sum, buckets)
	for _, kind := range message.WarningKinds() {
		out <- gauge(warningsDesc, float64(f.Warnings[kind]), string(kind))
	}
}

func collectRun(out chan<- prometheus.Metric, r controller.RunFigures, now time.Time) {
	for _, phase := range []run.Phase{run.Open, run.Preparing, run.Upgrading} {
		out <- gauge(runPhaseDesc, truth(r.Phase == phase), string(phase))
	}
	out <- gauge(runPausedDesc, truth(r.Paused))
	out <- gauge(runOpenedDesc, seconds(r.OpenedAt))
	out <- gauge(runNotAfterDesc, seconds(r.NotAfter))
	for _, status := range run.Statuses() {
		out <- gauge(runHostsDesc, float64(r.Hosts[status]), string(status))
	}
	out <- gauge(runOverdueDesc, float64(r.Overdue))
	if r.WaitingFor != "" {
		out <- gauge(runWaitingDesc, max(0, now.Sub(r.WaitingSince).Seconds()), r.WaitingFor)
	}
	for _, stage := range r.Stages {
		out <- gauge(slotsDesc, float64(stage.MaxUnavailable), stage.Name)
		out <- gauge(heldDesc, float64(stage.OutOfService), stage.Name)
	}
}

// collectWebhooks tells how the webhooks fare.
func (c tenantCollector) collectWebhooks(ctx context.Context, out chan<- prometheus.Metric) {
	if c.webhooks == nil {
		return
	}
	states, err := c.webhooks(ctx)
	if err != nil {
		return
	}
	for _, w := range states {
		out <- gauge(webhookQueueDesc, float64(w.Queued), w.Name)
		out <- gauge(webhookDeadDesc, float64(w.DeadCount), w.Name)
	}
}
