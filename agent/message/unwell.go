package message

import (
	"fmt"
	"time"
)

// Unwell is a host that holds its slot from one run to the next: it was taken
// out of service, and nothing has shown since that it is well again. What it
// lacks is told so that the next run knows what would show that.
type Unwell struct {
	Host string `json:"host"`
	// Since is when it was taken out of service.
	Since time.Time `json:"since"`
	// Late is the command that it has not answered; empty when it has.
	Late Action `json:"late,omitempty"`
	// Unknown tells that its answer was that nobody knows what it did: it is not
	// touched before somebody who has looked releases it.
	Unknown bool `json:"unknown,omitempty"`
	// Drained tells that it was drained and not undrained.
	Drained bool `json:"drained,omitempty"`
	// Checks are the kind of checks that it has to pass; empty when none.
	Checks TaskKind `json:"checks,omitempty"`
}

// checkUnwell tells what is wrong with the hosts that are not well.
func checkUnwell(hosts []Unwell) error {
	seen := make(map[string]bool, len(hosts))
	for _, u := range hosts {
		switch {
		case !ValidHost(u.Host):
			return fmt.Errorf("unwell names %q, which is not a host name", u.Host)
		case seen[u.Host]:
			return fmt.Errorf("unwell names %s twice", u.Host)
		case u.Late != "" && !u.Late.Known():
			return fmt.Errorf("unwell: %s has not answered %q, which is no action", u.Host, u.Late)
		case u.Checks != "" && u.Checks != BeforeHost && u.Checks != AfterHost:
			return fmt.Errorf("unwell: %s has to pass %q, which are no checks of a host", u.Host, u.Checks)
		}
		seen[u.Host] = true
	}
	return nil
}
