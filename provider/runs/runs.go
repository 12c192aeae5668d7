// Package runs is the data source osupgrade_runs: the runs in a tenant's history
// and the results of their hosts.
//
// It decides nothing and never changes the server.
package runs

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the data source.
const TypeName = "osupgrade_runs"

// DataSource is osupgrade_runs.
type DataSource struct {
	tenantobject.DataSource[model, *model]
}

var (
	_ datasource.DataSourceWithConfigure      = (*DataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*DataSource)(nil)
)

// New returns the data source.
func New() datasource.DataSource {
	return &DataSource{tenantobject.DataSource[model, *model]{TypeName: TypeName}}
}
