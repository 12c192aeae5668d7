package diagnostics

import (
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/path"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// hyphenated matches a word with hyphens, with the characters before it.
var hyphenated = regexp.MustCompile(`(^|[^a-z0-9_-])([a-z]+(?:-[a-z]+)+)`)

// HCL returns a message about an object of the API with the names of its members as
// Terraform has them: start_time for start-time. Other words with hyphens, such as
// site-local, and options of commands stay.
func HCL(message string) string {
	return hyphenated.ReplaceAllStringFunc(message, func(found string) string {
		word := strings.TrimLeft(found, found[:strings.IndexFunc(found, func(r rune) bool { return r >= 'a' && r <= 'z' })])
		before := strings.TrimSuffix(found, word)
		if members()[word] {
			word = strings.ReplaceAll(word, "-", "_")
		}
		return before + word
	})
}

// Attribute returns a path as a configuration spells it. An element of a set has no index
// there: it is named by its set, and by its value in the message.
func Attribute(at path.Path) string {
	steps := at.Steps()
	for i, step := range steps {
		if _, element := step.(path.PathStepElementKeyValue); element {
			steps = steps[:i]
			break
		}
	}
	return steps.String()
}

// members are the names with a hyphen of all members that attributes stand for.
var members = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, object := range []reflect.Type{
		reflect.TypeFor[v1.OSUpgrade](), reflect.TypeFor[v1.Rollout](), reflect.TypeFor[v1.Calendar](), reflect.TypeFor[v1.Budget](), reflect.TypeFor[v1.Environment](), reflect.TypeFor[v1.Release](), reflect.TypeFor[v1.Start](),
	} {
		collect(object, names)
	}
	return names
})

func collect(t reflect.Type, names map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		collect(t.Elem(), names)
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if strings.Contains(name, "-") {
				names[name] = true
			}
			if name != "" && name != "-" {
				collect(field.Type, names)
			}
		}
	}
}
