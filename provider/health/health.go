// Package health is the data source osupgrade_health: how the checks come out now that a run asks
// before it prepares any host.
//
// It decides nothing. Each read asks the checks, at the site and on hosts, and changes nothing else.
package health

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the data source.
const TypeName = "osupgrade_health"

// DataSource is osupgrade_health.
type DataSource struct {
	tenantobject.DataSource[model, *model]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// New returns the data source.
func New() datasource.DataSource {
	return &DataSource{tenantobject.DataSource[model, *model]{TypeName: TypeName}}
}
