package v1

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// MaxBudgets is how many disruption budgets a tenant may have.
const MaxBudgets = 100

// Budget is a disruption budget of a tenant, the object at
// /v1/config/tenants/{tenant}/os-upgrade/budgets/{name}. Package rollout has its members and their
// rules.
type Budget = rollout.Budget

// BudgetInfo is an entry of the list at /v1/config/tenants/{tenant}/os-upgrade/budgets.
type BudgetInfo struct {
	Name string `json:"name"`
	// ETag is the ETag of the budget.
	ETag string `json:"etag,omitempty"`
	// Budget is the budget itself; only in a list with content=true.
	Budget *Budget `json:"budget,omitempty"`
}

// BudgetState is what a disruption budget counts together: the hosts that have one value of its
// label, or all its hosts.
type BudgetState struct {
	Budget string `json:"budget"`
	// Label and Value are the label and its value; absent for a budget that counts all its hosts
	// together. Value is also absent for the hosts without the label.
	Label string `json:"label,omitempty"`
	Value string `json:"value,omitempty"`
	// MaxUnavailable is how many of the hosts may be out of service at once, OutOfService how many
	// are, or are about to be. It may be more: hosts fall silent.
	MaxUnavailable int `json:"max-unavailable"`
	OutOfService   int `json:"out-of-service"`
	// Hosts are the first ten of these by name.
	Hosts []string `json:"hosts,omitempty"`
}

// BudgetRefusal tells that the query of a disruption budget keeps hosts in service.
type BudgetRefusal struct {
	Budget string    `json:"budget"`
	Since  time.Time `json:"since"`
	// Reason is what the query has returned last, or why it could not be asked.
	Reason string `json:"reason"`
}

// NewBudget is the body of POST .../os-upgrade/budgets: a budget and its name.
type NewBudget struct {
	Name string `json:"name"`
	// Match selects the hosts; all if absent.
	Match *Match `json:"match,omitempty"`
	// Per is the key of a label whose values are counted apart.
	Per string `json:"per,omitempty"`
	// MaxUnavailable is how many of the hosts that count together may be out of service at once,
	// such as 1 or 10%.
	MaxUnavailable rollout.Count `json:"max-unavailable,omitempty"`
	// MinAvailable is how many of them must stay in service. A budget has either of the two.
	MinAvailable rollout.Count `json:"min-available,omitempty"`
	// Prometheus is a query that must return nothing, or only values within its bounds, before one of
	// the hosts leaves service.
	Prometheus *rollout.Query `json:"prometheus,omitempty"`
}

// DecodeNewBudget reads the body of a request that creates a budget; its error and keep are those
// of Form.Decode.
func DecodeNewBudget(contentType string, body []byte, keep bool) (name string, b Kept[Budget], err error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return "", b, err
	}
	var wrong Problems
	if name, _ = d.Root().Text("name"); !names.Valid(name) {
		wrong = Problems{document.Wrong("name", name, "is not the name of a disruption budget; "+names.Form)}
	}
	b, err = BudgetForm.fill(b, d, keep, wrong...)
	return name, b, err
}

// SameBudget reports whether two budgets mean the same.
func SameBudget(a, b Budget) bool { return sameJSON(a, b) }
