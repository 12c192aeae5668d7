// Package runs is the data source osupgrade_runs: a tenant's runs that are
// kept, and what became of their hosts.
//
// It shows what the server says and decides nothing.
package runs

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// TypeName is the name of the data source.
const TypeName = "osupgrade_runs"

// DataSource is osupgrade_runs.
type DataSource struct {
	tenantdatasource.DataSource[model, *model]
}

var (
	_ datasource.DataSourceWithConfigure      = (*DataSource)(nil)
	_ datasource.DataSourceWithValidateConfig = (*DataSource)(nil)
)

// New makes the data source.
func New() datasource.DataSource {
	return &DataSource{tenantdatasource.DataSource[model, *model]{TypeName: TypeName}}
}
