// Package hosts is the data source osupgrade_hosts: a tenant's hosts and the
// versions that they report.
//
// It shows what the server says and decides nothing.
package hosts

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// TypeName is the name of the data source.
const TypeName = "osupgrade_hosts"

// DataSource is osupgrade_hosts.
type DataSource struct {
	tenantdatasource.DataSource[model, *model]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// New makes the data source.
func New() datasource.DataSource {
	return &DataSource{tenantdatasource.DataSource[model, *model]{TypeName: TypeName}}
}
