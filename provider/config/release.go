package config

import (
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	providerrelease "github.com/osupgrade/terraform-provider-osupgrade/provider/release"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// The attributes that say what runs install. They are one part of the configuration.
const (
	releases = "releases"
	follow   = "follow"
)

// target is the part that says what runs install. It is owned with nothing in it where its map is empty
// and not nil.
var target = tenantobject.Part[v1.OSUpgrade]{
	Owned: func(c v1.OSUpgrade) bool { return c.Releases != nil || c.Follow != nil },
	Same: func(a, b v1.OSUpgrade) bool {
		return reflect.DeepEqual(a.Target.Canonical(), b.Target.Canonical())
	},
	Copy:  func(to *v1.OSUpgrade, from v1.OSUpgrade) { to.Target = from.Target },
	Clear: func(c *v1.OSUpgrade) { c.Target = release.Target{Releases: map[string]string{}} },
	Conflicts: func(prior, server, want v1.OSUpgrade) []tenantobject.Conflict {
		at := path.Root(releases)
		if want.Follow != nil {
			at = path.Root(follow)
		}
		return []tenantobject.Conflict{{
			At: at, Unowned: prior.Releases == nil && prior.Follow == nil,
			Was: goesTo(prior.Target), Server: goesTo(server.Target), Want: goesTo(want.Target),
		}}
	},
}

// needs is the release that a configuration names.
func needs(want v1.OSUpgrade, at tenantobject.Key) []string {
	if name := want.Named(); name != "" {
		return []string{tenantobject.Needed(providerrelease.TypeName, tenantobject.Key{Tenant: at.Tenant, Name: name})}
	}
	return nil
}

// goesTo says for people what runs install.
func goesTo(of release.Target) []string {
	switch {
	case of.Follow != nil:
		name := "follow"
		if of.Follow.Select != "" {
			name += " " + of.Follow.Select
		}
		if of.Follow.Age != "" {
			name += " of age " + of.Follow.Age
		}
		return []string{name}
	case of.Named() != "":
		return []string{of.Named()}
	}
	return nil
}
