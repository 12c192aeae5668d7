package rollout

import "github.com/hashicorp/terraform-plugin-framework/list"

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The rollout of a tenant, if it has one.", nil)
}
