package message

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
)

// Debt is what has yet to show that a host is well again.
type Debt struct {
	// Answer is the command that it has not answered, so that it may be at work;
	// empty when it has.
	Answer Action `json:"late,omitempty"`
	// Look means that nobody knows what the host did, itself included: it is not
	// touched before somebody who has looked releases it.
	Look bool `json:"unknown,omitempty"`
	// Undrain means that it was drained and is not undrained.
	Undrain bool `json:"drained,omitempty"`
	// Checks is the kind of the checks that it has to pass; empty when none.
	Checks TaskKind `json:"checks,omitempty"`
}

// Any reports whether there is any debt.
func (d Debt) Any() bool { return d != Debt{} }

// Unwell is a host that is out of service from one run to the next: it was taken
// out of service, and nothing has shown since that it is well again.
type Unwell struct {
	Host string `json:"host"`
	// Since is when it was taken out of service.
	Since time.Time `json:"since"`
	Debt
}

// checkUnwell tells what is wrong with the hosts that are not well.
func checkUnwell(hosts []Unwell) error {
	seen := make(map[string]bool, len(hosts))
	for _, u := range hosts {
		switch {
		case !names.ValidHost(u.Host):
			return fmt.Errorf("unwell names %q, which is not a host name", u.Host)
		case seen[u.Host]:
			return fmt.Errorf("unwell names %s twice", u.Host)
		case u.Answer != "" && !u.Answer.Known():
			return fmt.Errorf("unwell: %s has not answered %q, which is no action", u.Host, u.Answer)
		case u.Checks != "" && u.Checks != BeforeHost && u.Checks != AfterHost:
			return fmt.Errorf("unwell: %s has to pass %q, which are no checks of a host", u.Host, u.Checks)
		}
		seen[u.Host] = true
	}
	return nil
}
