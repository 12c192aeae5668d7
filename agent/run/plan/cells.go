package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Budget is a disruption budget and its name.
type Budget struct {
	Name string
	v1.Budget
}

// Budgets are the disruption budgets of a tenant, by name.
type Budgets []Budget

// ID identifies the budgets on the log; empty when there are none.
func (b Budgets) ID() string {
	if len(b) == 0 {
		return ""
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic("budgets have no JSON form: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Cells divides hosts into what the budgets count together, in the order of the budgets and of the
// label's values, with the limit of each. absent is the rollout's word for hosts that were silent
// before: those that do not count are not present, and so in no percentage.
func (b Budgets) Cells(hosts []Host, absent string) []message.Cell {
	return b.CellsOf(hosts, absent, func(string) bool { return true })
}

// CellsOf is Cells with only those hosts that a filter keeps, without the cells that then have none. The
// limits are the same: all hosts count.
func (b Budgets) CellsOf(hosts []Host, absent string, keep func(host string) bool) []message.Cell {
	var all []message.Cell
	byName := func(a, b Host) int { return cmp.Compare(a.Name, b.Name) }
	sorted := hosts
	if !slices.IsSortedFunc(hosts, byName) {
		sorted = slices.SortedFunc(slices.Values(hosts), byName)
	}
	for _, budget := range b {
		all = append(all, budget.cells(sorted, absent, keep)...)
	}
	return all
}

func (b Budget) cells(hosts []Host, absent string, keep func(host string) bool) []message.Cell {
	chosen := compile(cmp.Or(b.Match, &v1.Match{}))
	type counted struct {
		message.Cell
		present int
	}
	cells := map[string]*counted{}
	for _, h := range hosts {
		if !chosen.matches(h) {
			continue
		}
		value := ""
		if b.Per != "" {
			value = h.Labels[b.Per]
		}
		c := cells[value]
		if c == nil {
			c = &counted{Cell: message.Cell{Budget: b.Name, Label: b.Per, Value: value}}
			cells[value] = c
		}
		if keep(h.Name) {
			c.Hosts = append(c.Hosts, h.Name)
		}
		if absent == rollout.CountAbsent || !h.absent() {
			c.present++
		}
	}
	all := make([]message.Cell, 0, len(cells))
	for _, c := range cells {
		if len(c.Hosts) > 0 {
			c.MaxUnavailable = b.Limit(c.present)
			all = append(all, c.Cell)
		}
	}
	slices.SortFunc(all, func(a, b message.Cell) int { return cmp.Compare(a.Value, b.Value) })
	return all
}
