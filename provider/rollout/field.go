package rollout

import (
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// The member timeouts has another name as an attribute: timeouts is what
// Terraform itself calls the limits of the operations.
const (
	timeoutsMember    = "timeouts"
	timeoutsAttribute = "step_timeouts"
)

// leaves are the attributes below which a field has no path in Terraform: the
// elements of sets have no index, and keys of labels may be any text.
var leaves = []string{"hosts", "roles", "applications", "labels"}

// locate finds the attribute of a field of the API.
func locate(field string) (path.Path, bool) {
	if rest, found := strings.CutPrefix(field, timeoutsMember); found {
		field = strings.ReplaceAll(timeoutsAttribute, "_", "-") + rest
	}
	at, ok := diagnostic.Field(shortened(field))
	if !ok {
		return at, false
	}
	_, ok = attributes()[at.Steps()[0].String()]
	return at, ok
}

// shortened cuts a field off behind a leaf.
func shortened(field string) string {
	steps := strings.Split(field, ".")
	for i, step := range steps {
		name, _, _ := strings.Cut(step, "[")
		if i > 0 && slices.Contains(leaves, name) {
			return strings.Join(append(steps[:i:i], name), ".")
		}
	}
	return field
}
