// Package state is the data source osupgrade_state: what is going on with a
// tenant's upgrades now, and how the last run ended.
//
// It shows what the server says and decides nothing.
package state

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// TypeName is the name of the data source.
const TypeName = "osupgrade_state"

// DataSource is osupgrade_state.
type DataSource struct {
	tenantdatasource.DataSource[model, *model]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// New makes the data source.
func New() datasource.DataSource {
	return &DataSource{tenantdatasource.DataSource[model, *model]{TypeName: TypeName}}
}
