package rollout

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Budget is a disruption budget of a tenant, the object at
// /v1/config/tenants/{tenant}/os-upgrade/budgets/{name}: how many of some hosts may be out of
// service at once, over all runs. It has either MaxUnavailable or MinAvailable.
type Budget struct {
	// Match selects the hosts; nil means all.
	Match *Match `json:"match,omitempty"`
	// Per is the key of a label: the hosts with each of its values count apart, and those without
	// the label together. Without it all hosts count together.
	Per string `json:"per,omitempty"`
	// MaxUnavailable is how many of the hosts that count together may be out of service at once. A
	// percentage refers to those that are present when a run is opened, and is rounded down, to
	// at least 1.
	MaxUnavailable Count `json:"max-unavailable,omitempty" least:"1"`
	// MinAvailable is how many of them must stay in service. A percentage is rounded up.
	MinAvailable Count `json:"min-available,omitempty" least:"0"`
	// Prometheus is asked besides before one of the hosts leaves service; nil for nothing.
	Prometheus *Query `json:"prometheus,omitempty"`
}

// Query is a query to Prometheus that must return nothing, or only values within its bounds.
type Query struct {
	// URL is that of the server.
	URL string `json:"url"`
	// Query is the expression. Below and Above bound what it returns; without either it must
	// return nothing.
	Query string `json:"query"`
	Below Number `json:"below,omitempty"`
	Above Number `json:"above,omitempty"`
}

func (q Query) inspect(i *inspector, field string) {
	i.url(field+".url", q.URL)
	i.query(field+".query", q.Query)
	i.bounds(field, q.Below, q.Above)
}

// Check returns the query as a check.
func (q Query) Check() Check {
	return Check{Type: Prometheus, URL: q.URL, Query: q.Query, Below: q.Below, Above: q.Above}
}

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (b Budget) Validate() document.Problems {
	var i inspector
	i.members("", b)
	if b.Per != "" && !names.ValidLabel(b.Per) {
		i.wrong("per", b.Per, `is not the key of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`)
	}
	switch {
	case b.MaxUnavailable == "" && b.MinAvailable == "":
		i.add("max-unavailable", "", "it is missing; give max-unavailable or min-available")
	case b.MaxUnavailable != "" && b.MinAvailable != "":
		i.add("min-available", string(b.MinAvailable), "max-unavailable is given, too; give only one of them")
	}
	return i.found
}

// Limit returns how many of the hosts that count together may be out of service at once, while so
// many of them are present.
func (b Budget) Limit(present int) int {
	if b.MaxUnavailable != "" {
		return max(1, b.MaxUnavailable.Of(present, Down))
	}
	return max(0, present-b.MinAvailable.Of(present, Up))
}
