// Package metrics says what the metrics of a site are called and what they mean, and
// serves them in the format of Prometheus.
//
// A tenant's metrics are apart from those of the site and of other tenants, so that who
// may read one tenant sees no other. Labels take values from lists that are known
// beforehand; names that people choose are labels only where there are few of them:
// tenants, the stages of the run under way, and webhooks. It decides nothing, and it keeps nothing
// over a restart: counters begin at 0 then, as Prometheus expects.
package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/otlp"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Site are the metrics of a site.
type Site struct {
	site     *prometheus.Registry
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	streams  prometheus.Gauge

	mu      sync.Mutex
	tenants map[string]*prometheus.Registry
}

// Options are what the metrics of a site are made with.
type Options struct {
	// Version is that of the program.
	Version string
	// Certificates returns the certificates that the site presents.
	Certificates func(now time.Time) []v1.Certificate
	// Healthy returns why the site cannot work, or nil.
	Healthy func() error
	// Sealed returns why the strongbox of the site is sealed, or nil.
	Sealed func() error
	// Audit returns what the audit logs measure.
	Audit func() audit.Figures
	// Traces returns what is measured of traces; nil when none are sent.
	Traces func() otlp.Figures
}

// requestBuckets are for requests that are answered from memory or with one synced write.
var requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}

// New makes the metrics of a site.
func New(o Options) *Site {
	s := &Site{
		site: prometheus.NewRegistry(), tenants: map[string]*prometheus.Registry{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "osupgrade_api_requests_total", Help: "Requests to the REST API, by method, route and response status.",
		}, []string{"method", "route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "osupgrade_api_request_duration_seconds", Help: "How long the REST API took to answer a request. Event streams are not counted.", Buckets: requestBuckets,
		}, []string{"method", "route"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "osupgrade_api_event_streams", Help: "Open event streams."}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "osupgrade_build_info", Help: "Always 1. The label version has the version of the program.", ConstLabels: prometheus.Labels{"version": o.Version},
	})
	build.Set(1)
	s.site.MustRegister(build, s.requests, s.took, s.streams, siteCollector{o}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// The metrics of a site that are read at the time of a scrape.
var (
	healthyDesc     = prometheus.NewDesc("osupgrade_site_healthy", "1 while the site works, 0 while it cannot because its disk is full or its log does not answer.", nil, nil)
	sealedDesc      = prometheus.NewDesc("osupgrade_sealed", "1 while the strongbox of the site is sealed: its REST API answers 503 and webhooks wait. Otherwise 0.", nil, nil)
	auditDesc       = prometheus.NewDesc("osupgrade_audit_records_total", "Records written to the audit logs.", nil, nil)
	auditFailedDesc = prometheus.NewDesc("osupgrade_audit_failures_total", "Records that could not be written to the audit logs. The change was refused, or not reported as done.", nil, nil)
	auditFailsDesc  = prometheus.NewDesc("osupgrade_audit_failing", "1 while the audit logs cannot be written and all changes are refused, otherwise 0.", nil, nil)
	spansDesc       = prometheus.NewDesc("osupgrade_trace_spans_total", "Spans of traces since the agent started, by result: exported, rejected by the collector, or dropped because the queue was full. Absent while no traces are sent.", []string{"result"}, nil)
	spansQueueDesc  = prometheus.NewDesc("osupgrade_trace_queue", "Spans of traces that are waiting to be sent. Absent while no traces are sent.", nil, nil)
	certificateDesc = prometheus.NewDesc("osupgrade_certificate_not_after_timestamp_seconds", "When the certificate of a listener expires.", []string{"listener"}, nil)
)

// siteCollector reads what a site is at the time of a scrape.
type siteCollector struct{ Options }

// Describe implements prometheus.Collector.
func (siteCollector) Describe(out chan<- *prometheus.Desc) {
	out <- healthyDesc
	out <- sealedDesc
	out <- certificateDesc
	out <- auditDesc
	out <- auditFailedDesc
	out <- auditFailsDesc
	out <- spansDesc
	out <- spansQueueDesc
}

// Collect implements prometheus.Collector.
func (c siteCollector) Collect(out chan<- prometheus.Metric) {
	if c.Healthy != nil {
		out <- gauge(healthyDesc, truth(c.Healthy() == nil))
	}
	if c.Sealed != nil {
		out <- gauge(sealedDesc, truth(c.Sealed() != nil))
	}
	if c.Audit != nil {
		figures := c.Audit()
		out <- counter(auditDesc, figures.Written)
		out <- counter(auditFailedDesc, figures.Failed)
		out <- gauge(auditFailsDesc, truth(figures.Failing))
	}
	if c.Traces != nil {
		figures := c.Traces()
		out <- counter(spansDesc, figures.Exported, "exported")
		out <- counter(spansDesc, figures.Rejected, "rejected")
		out <- counter(spansDesc, figures.Dropped, "dropped")
		out <- gauge(spansQueueDesc, float64(figures.Queued))
	}
	if c.Certificates != nil {
		for _, cert := range c.Certificates(time.Now()) {
			out <- gauge(certificateDesc, seconds(cert.NotAfter), cert.Listener)
		}
	}
}

// noRoute is the route of requests that no route matches. What they ask for is theirs to
// choose, so it is no label.
const noRoute = "none"

// Requested notes a request that was answered. The route is the pattern that it matched;
// empty means none.
func (s *Site) Requested(method, route string, status int, took time.Duration) {
	if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodPost, http.MethodDelete, http.MethodOptions}, method) {
		method = "other"
	}
	if route == "" {
		route = noRoute
	}
	s.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	s.took.WithLabelValues(method, route).Observe(took.Seconds())
}

// Streaming notes an event stream that begins; the function that it returns notes its end.
func (s *Site) Streaming() (ended func()) {
	s.streams.Inc()
	return s.streams.Dec
}

const (
	// maxScrapes is how many requests for metrics are answered at once, scrapeTimeout how
	// long one may take.
	maxScrapes    = 4
	scrapeTimeout = 8 * time.Second
)

// Handler answers with the metrics of the site, and with those of the tenants for which
// allowed is true.
func (s *Site) Handler(allowed func(tenant string) bool) http.Handler {
	gatherers := prometheus.Gatherers{s.site}
	s.mu.Lock()
	for tenant, registry := range s.tenants {
		if allowed(tenant) {
			gatherers = append(gatherers, registry)
		}
	}
	s.mu.Unlock()
	return promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout, ErrorHandling: promhttp.ContinueOnError})
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func counter(desc *prometheus.Desc, value uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// seconds is a time as Prometheus has it.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
