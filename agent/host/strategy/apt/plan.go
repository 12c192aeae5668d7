package apt

import (
	"errors"
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/debversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// target is a package and the version that it should have.
type target struct{ name, version string }

// argument returns how apt-get install is told of it.
func (t target) argument() string { return t.name + "=" + t.version }

func arguments(targets []target) []string {
	list := make([]string, 0, len(targets))
	for _, t := range targets {
		list = append(list, t.argument())
	}
	return list
}

// installArguments returns the arguments of apt-get install that carry a plan out,
// and nothing else: each package with its version, what is removed with a "-".
func installArguments(changes []message.Change) []string {
	list := make([]string, 0, len(changes))
	for _, c := range changes {
		if c.To == "" {
			list = append(list, c.Name+"-")
			continue
		}
		list = append(list, c.Name+"="+c.To)
	}
	return list
}

// downgrades reports whether a change goes to an older version.
func downgrades(changes []message.Change) bool {
	return slices.ContainsFunc(changes, func(c message.Change) bool {
		return c.From != "" && c.To != "" && debversion.Compare(c.To, c.From) < 0
	})
}

// beyond returns an error if a simulation has a change that a plan does not have.
// What of the plan is there already is in no simulation.
func beyond(planned []message.Change, would simulation) error {
	to := map[string]message.Change{}
	for _, c := range planned {
		to[c.Name] = c
	}
	var more []string
	for _, c := range would.changes {
		if wanted, ok := to[c.Name]; !ok || wanted.To != c.To {
			more = append(more, c.String())
		}
	}
	if len(more) == 0 {
		return nil
	}
	return fmt.Errorf("apt would also change what is not planned: %s; %s", few(more), remedy.PrepareAgain)
}

// few lists the first of some texts.
func few(all []string) string { return text.List(all, 5) }

// allow are the rules of a plan.
type allow struct {
	// removals allows that packages are removed.
	removals bool
	// security allows only versions of security updates.
	security bool
	// except are patterns of packages that stay as they are.
	except []string
	// rejected are versions that may not be installed.
	rejected message.Rejected
}

// refuses returns why a simulation must not be carried out, or nil.
func (a allow) refuses(would simulation) error {
	for _, c := range would.changes {
		switch {
		case c.To == "" && !a.removals:
			return fmt.Errorf("%s would be removed, and apt-removals is refuse", few(would.removed()))
		case strategy.Matches(a.except, c.Name):
			return fmt.Errorf("%s would be changed, which the release excepts", c.Name)
		case a.rejected.Has(c.Name, c.To):
			return fmt.Errorf("%s %s would be installed, which was rolled back", c.Name, c.To)
		case c.To != "" && a.security && !fromSecurity(c.releases):
			return fmt.Errorf("%s %s would be installed, which is not a security update", c.Name, c.To)
		}
	}
	return nil
}

// choose returns the largest part of targets that a host may have and a reason for
// each that it must not. try simulates the installation of some; an error of it ends
// everything, and refused is why they are refused. When all together are refused,
// halves are tried, so that one bad package does not keep the others back: a few
// simulations for each package that is refused, and one when there is none.
func choose(targets []target, try func([]target) (refused, err error)) (chosen []target, refused map[string]string, err error) {
	refused = map[string]string{}
	var visit func([]target) error
	visit = func(part []target) error {
		if len(part) == 0 {
			return nil
		}
		with := slices.Concat(chosen, part)
		why, err := try(with)
		switch {
		case err != nil:
			return err
		case why == nil:
			chosen = with
			return nil
		case len(part) == 1:
			refused[part[0].name] = why.Error()
			return nil
		}
		half := len(part) / 2
		return errors.Join(visit(part[:half]), visit(part[half:]))
	}
	if err := visit(targets); err != nil {
		return nil, nil, err
	}
	return chosen, refused, nil
}

// heldBack are facts about packages that are not upgraded.
type heldBack struct {
	now    packages
	offers policy
	// deferred are deferred by phasing, pinned have a pin of their own.
	deferred, pinned []string
	// reasons are those of packages that were refused for themselves.
	reasons map[string]string
	// otherwise is the reason of all others.
	otherwise string
}

// list tells why each of the packages stays as it is. What is at its newest version
// is not held back.
func (h heldBack) list(names []string) []message.HeldPackage {
	var held []message.HeldPackage
	for _, name := range names {
		offered := h.offers[name].candidate
		reason := h.otherwise
		switch why := h.reasons[name]; {
		case why != "":
			reason = why
		case h.now[name].want == "hold":
			reason = "held by apt-mark"
		case slices.Contains(h.deferred, name):
			reason = "deferred by the distribution, which offers it to a part of all machines first (phased update)"
		case slices.Contains(h.pinned, name):
			offered, reason = h.offers[name].newest(), "held by a pin in /etc/apt/preferences"
		}
		if version := h.now[name].version; offered != "" && offered != version {
			held = append(held, message.HeldPackage{Name: name, Version: version, Offered: offered, Reason: reason})
		}
	}
	return held
}
