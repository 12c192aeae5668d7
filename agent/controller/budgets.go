package controller

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// cellsOf returns what the disruption budgets count together, of all hosts of the tenant, whatever
// application they have, with those hosts that a filter keeps.
func (s *state) cellsOf(absent string, keep func(host string) bool) []message.Cell {
	if len(s.intent.budgets) == 0 {
		return nil
	}
	return s.intent.budgets.CellsOf(s.allHosts(), absent, keep)
}

// allHosts returns all known hosts, as a plan takes them.
func (s *state) allHosts() []plan.Host {
	lasting := map[string]bool{}
	for _, env := range s.ledger.Environments() {
		for _, e := range env.Roster().Lasting() {
			lasting[e.Host] = true
		}
	}
	all := make([]plan.Host, 0, len(s.hosts.known))
	for _, h := range s.hosts.sorted() { // Cells are in this order, too.
		name := h.Name
		all = append(all, plan.Host{
			Name: name, Application: h.Application, Role: h.Role, Labels: h.Labels, Silent: !s.hosts.present.online(name), OutOfService: lasting[name],
		})
	}
	return all
}

// editedBudgets returns the event that puts the declared disruption budgets in force, for the runs
// under way and for locked hosts; nil when they are in force already, or cannot be read.
func (s *state) editedBudgets(absent string) *message.Budgeted {
	if !s.intent.complete || s.intent.budgetsID == s.ledger.Cells().Budgets() || s.intent.unplannable() != nil {
		return nil
	}
	return &message.Budgeted{Budgets: s.intent.budgetsID, Cells: s.cellsOf(absent, s.counted)}
}

// maxBudgets bounds the cells that are shown, and those in metrics.
const maxBudgets = 100

// fullest returns the cells of the disruption budgets, the fullest first. While no run is under way
// there are none after an edit of the budgets: the log has those of the last run.
func (s *state) fullest() []roster.Cell {
	cells := s.ledger.Cells()
	if cells.Budgets() == "" || len(s.ledger.UnderWay()) == 0 && cells.Budgets() != s.intent.budgetsID {
		return nil
	}
	return cells.Fullest(maxBudgets)
}

// budgetStates shows the cells that have hosts out of service.
func (s *state) budgetStates() (all []v1.BudgetState) {
	for _, c := range s.fullest() {
		if len(c.Holders) == 0 {
			continue
		}
		shown := v1.BudgetState{Budget: c.Budget, Label: c.Label, Value: c.Value, MaxUnavailable: c.MaxUnavailable, OutOfService: len(c.Holders)}
		for _, h := range c.Holders[:min(len(c.Holders), maxSilent)] {
			shown.Hosts = append(shown.Hosts, h.Name)
		}
		all = append(all, shown)
	}
	return all
}

// neighbours returns the cells of those hosts that have fallen silent since the start, and that a
// run has to be told of only because hosts in its roster are in the same cells. A host that was not
// heard of since the start may have been silent before the run.
func (s *state) neighbours(current *run.State, silent []string) map[string][]message.Cell {
	if len(silent) == 0 || len(s.intent.budgets) == 0 {
		return nil
	}
	cells := map[string][]message.Cell{}
	for _, name := range silent {
		h := s.hosts.known[name]
		if h == nil || h.seen.IsZero() {
			continue
		}
		own := []plan.Host{{Name: name, Application: h.Application, Role: h.Role, Labels: h.Labels}}
		if shared := current.SharedCells(name, s.intent.budgets.Cells(own, current.Rollout().Absent)); len(shared) > 0 {
			cells[name] = shared
		}
	}
	return cells
}
