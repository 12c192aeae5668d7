package rollout

import (
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestDescriptions_limits: the description of an attribute has the default and the limits
// that the API has for it.
func TestDescriptions_limits(t *testing.T) {
	t.Parallel()
	if n := describes(t, reflect.TypeFor[v1.Rollout](), kind.Describe(), "What must be healthy"); n < 40 {
		t.Errorf("%d defaults and limits found, want 40 at least", n)
	}
}

// describes looks at the attributes of an object of the API. around is the description of
// the attribute above, which may have the limits of all below it.
func describes(t *testing.T, object reflect.Type, attributes map[string]schema.Attribute, around string) (found int) {
	t.Helper()
	for _, field := range reflect.VisibleFields(object) {
		member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		attribute, ok := attributes[kind.Attribute(member)]
		if !ok {
			continue
		}
		description := attribute.GetMarkdownDescription()
		var want []string
		if usual := field.Tag.Get("default"); usual != "" {
			want = append(want, "`"+usual+"` by default")
		}
		if within := field.Tag.Get("within"); within != "" {
			want = append(want, "from `"+strings.Replace(within, " ", "` to `", 1)+"`")
		}
		if least := field.Tag.Get("least"); least != "" {
			want = append(want, "at least `"+least+"`")
		}
		if most := field.Tag.Get("most"); most != "" {
			want = append(want, "at most "+most+" ")
		}
		for _, text := range want {
			found++
			if !strings.Contains(description+around, text) {
				t.Errorf("the description of %s does not say %q: %s", member, text, description)
			}
		}
		below := field.Type
		for below.Kind() == reflect.Pointer || below.Kind() == reflect.Slice {
			below = below.Elem()
		}
		if nested, ok := attribute.(schema.NestedAttribute); ok && below.Kind() == reflect.Struct {
			inner := map[string]schema.Attribute{}
			for name, a := range nested.GetNestedObject().GetAttributes() {
				if a, ok := a.(schema.Attribute); ok {
					inner[name] = a
				}
			}
			found += describes(t, below, inner, description)
		}
	}
	return found
}
