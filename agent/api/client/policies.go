package client

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// policiesPath is the path of a tenant's policies, or with a name of one of them.
func policiesPath(tenant, name string) (string, error) {
	if !names.Valid(tenant) {
		return "", fmt.Errorf("tenant %q is not a name; %s", tenant, names.Form)
	}
	path := "/v1/config/tenants/" + tenant + "/policy/policies"
	if name == "" {
		return path, nil
	}
	if !names.Valid(name) {
		return "", fmt.Errorf("policy %q is not a name; %s", name, names.Form)
	}
	return path + "/" + name, nil
}

// PolicyNamed is the policy of that name of a tenant.
func PolicyNamed(name string) Object[v1.Policy] {
	return Object[v1.Policy]{at: func(tenant string) (string, error) {
		if name == "" {
			return "", &NameError{Field: "name", Value: name, Right: names.Form}
		}
		return policiesPath(tenant, name)
	}, same: v1.SamePolicy, canonical: v1.Policy.Canonical}
}

// Policies returns the policies of a tenant, by name.
func (c *Client) Policies(ctx context.Context, tenant string) (all []v1.Policy, err error) {
	path, err := policiesPath(tenant, "")
	if err != nil {
		return nil, err
	}
	return all, c.get(ctx, path, nil, &all)
}
