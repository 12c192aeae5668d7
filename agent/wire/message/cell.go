package message

import (
	"errors"
	"fmt"
	"slices"
)

// Cell is what a disruption budget counts together: the hosts that it matches and that have the
// same value of its label.
type Cell struct {
	// Budget is the name of the budget.
	Budget string `json:"budget"`
	// Label is the label whose values the budget counts apart, Value the value that these hosts
	// have. Both are empty for a budget that counts all its hosts together; Value is also empty
	// for the hosts without the label.
	Label string `json:"label,omitempty"`
	Value string `json:"value,omitempty"`
	// MaxUnavailable is how many of the hosts may be out of service at once.
	MaxUnavailable int      `json:"max-unavailable"`
	Hosts          []string `json:"hosts"`
}

// CellKey identifies a cell.
type CellKey struct{ Budget, Value string }

// Key returns what identifies the cell.
func (c Cell) Key() CellKey { return CellKey{c.Budget, c.Value} }

// Name is what people call the cell.
func (c Cell) Name() string {
	switch {
	case c.Label == "":
		return "budget " + c.Budget
	case c.Value == "":
		return fmt.Sprintf("budget %s, no %s", c.Budget, c.Label)
	}
	return fmt.Sprintf("budget %s, %s %s", c.Budget, c.Label, c.Value)
}

// Budgeted tells that the disruption budgets were edited while a run was under way. It belongs to
// no run, and has all cells anew.
type Budgeted struct {
	// Budgets identifies the budgets, as that of Opened; empty when there are none.
	Budgets string `json:"budgets,omitempty"`
	Cells   []Cell `json:"cells,omitempty"`
}

// checkCells tells what is wrong with cells whose hosts must be among others; nil allows any.
func checkCells(cells []Cell, among map[string]bool) error {
	seen := make(map[CellKey]bool, len(cells))
	in := map[[2]string]bool{}
	for _, c := range cells {
		switch {
		case c.Budget == "":
			return errors.New("cells: budget is missing")
		case seen[c.Key()]:
			return fmt.Errorf("cells: %s is named twice", c.Name())
		case c.MaxUnavailable < 0:
			return fmt.Errorf("cells: max-unavailable of %s is %d", c.Name(), c.MaxUnavailable)
		}
		seen[c.Key()] = true
		if err := checkHosts(c.Hosts); err != nil {
			return fmt.Errorf("cells: %s: %w", c.Name(), err)
		}
		for _, host := range c.Hosts {
			switch member := [2]string{c.Budget, host}; {
			case among != nil && !among[host]:
				return fmt.Errorf("cells: %s of %s is not among the hosts", host, c.Name())
			case in[member]:
				return fmt.Errorf("cells: %s is twice in budget %s", host, c.Budget)
			default:
				in[member] = true
			}
		}
	}
	return nil
}

// checkCellsOf tells what is wrong with the cells of members and of the hosts of a roster.
func checkCellsOf(members []string, roster []Entry, cells []Cell) error {
	if len(cells) == 0 {
		return nil
	}
	among := make(map[string]bool, len(members)+len(roster))
	for _, host := range members {
		among[host] = true
	}
	for _, entry := range roster {
		among[entry.Host] = true
	}
	return checkCells(cells, among)
}

// checkCells tells what is wrong with the cells of silent hosts.
func (e Silent) checkCells() error {
	if len(e.Cells) == 0 {
		return nil
	}
	among := make(map[string]bool, len(e.Hosts))
	for _, host := range e.Hosts {
		among[host] = true
	}
	return checkCells(e.Cells, among)
}

// Only returns the cells with only those hosts that a filter keeps, without the cells that then
// have none.
func Only(cells []Cell, keep func(host string) bool) []Cell {
	var some []Cell
	for _, c := range cells {
		c.Hosts = slices.DeleteFunc(slices.Clone(c.Hosts), func(host string) bool { return !keep(host) })
		if len(c.Hosts) > 0 {
			some = append(some, c)
		}
	}
	return some
}
