package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// budgets returns the warnings about disruption budgets that are declared, and about those in force
// that let fewer hosts leave service than a declared rollout.
func (u *unmatched) budgets(i Intent) (found []v1.IntentWarning) {
	for _, b := range i.Budgets {
		u.budget(b)
		if u.InForce != nil {
			if stage, field, text := u.smaller(b, u.InForce.Rollout); field != "" {
				u.add("", "stage %s %s", stage, text)
			}
		}
		found = append(found, u.warnings(v1.BudgetObject(b.Name))...)
	}
	if i.Rollout == nil || u.InForce == nil {
		return found
	}
	for _, b := range u.InForce.Budgets {
		if _, field, text := u.smaller(b, i.Rollout); field != "" {
			u.add(field, "the stage %s", text)
		}
	}
	return append(found, u.warnings(v1.RolloutObject)...)
}

// budget warns of a match or a label that no host has, and of a cell that lets nobody leave service.
func (u *unmatched) budget(b Budget) {
	u.match("match", b.Match, make([]bool, len(u.Hosts)))
	keys := set{}
	for _, h := range u.Hosts {
		for key := range h.Labels {
			keys.add(key)
		}
	}
	if b.Per != "" {
		u.entry("per", b.Per, "label", keys)
	}
	for _, c := range (Budgets{b}).Cells(u.Hosts, rollout.Skip) {
		if c.MaxUnavailable == 0 {
			u.add("min-available", "%s of %s must stay in service, so none can be upgraded", b.MinAvailable, ofCell(c))
			return
		}
	}
}

// smaller returns the first stage of a rollout that lets more hosts of a cell leave service than a
// budget does, the path of its limit, and what that means; empty when there is none. It is no
// mistake: the smaller number counts.
func (u *unmatched) smaller(b Budget, declared *v1.Rollout) (stage, field, what string) {
	full := cmp.Or(declared, &v1.Rollout{}).WithDefaults()
	stages, _ := divide(full, u.Hosts, nil)
	for _, c := range (Budgets{b}).Cells(u.Hosts, rollout.Skip) {
		if c.MaxUnavailable == 0 {
			continue
		}
		for n, hosts := range stages {
			in := 0
			for _, h := range hosts {
				if slices.Contains(c.Hosts, h.Name) {
					in++
				}
			}
			if most := full.Stages[n].Resolve(len(hosts), len(hosts)).MaxUnavailable; min(in, most) > c.MaxUnavailable {
				return full.Stages[n].Name, fmt.Sprintf("stages[%d].max-unavailable", n),
					fmt.Sprintf("lets %d hosts leave service at once, and disruption budget %s lets %d of %s; the smaller number counts", most, b.Name, c.MaxUnavailable, ofCell(c))
			}
		}
	}
	return "", "", ""
}

// ofCell names the hosts of a cell for people.
func ofCell(c message.Cell) string {
	hosts := text.Count(len(c.Hosts), "host", "hosts")
	switch {
	case c.Label == "":
		return hosts
	case c.Value == "":
		return fmt.Sprintf("%s without label %s", hosts, c.Label)
	}
	return fmt.Sprintf("%s with %s=%s", hosts, c.Label, c.Value)
}
