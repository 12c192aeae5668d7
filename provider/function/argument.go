package function

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/apiobject"
)

// argument reads a value of any type and collects what is wrong with it, each
// at its path. Unlike a value of a fixed type, its objects may leave out what
// is optional.
type argument struct {
	name  string
	at    int64
	found []string
	// places are where the calendars stand.
	places map[string]string
}

func (a *argument) wrong(at, format string, args ...any) {
	a.found = append(a.found, at+": "+fmt.Sprintf(format, args...))
}

// failure is the error that tells of everything that is wrong.
func (a *argument) failure() *function.FuncError {
	if len(a.found) == 0 {
		return nil
	}
	return function.NewArgumentFuncError(a.at, strings.Join(a.found, "\n"))
}

// value is the plain value: a text, a number, a bool, a []any or a
// map[string]any, and nil for null.
func (a *argument) value(ctx context.Context, given types.Dynamic) any {
	if given.IsNull() || given.IsUnderlyingValueNull() {
		return nil
	}
	raw, err := given.UnderlyingValue().ToTerraformValue(ctx)
	if err != nil {
		a.wrong(a.name, "cannot be read: %v", err)
		return nil
	}
	plain, err := apiobject.Plain(raw)
	if err != nil {
		a.wrong(a.name, "cannot be read: %v", err)
	}
	return plain
}

// list is a value that must be a list; null has no elements.
func (a *argument) list(at string, value any) []any {
	list, ok := value.([]any)
	if !ok && value != nil {
		a.wrong(at, "is %s; use a list of objects", kindOf(value))
	}
	return list
}

// object is a value that must be an object of no other attributes than these.
func (a *argument) object(at string, value any, known ...string) object {
	members, ok := value.(map[string]any)
	if !ok {
		a.wrong(at, "is %s; use an object", kindOf(value))
	}
	for _, name := range sorted(members) {
		if slices.Contains(known, name) {
			continue
		}
		advice := "use " + strings.Join(known, ", ")
		if closest, ok := window.Closest(name, known); ok {
			advice = "did you mean " + closest + "?"
		}
		a.wrong(at, "has no attribute %q; %s", name, advice)
	}
	return object{a, at, members}
}

// object reads the attributes of one that stands at a path.
type object struct {
	argument *argument
	at       string
	members  map[string]any
}

// text is the empty one when the attribute is null or not there.
func (o object) text(name string) string {
	text, ok := o.members[name].(string)
	if value := o.members[name]; !ok && value != nil {
		o.argument.wrong(o.at+"."+name, "is %s; use a text", kindOf(value))
	}
	return text
}

func (o object) flag(name string) bool {
	flag, ok := o.members[name].(bool)
	if value := o.members[name]; !ok && value != nil {
		o.argument.wrong(o.at+"."+name, "is %s; use true or false", kindOf(value))
	}
	return flag
}

func (o object) texts(name string) []string {
	value := o.members[name]
	list, ok := value.([]any)
	if !ok && value != nil {
		o.argument.wrong(o.at+"."+name, "is %s; use a list of texts", kindOf(value))
	}
	var texts []string
	for i, each := range list {
		text, ok := each.(string)
		if !ok {
			o.argument.wrong(o.at+"."+name+"["+strconv.Itoa(i)+"]", "is %s; use a text", kindOf(each))
		}
		texts = append(texts, text)
	}
	return texts
}

// days are those of a window in one text, as the API has them.
func (o object) days(name string) string {
	if text, ok := o.members[name].(string); ok {
		return text
	}
	return strings.Join(o.texts(name), ", ")
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a bool"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
