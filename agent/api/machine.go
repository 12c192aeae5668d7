package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// machineKey is the key of the user of the site's machine in the context of a request.
type machineKey struct{}

// OnMachine returns the context of requests that a user of the site's machine sends who may
// write the folder of the site anyway: root, or the user whom it belongs to. They need no
// token, and may do everything.
func OnMachine(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, machineKey{}, user)
}

// MachineUser returns the user of a context of OnMachine; local tells whether it is one.
func MachineUser(ctx context.Context) (user string, local bool) {
	user, local = ctx.Value(machineKey{}).(string)
	return user, local
}

// machineProof returns who sends a request from the site's machine: the user of whom the kernel
// knows. What a client says of itself, such as the user behind sudo, proves nothing.
func machineProof(r *http.Request) (p proof, local bool) {
	user, local := MachineUser(r.Context())
	if !local {
		return proof{}, false
	}
	return proof{who: access.Principal{Name: user, As: v1.AuditMachine, Tenant: access.AnyTenant, Roles: []access.Role{access.Machine}}, as: v1.AuditMachine}, true
}

// onMachine reports whether the request was sent and proved on the site's machine.
func (c *call) onMachine() bool { return c.who.As == v1.AuditMachine }

// typedRoles notes in the record of a command which roles it has given; the diff says so of
// any other request.
func (c *call) typedRoles(roles []access.Role) {
	if c.onMachine() {
		c.audit.Detail = "allows " + strings.Join(roles, " ")
	}
}

// recorded is the audit record of the request. That of a command on the site's machine says
// what was typed, and nothing of the request that came of it.
func (c *call) recorded() v1.AuditRecord {
	if !c.onMachine() {
		return c.audit
	}
	r := c.audit
	r.From, r.Status, r.Request, r.RequestID, r.Before, r.After, r.Diff = v1.AuditLocal, 0, "", "", "", "", ""
	return r
}
