// Package state is the data source osupgrade_state: a tenant's configuration, the
// status of its upgrades, and the result of the last run.
//
// It decides nothing and never changes the server.
package state

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the data source.
const TypeName = "osupgrade_state"

// DataSource is osupgrade_state.
type DataSource struct {
	tenantobject.DataSource[model, *model]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// New returns the data source.
func New() datasource.DataSource {
	return &DataSource{tenantobject.DataSource[model, *model]{TypeName: TypeName}}
}
