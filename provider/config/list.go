package config

import (
	"github.com/hashicorp/terraform-plugin-framework/list"
)

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The configuration of a tenant, if it has one. To list its windows one by one, use `osupgrade_maintenance_window`.", nil)
}
