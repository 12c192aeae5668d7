package cli

import (
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// selectorFlags choose hosts, in each command that acts on several or shows them.
type selectorFlags struct {
	Hosts  []string `name:"host" help:"Only this host (repeatable: one of them)." placeholder:"NAME" complete:"hosts"`
	Labels []string `name:"label" help:"Only hosts with this label (repeatable: all of them); KEY=VALUE,VALUE is one of several values." placeholder:"KEY=VALUE" sep:"none"`
	Roles  []string `name:"role" help:"Only hosts with this role (repeatable: one of them)." placeholder:"ROLE" sep:"none"`
}

// selector returns what the flags choose.
func (f selectorFlags) selector() (v1.Selector, error) {
	selector, wrong := v1.ParseSelector(f.Hosts, f.Labels, f.Roles)
	return selector, wrongFlags(wrong)
}

// isGiven reports whether any of the flags is.
func (f selectorFlags) isGiven() bool { return len(f.Hosts)+len(f.Labels)+len(f.Roles) > 0 }
