package connection

import "sync"

// claims remembers which object of the configuration manages which list.
// Terraform itself never sees that two resources are one object of the API
// (terraform.md 4.5 rule 3).
type claims struct {
	mu   sync.Mutex
	held map[claim]string
}

type claim struct{ tenant, list string }

// Claim notes that the object with this configuration manages a list of the
// tenant, and reports whether no other object does. One object may claim
// again: Terraform plans a replacement twice.
func (c *Connection) Claim(tenant, list, configuration string) bool {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	if c.claims.held == nil {
		c.claims.held = map[claim]string{}
	}
	key := claim{tenant, list}
	holder, taken := c.claims.held[key]
	if !taken {
		c.claims.held[key] = configuration
		return true
	}
	return holder == configuration
}
