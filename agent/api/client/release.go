package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// ReleaseNamed are the tenants' releases of a name, as CalendarNamed are their calendars.
func ReleaseNamed(name string) Object[v1.Release] {
	o := Object[v1.Release]{noun: v1.ReleaseObject(name), rest: "/releases/" + name, same: v1.SameRelease, canonical: v1.Release.Canonical}
	if !names.Valid(name) {
		o.invalid = fmt.Errorf("release %q is not a name; use at most %d of a-z, 0-9 and -, with no - at either end", name, names.MaxLength)
	}
	return o
}

// Releases lists a tenant's releases, by name.
func (c *Client) Releases(ctx context.Context, tenant string) ([]v1.ReleaseInfo, error) {
	return listed[v1.ReleaseInfo](ctx, c, tenant, "/releases")
}

// StoredReleases gets all releases of a tenant at once, by name, as StoredCalendars does.
func (c *Client) StoredReleases(ctx context.Context, tenant string) (map[string]Stored[v1.Release], error) {
	return storedList[v1.Release](ctx, c, tenant, "/releases", "release")
}

// WithdrawRelease withdraws a release for a reason; without one it undoes the withdrawal.
func (c *Client) WithdrawRelease(ctx context.Context, tenant, name, reason string) error {
	path, err := ReleaseNamed(name).path(tenant)
	if err != nil {
		return err
	}
	var change struct {
		Withdrawn *release.Withdrawn `json:"withdrawn"`
	}
	if reason != "" {
		change.Withdrawn = &release.Withdrawn{Reason: reason}
	}
	_, err = c.do(ctx, request{method: http.MethodPatch, path: path, body: change, repeatable: true})
	return err
}
