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
	unplacedDesc    = desc("osupgrade_hosts_unplaced", "Hosts that are in no environment, because several match them: no run upgrades them.")
	unversionedDesc = desc("osupgrade_hosts_without_versions", "Hosts that have reported no versions.")
	ageDesc         = desc("osupgrade_host_versions_age_seconds", "For each host, how long its versions have been unchanged.")
	warningsDesc    = desc("osupgrade_host_warnings", "Warnings about hosts outside of runs, by kind.", "kind")

	environmentHostsDesc    = ofEnvironment("osupgrade_environment_hosts", "Hosts of the configured applications in an environment. Like the next two, absent if the tenant has no environment but default.")
	environmentOutdatedDesc = ofEnvironment("osupgrade_environment_hosts_outdated", "Hosts of an environment on which an upgrade would change something now.")
	releaseHostsDesc        = ofEnvironment("osupgrade_release_hosts", "Hosts that have the release to which their environment goes; absent if no run has gone to one.", "release")
	environmentMissedDesc   = ofEnvironment("osupgrade_environment_hosts_missed", "Hosts of an environment that missed an upgrade and have not caught up.")

	windowOpenDesc  = ofEnvironment("osupgrade_window_open", "1 while a window is open.")
	windowStartDesc = ofEnvironment("osupgrade_window_start_timestamp_seconds", "When the current window opened or, between windows, when the next one opens. Absent if none will.")
	windowEndDesc   = ofEnvironment("osupgrade_window_end_timestamp_seconds", "When that window closes.")
	frozenDesc      = desc("osupgrade_frozen", "1 while a freeze is in force.")

	calendarAgeDesc     = desc("osupgrade_calendar_age_seconds", "How long ago a calendar with a URL was last fetched. Absent if it never was.", "calendar")
	calendarFailingDesc = desc("osupgrade_calendar_failing", "1 while a calendar with a URL cannot be fetched: 3 tries in a row or more have failed.", "calendar")

	budgetMostDesc = desc("osupgrade_budget_max_unavailable", "How many hosts of a disruption budget may be out of service, by the value of its label. Only the 100 fullest are shown.", "budget", "value")
	budgetOutDesc  = desc("osupgrade_budget_out_of_service", "How many of these hosts are out of service, or about to be.", "budget", "value")

	budgetQueryDesc = desc("osupgrade_budget_query_refusing", "1 while the query of a disruption budget keeps hosts in service. Absent for a budget without a query.", "budget")

	runActiveDesc   = ofEnvironment("osupgrade_run_active", "1 while a run is in progress. Otherwise the other metrics of a run are absent.")
	runPhaseDesc    = ofEnvironment("osupgrade_run_phase", "1 for the phase of the current run, 0 for all others.", "phase")
	runPausedDesc   = ofEnvironment("osupgrade_run_paused", "1 while the current run is paused.")
	runOpenedDesc   = ofEnvironment("osupgrade_run_opened_timestamp_seconds", "When the current run was opened.")
	runNotAfterDesc = ofEnvironment("osupgrade_run_not_after_timestamp_seconds", "When the current run stops sending commands.")
	runHostsDesc    = ofEnvironment("osupgrade_run_hosts", "Hosts of the current run, by status.", "status")
	runOverdueDesc  = ofEnvironment("osupgrade_run_hosts_overdue", "Hosts of the current run that take unusually long in their status, or fell silent in it.")
	runWaitingDesc  = ofEnvironment("osupgrade_run_waiting_seconds", "How long the current run has been waiting, by what it waits for: host, slot, budget, check, hook, step, approval, resume, soak or splay.", "what")
	slotsDesc       = ofEnvironment("osupgrade_run_slots", "How many hosts of a stage of the current run may be out of service.", "stage")
	stepDesc        = ofEnvironment("osupgrade_run_step", "The phase of each step of the current run: 1 for that in which it is.", "stage", "phase")
	heldDesc        = ofEnvironment("osupgrade_run_slots_held", "How many hosts of a stage of the current run are out of service.", "stage")
)

// The metrics of webhooks. A tenant has 20 at most.
var (
	webhookQueueDesc = desc("osupgrade_webhook_queue", "News that are waiting to be sent to a webhook.", "webhook")
	webhookDeadDesc  = desc("osupgrade_webhook_dead", "News that were given up after failed attempts and can be sent again.", "webhook")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// environmentDesc describes a metric of which each environment has one: that of the default one has
// no label environment, so a tenant without environments has the metrics that it always had.
type environmentDesc struct{ plain, named *prometheus.Desc }

func ofEnvironment(name, help string, labels ...string) environmentDesc {
	return environmentDesc{desc(name, help, labels...), desc(name, help, append(labels, environmentLabel)...)}
}

// gauge is the metric of an environment, of which default has no name.
func (d environmentDesc) gauge(environment string, value float64, labels ...string) prometheus.Metric {
	if environment == "" {
		return gauge(d.plain, value, labels...)
	}
	return gauge(d.named, value, append(labels, environment)...)
}

// tenantCollector reads the figures of a tenant at the time of a scrape.
type tenantCollector struct{ *Tenant }

// Describe implements prometheus.Collector. It describes nothing, because only some metrics of one
// name have the label environment.
func (tenantCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c tenantCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), figuresTimeout)
	defer cancel()
	f, err := c.figures(ctx)
	out <- gauge(upDesc, truth(err == nil))
	if err == nil {
		c.keep(f.Environments)
	}
	c.collectNamed(out)
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
	out <- gauge(frozenDesc, truth(f.Frozen))
	collectWindow(out, "", f.WindowStart, f.WindowEnd, now)
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
	for budget, refusing := range f.Queries {
		out <- gauge(budgetQueryDesc, truth(refusing), budget)
	}
	collectRun(out, "", f.Run, now)
	for _, r := range f.Releases {
		out <- releaseHostsDesc.gauge(r.Environment, float64(r.Hosts), r.Release)
	}
	for _, e := range f.Environments {
		out <- environmentHostsDesc.gauge(e.Name, float64(e.Hosts))
		out <- environmentOutdatedDesc.gauge(e.Name, float64(e.Outdated))
		out <- environmentMissedDesc.gauge(e.Name, float64(e.Missed))
		if e.Name != "" {
			collectWindow(out, e.Name, e.WindowStart, e.WindowEnd, now)
			collectRun(out, e.Name, e.Run, now)
		}
	}
}

// collectWindow tells of the window of an environment that is open or opens next.
func collectWindow(out chan<- prometheus.Metric, environment string, start, end, now time.Time) {
	isOpen := !start.IsZero() && !now.Before(start) && now.Before(end)
	out <- windowOpenDesc.gauge(environment, truth(isOpen))
	if !start.IsZero() {
		out <- windowStartDesc.gauge(environment, seconds(start))
		out <- windowEndDesc.gauge(environment, seconds(end))
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
	out <- gauge(unplacedDesc, float64(f.Unplaced))
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

// collectRun tells of the run of an environment that is under way; nil is none.
func collectRun(out chan<- prometheus.Metric, environment string, r *controller.RunFigures, now time.Time) {
	tell := func(desc environmentDesc, value float64, labels ...string) {
		out <- desc.gauge(environment, value, labels...)
	}
	if tell(runActiveDesc, truth(r != nil)); r == nil {
		return
	}
	for _, phase := range []run.Phase{run.Open, run.Preparing, run.Upgrading} {
		tell(runPhaseDesc, truth(r.Phase == phase), string(phase))
	}
	tell(runPausedDesc, truth(r.Paused))
	tell(runOpenedDesc, seconds(r.OpenedAt))
	tell(runNotAfterDesc, seconds(r.NotAfter))
	for _, status := range run.Statuses() {
		tell(runHostsDesc, float64(r.Hosts[status]), string(status))
	}
	tell(runOverdueDesc, float64(r.Overdue))
	if r.WaitingFor != "" {
		tell(runWaitingDesc, max(0, now.Sub(r.WaitingSince).Seconds()), r.WaitingFor)
	}
	for _, stage := range r.Stages {
		if stage.Step != nil {
			tell(stepDesc, 1, stage.Name, stage.Phase)
			continue
		}
		tell(slotsDesc, float64(stage.MaxUnavailable), stage.Name)
		tell(heldDesc, float64(stage.OutOfService), stage.Name)
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
