package metrics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/webhook"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Tenant are the metrics of a tenant. It is the observer of the tenant's controller.
type Tenant struct {
	site     *Site
	name     string
	figures  func(context.Context) (controller.Figures, error)
	runs     counters
	ended    counters
	upToDate counters
	failures counters
	missed   counters
	took     prometheus.Histogram
	commands *prometheus.HistogramVec
	appends  *prometheus.HistogramVec
	sent     *prometheus.CounterVec
	webhooks func(context.Context) ([]v1.WebhookState, error)

	// kept are the environments of the last scrape, whose counters have begun.
	keeping sync.Mutex
	kept    map[string]bool
}

const (
	minute = 60.0
	hour   = 60 * minute
	day    = 24 * hour
)

var (
	commandBuckets = []float64{5, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 40 * minute, hour, 2 * hour, 4 * hour}
	runBuckets     = []float64{minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 8 * hour, 16 * hour, day, 2 * day, 7 * day}
	appendBuckets  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	ageBuckets     = []float64{day, 7 * day, 14 * day, 30 * day, 60 * day, 90 * day, 180 * day, 365 * day}
)

// unknownClass is the class of a failure of which the host has not told any.
const unknownClass = "unknown"

// The outcomes of an append to the log.
const (
	appended     = "ok"
	appendBehind = "behind"
	appendFailed = "error"
)

// Tenant makes the metrics of a tenant. They are served once Serve was called.
func (s *Site) Tenant(name string) *Tenant {
	t := &Tenant{
		site: s, name: name,
		runs:     counted("osupgrade_runs_total", "Runs that have ended since the agent started, by result.", "result"),
		ended:    counted("osupgrade_run_hosts_ended_total", "Hosts whose part in a run has ended since the agent started, by status.", "status"),
		upToDate: counted("osupgrade_run_hosts_up_to_date_total", "Hosts that a run found up to date since the agent started; they also count as upgraded."),
		failures: counted("osupgrade_host_failures_total", "Hosts that failed in a run since the agent started, by class of the failure; unknown if the host reported none.", "class"),
		missed:   counted("osupgrade_windows_missed_total", "Windows that closed without a run since the agent started."),
		took:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "osupgrade_run_duration_seconds", Help: "Duration of finished runs.", Buckets: runBuckets}),
		commands: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "osupgrade_command_duration_seconds", Help: "How long hosts took to answer each command.", Buckets: commandBuckets,
		}, []string{"command"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "osupgrade_webhook_tries_total", Help: "Attempts to deliver news to webhooks since the agent started, by result: delivered, retry, dead or gone.",
		}, []string{"result"}),
		appends: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "osupgrade_log_append_duration_seconds", Buckets: appendBuckets,
			Help: "How long a synced append to the log took, by result: behind means that another controller had written in between.",
		}, []string{"result"}),
	}
	t.beginIn("")
	t.begin()
	return t
}

// webhookResults are the results of tries, in the order of the verdicts of package webhook.
var webhookResults = []string{"delivered", "retry", "dead", "gone"}

// Sent counts a try to deliver news to a webhook.
func (t *Tenant) Sent(v webhook.Verdict) { t.sent.WithLabelValues(webhookResults[v]).Inc() }

// Webhooks has each scrape read how the webhooks fare.
func (t *Tenant) Webhooks(states func(context.Context) ([]v1.WebhookState, error)) {
	t.webhooks = states
}

// Serve serves the metrics from now on; figures are read at each scrape.
func (t *Tenant) Serve(figures func(context.Context) (controller.Figures, error)) {
	t.figures = figures
	registry := prometheus.NewRegistry()
	prometheus.WrapRegistererWith(prometheus.Labels{"tenant": t.name}, registry).
		MustRegister(t.runs.plain, t.ended.plain, t.upToDate.plain, t.failures.plain, t.took, t.commands, t.missed.plain, t.appends, t.sent, tenantCollector{t})
	t.site.mu.Lock()
	defer t.site.mu.Unlock()
	t.site.tenants[t.name] = registry
}

// Forget serves the metrics of a tenant no longer.
func (s *Site) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tenants, name)
}

// begin has each counter begin at 0: the first failure would be no increase otherwise.
func (t *Tenant) begin() {
	for _, action := range []message.Action{message.Prepare, message.Upgrade, message.Reboot} {
		t.commands.WithLabelValues(string(action))
	}
	for _, result := range webhookResults {
		t.sent.WithLabelValues(result)
	}
	for _, result := range []string{appended, appendBehind, appendFailed} {
		t.appends.WithLabelValues(result)
	}
}

// RunEnded implements controller.Observer.
func (t *Tenant) RunEnded(environment string, result run.Result, took time.Duration) {
	t.runs.of(environment, string(result)).Inc()
	t.took.Observe(took.Seconds())
}

// HostEnded implements controller.Observer.
func (t *Tenant) HostEnded(environment string, member run.Host) {
	t.ended.of(environment, string(member.Status)).Inc()
	if member.UpToDate {
		t.upToDate.of(environment).Inc()
	}
	if member.Status == run.HostFailed {
		label := unknownClass
		if member.Class.Known() {
			label = string(member.Class)
		}
		t.failures.of(environment, label).Inc()
	}
}

// Answered implements controller.Observer.
func (t *Tenant) Answered(action message.Action, took time.Duration) {
	t.commands.WithLabelValues(string(action)).Observe(took.Seconds())
}

// WindowMissed implements controller.Observer.
func (t *Tenant) WindowMissed(environment string) { t.missed.of(environment).Inc() }

// Log is a log whose appends are measured.
func (t *Tenant) Log(l log.Log) log.Log { return measuredLog{l, t.appends} }

type measuredLog struct {
	log.Log
	took *prometheus.HistogramVec
}

// Append implements log.Log.
func (l measuredLog) Append(ctx context.Context, r message.Record, expect uint64) (uint64, error) {
	begun := time.Now()
	seq, err := l.Log.Append(ctx, r, expect)
	l.note(begun, err)
	return seq, err
}

// AppendNext implements log.Log.
func (l measuredLog) AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error) {
	begun := time.Now()
	seq, err := l.Log.AppendNext(ctx, r, expect, last)
	l.note(begun, err)
	return seq, err
}

func (l measuredLog) note(begun time.Time, err error) {
	result := appended
	if errors.Is(err, log.ErrBehind) {
		result = appendBehind
	} else if err != nil {
		result = appendFailed
	}
	l.took.WithLabelValues(result).Observe(time.Since(begun).Seconds())
}
