package site

import (
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/join"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
)

// The kinds of what a site keeps of identity. Each has a store, which is a folder of that
// name in the folder of the site.
const (
	hostsKind      = "credentials/hosts"
	tokensKind     = "credentials/tokens"
	usersKind      = "credentials/users"
	approlesKind   = "credentials/approles"
	secretIDsKind  = "credentials/secret-ids"
	policiesKind   = "credentials/policies"
	joinTokensKind = "credentials/join-tokens"
	tenantsKind    = "tenants"
	// besideKind has what is no credential, such as when tokens were last used.
	besideKind = "credentials"
)

// stores opens the stores of a site by kind.
type stores struct {
	// dir is the folder of the site.
	dir string
	// failed is why one could not be opened.
	failed error
}

func (s *stores) open(kind string) credential.Store {
	if s.failed != nil {
		return nil
	}
	var stored *credential.Folder
	stored, s.failed = credential.OpenFolder(filepath.Join(s.dir, kind))
	return stored
}

// Identity is all that lets somebody in to a site.
type Identity struct {
	Hosts    *natsd.Hosts
	Tokens   *principal.Tokens
	Logins   *principal.Logins
	Policies *principal.Policies
	Joins    *join.Tokens
}

// openIdentity opens the stores of all that lets somebody in. joining is called at each action
// of a join (tests crash there); nil means nobody.
func openIdentity(dir string, joining func(label string)) (Identity, error) {
	s := &stores{dir: dir}
	hosts, tokens := natsd.NewHosts(s.open(hostsKind)), principal.NewTokens(s.open(tokensKind), s.open(besideKind))
	users, approles := principal.NewUsers(s.open(usersKind)), principal.NewApproles(s.open(approlesKind), s.open(secretIDsKind))
	return Identity{
		Hosts: hosts, Tokens: tokens, Logins: principal.NewLogins(users, approles, tokens),
		Policies: principal.NewPolicies(s.open(policiesKind)), Joins: join.NewTokens(s.open(joinTokensKind), joining),
	}, s.failed
}

// openHosts opens the hosts that a site in dir lets in.
func openHosts(dir string) (*natsd.Hosts, error) {
	s := &stores{dir: dir}
	return natsd.NewHosts(s.open(hostsKind)), s.failed
}

// openTenants opens the tenants that were made by the API on a site in dir.
func openTenants(dir string) (*tenant.Tenants, error) {
	s := &stores{dir: dir}
	return tenant.New(s.open(tenantsKind)), s.failed
}
