// Package hosts is the data source osupgrade_hosts: a tenant's hosts and the
// versions that they report.
//
// It decides nothing and never changes the server.
package hosts

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the data source.
const TypeName = "osupgrade_hosts"

// DataSource is osupgrade_hosts.
type DataSource struct {
	tenantobject.DataSource[model, *model]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// New returns the data source.
func New() datasource.DataSource {
	return &DataSource{tenantobject.DataSource[model, *model]{TypeName: TypeName}}
}
