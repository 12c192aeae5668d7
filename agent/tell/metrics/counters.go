package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// counters are the counters of one name of all environments of a tenant. As in environmentDesc, those
// of the default one have no label environment.
type counters struct{ plain, named *prometheus.CounterVec }

func counted(name, help string, labels ...string) counters {
	o := prometheus.CounterOpts{Name: name, Help: help}
	return counters{prometheus.NewCounterVec(o, labels), prometheus.NewCounterVec(o, append(labels, environmentLabel))}
}

const environmentLabel = "environment"

// of returns a counter of an environment, of which default has no name.
func (c counters) of(environment string, labels ...string) prometheus.Counter {
	if environment == "" {
		return c.plain.WithLabelValues(labels...)
	}
	return c.named.WithLabelValues(append(labels, environment)...)
}

// byEnvironment are the counters that each environment has.
func (t *Tenant) byEnvironment() []counters {
	return []counters{t.runs, t.ended, t.upToDate, t.failures, t.missed}
}

// beginIn has each counter of an environment begin at 0.
func (t *Tenant) beginIn(environment string) {
	for _, result := range v1.Results() {
		t.runs.of(environment, result)
	}
	for _, status := range run.Statuses() {
		if status.Final() {
			t.ended.of(environment, string(status))
		}
	}
	t.failures.of(environment, unknownClass)
	for _, class := range message.Classes() {
		t.failures.of(environment, string(class))
	}
	t.upToDate.of(environment)
	t.missed.of(environment)
}

// keep has the counters of environments that are new begin, and forgets those of environments that are
// gone.
func (t *Tenant) keep(all []controller.EnvironmentFigures) {
	t.keeping.Lock()
	defer t.keeping.Unlock()
	there := map[string]bool{}
	for _, e := range all {
		if there[e.Name] = true; e.Name != "" && !t.kept[e.Name] {
			t.beginIn(e.Name)
		}
	}
	for _, name := range slices.Collect(maps.Keys(t.kept)) {
		if !there[name] {
			for _, c := range t.byEnvironment() {
				c.named.DeletePartialMatch(prometheus.Labels{environmentLabel: name})
			}
		}
	}
	t.kept = there
}

// collectNamed collects the counters of all environments but the default one, which are registered.
func (t *Tenant) collectNamed(out chan<- prometheus.Metric) {
	for _, c := range t.byEnvironment() {
		c.named.Collect(out)
	}
}
