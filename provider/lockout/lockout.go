// Package lockout refuses a plan after which nobody could undo it: one that takes away the user
// or approle as which the provider is logged in, or the last admin of a tenant.
//
// It decides from what the server lists of credentials. If the server does not answer, it
// refuses nothing. It warns of a new password of the user as which the provider is logged in.
package lockout

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// Login is a user or an approle that a plan changes.
type Login struct {
	// Kind is v1.UserCredential or v1.ApproleCredential.
	Kind string
	At   tenantobject.Key
	// Had and Has are its roles before and after the change; a deletion leaves none.
	Had, Has []string
	Deletion bool
	// Renews is set if a user gets a new password.
	Renews bool
}

// identity is who the provider is for the server: the id of its token, or the user of its client
// certificate. On the socket of the site it is nobody.
type identity struct{ token, tenant, user string }

func identityOf(api *client.Client) identity {
	own := identity{token: api.TokenID()}
	own.tenant, own.user = api.CertifiedUser()
	return own
}

// has reports whether a credential is the one with which the provider proves who it is.
func (i identity) has(c v1.Credential) bool {
	if i.token != "" {
		return c.ID == i.token
	}
	return i.user != "" && c.Kind == v1.UserCredential && c.Tenant == i.tenant && c.Owner == i.user
}

// admin is the role that lets others in.
const admin = "admin"

// gone are the logins that the plans of a process take the role admin from.
type gone struct {
	mu  sync.Mutex
	all []v1.Credential
}

// Refuse adds an error if the change of a login would lock the provider or a tenant out, and a
// warning if it ends the login of the provider.
func Refuse(ctx context.Context, api *client.Client, data *providerdata.Data, login Login, diags *diag.Diagnostics) {
	loses := login.Deletion || slices.Contains(login.Had, admin) && !slices.Contains(login.Has, admin)
	if api == nil || data == nil || !loses && !login.Renews {
		return
	}
	all, err := api.CredentialsOf(ctx, login.At.Tenant)
	if err != nil {
		return
	}
	own := identityOf(api)
	if !loses {
		login.warn(all, own, diags)
		return
	}
	taken, _ := data.Once("logins without admin", func() any { return &gone{} }).(*gone)
	taken.mu.Lock()
	defer taken.mu.Unlock()
	taken.all = append(taken.all, login.credential())
	summary, detail := login.verdict(all, taken.all, own)
	if summary != "" {
		diags.AddError(summary, detail)
	}
}

// credential is how the server lists the login.
func (l Login) credential() v1.Credential {
	return v1.Credential{Kind: l.Kind, Tenant: l.At.Tenant, Owner: l.At.Name}
}

// verdict returns why a change is refused; empty if it is not. all are the credentials of the
// tenant, taken the logins that lose admin, this one too, and own is who the provider is. A
// provider that is none of the tenant's is an admin of all tenants.
func (l Login) verdict(all, taken []v1.Credential, own identity) (summary, detail string) {
	foreign := true
	lasting := false
	for _, c := range all {
		if c.Tenant != l.At.Tenant {
			continue
		}
		if own.has(c) {
			foreign = false
			if l.isOf(c) {
				return l.itself()
			}
		}
		lasting = lasting || l.isLastingAdmin(c) && !slices.ContainsFunc(taken, func(t v1.Credential) bool {
			return t.Kind == c.Kind && t.Tenant == c.Tenant && t.Owner == c.Owner
		})
	}
	if foreign && l.At.Tenant != client.OfAll || lasting || !slices.Contains(l.Had, admin) {
		return "", ""
	}
	return l.last()
}

// isOf reports whether a credential is the login, or a token of it.
func (l Login) isOf(c v1.Credential) bool {
	return c.Tenant == l.At.Tenant && c.Owner == l.At.Name && (c.Login == l.Kind || c.Kind == l.Kind)
}

// isLastingAdmin reports whether a credential can let others in, and does not end by itself. An
// approle ends with its secret-ids, which only an admin can make, so it replaces only another one.
func (l Login) isLastingAdmin(c v1.Credential) bool {
	return slices.Contains(c.Allow, admin) && c.Login == "" && c.Expires == nil && c.Damage == "" &&
		(c.Kind != v1.ApproleCredential || l.Kind == v1.ApproleCredential)
}

// warn adds a warning if the provider is logged in with the password that is changed. A client
// certificate does not need it.
func (l Login) warn(all []v1.Credential, own identity, diags *diag.Diagnostics) {
	if own.token == "" || !slices.ContainsFunc(all, func(c v1.Credential) bool { return own.has(c) && l.isOf(c) }) {
		return
	}
	diags.AddWarning(fmt.Sprintf("The provider is logged in as this %s", l.Kind), fmt.Sprintf(
		"A new password ends the logins of %s, also that of the provider: what the same apply changes after it fails.\n\n"+
			"Change the password in an apply of its own, and give the provider the new one.", l.title()))
}

func (l Login) itself() (summary, detail string) {
	what := "After its deletion"
	if !l.Deletion {
		what = "Without the role admin"
	}
	return fmt.Sprintf("The provider is logged in as this %s", l.Kind), fmt.Sprintf(
		"The provider is logged in as %s. %s it could not undo what it did. Nothing is changed.\n\n"+
			"Log the provider in as somebody else and plan again. To leave the %s to others, take it out of the state with terraform state rm.", l.title(), what, l.Kind)
}

func (l Login) last() (summary, detail string) {
	who := "tenant " + l.At.Tenant
	if l.At.Tenant == client.OfAll {
		who = "all tenants"
	}
	return "This is the last admin of " + who, fmt.Sprintf(
		"Without %s, no user and no token without an end has the role admin of %s, and nobody there could let others in. Nothing is changed.\n\n"+
			"Make another admin first, and apply. To remove the last one all the same, use osupgrade-agent credentials remove on the machine of the site.", l.title(), who)
}

func (l Login) title() string {
	if l.At.Tenant == client.OfAll {
		return l.Kind + " " + l.At.Name + " of all tenants"
	}
	return l.Kind + " " + l.At.Name + " of tenant " + l.At.Tenant
}
