package whole

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// ValidateConfig applies the API's rules. A rule may look at the neighbours of
// a value, so that a problem counts only where all of them are known; the rest
// is checked when they are.
func (k *Kind[T]) ValidateConfig(config tftypes.Value, diags *diag.Diagnostics) {
	d := document{member: k.Member}
	members := d.object(config, k.Names())
	if d.err != nil {
		k.broken(diags, d.err)
		return
	}
	var misfits diag.Diagnostics
	declared := k.object(members, &misfits)
	if misfits.HasError() {
		// Such as 1.5 for an integer, of which the framework tells.
		return
	}
	for _, problem := range k.Validate(declared) {
		if d.doubtful(problem.Field) {
			continue
		}
		at, ok := k.Locate(problem.Field)
		if !ok {
			at = path.Empty()
		}
		diags.AddAttributeError(at, "Invalid value of "+at.String(), problem.Message)
	}
}

// object reads the attributes that make up the API's object.
func (d *document) object(resource tftypes.Value, names []string) map[string]any {
	var attributes map[string]tftypes.Value
	d.note(resource.As(&attributes))
	members := map[string]any{}
	for _, name := range names {
		if value := d.read(d.member(name), attributes[name]); value != nil {
			members[d.member(name)] = value
		}
	}
	return members
}

// doubtful reports whether something beside or below a field, or above it, is
// not known.
func (d *document) doubtful(field string) bool {
	around := field
	if end := strings.LastIndexAny(field, ".["); end > 0 {
		around = field[:end]
	}
	for _, unknown := range d.unknown {
		if within(unknown, around) || within(field, unknown) {
			return true
		}
	}
	return false
}

// within reports whether a field is another one, or stands below it.
func within(field, other string) bool {
	rest, below := strings.CutPrefix(field, other)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
