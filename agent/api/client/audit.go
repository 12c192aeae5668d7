package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Audit gets the records of a tenant's audit log that a filter chooses. The tenant * has
// those of what belongs to all tenants.
func (c *Client) Audit(ctx context.Context, tenant string, filter v1.AuditFilter) (read v1.AuditLog, err error) {
	if tenant != "*" && !names.Valid(tenant) {
		_, err := tenantPath("state", tenant, "")
		return read, err
	}
	query := url.Values{}
	add := func(name, value string, given bool) {
		if given {
			query.Set(name, value)
		}
	}
	if filter.After != nil {
		query.Set("after", strconv.FormatUint(*filter.After, 10))
	}
	add("by", filter.By, filter.By != "")
	add("object", filter.Object, filter.Object != "")
	add("since", filter.Since.Format(time.RFC3339Nano), !filter.Since.IsZero())
	add("until", filter.Until.Format(time.RFC3339Nano), !filter.Until.IsZero())
	add("limit", strconv.Itoa(filter.Limit), filter.Limit != 0)
	return read, c.get(ctx, "/v1/state/tenants/"+tenant+"/audit", query, &read)
}
