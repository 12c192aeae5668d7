package tenantobject

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
)

// Mapping maps the attributes of a resource to the members of an object of the API, for
// resources that own the complete object: the rollout and the calendars. It decides which
// attribute is which member, when two objects have the same meaning, and which form of a
// value the state keeps.
type Mapping[T any] struct {
	// TypeName is the type name of the resource.
	TypeName string
	// Describe returns the attributes of the object, without their defaults. Each is a
	// member of the same name, nested ones too, with an underscore for a hyphen.
	Describe func() map[string]schema.Attribute
	// Defaults is set if the state has the default of each member that is not declared. An
	// attribute with a default is unknown in the plans of a mock_provider.
	Defaults Defaults[T]
	// Joined are members, by their paths without indexes, that are one text in the API and a set of
	// texts in Terraform.
	Joined map[string]Joined
	// Renamed maps attributes of another name to their members, at any depth.
	Renamed map[string]string
	// Elsewhere maps members to attributes of the resource that are none of the object, such as
	// its name.
	Elsewhere map[string]string
	// Meaning returns the canonical form of an object, with every default filled in.
	Meaning func(T) T
	// Validate returns every problem of an object.
	Validate func(T) v1.Problems

	once       sync.Once
	attributes map[string]schema.Attribute
	kind       types.ObjectType
}

// Joined is how a text of the API and a set of texts become each other.
type Joined struct {
	Split func(text string) []string
	Join  func(texts []string) string
}

// build makes what the mapping is asked for with each object.
func (k *Mapping[T]) build() {
	k.once.Do(func() {
		k.attributes = k.Describe()
		defaults := k.Defaults.Filled != nil
		if defaults {
			k.attributes = k.defaulted(k.attributes, reflect.TypeFor[T]())
		}
		k.kind = types.ObjectType{AttrTypes: map[string]attr.Type{}}
		for name, a := range k.attributes {
			k.kind.AttrTypes[name] = a.GetType()
		}
		if defaults {
			k.withParts(k.attributes)
		}
	})
}

// Attributes returns the attributes of the object; with Defaults, they have the defaults of
// its members: those in the tags default, false, and nothing for a list.
func (k *Mapping[T]) Attributes() map[string]schema.Attribute {
	k.build()
	return maps.Clone(k.attributes)
}

// Names lists the attributes of the object.
func (k *Mapping[T]) Names() []string { return slices.Sorted(maps.Keys(k.Attributes())) }

// Attribute returns the attribute of a member.
func (k *Mapping[T]) Attribute(member string) string {
	for attribute, renamed := range k.Renamed {
		if member == renamed {
			return attribute
		}
	}
	return strings.ReplaceAll(member, "-", "_")
}

// Member returns the member of an attribute.
func (k *Mapping[T]) Member(attribute string) string {
	if member, ok := k.Renamed[attribute]; ok {
		return member
	}
	return strings.ReplaceAll(attribute, "_", "-")
}

// Kind returns the kind of the objects, of which of has what the mapping does not know. plural
// names them at the beginning of a sentence.
func (k *Mapping[T]) Kind(plural string, of Kind[T]) Kind[T] {
	of.TypeName, of.Locate, of.Parts, of.Validate = k.TypeName, k.Locate, Parts[T]{k.whole()}, k.ValidateConfig
	if of.NotFound != "" {
		return of
	}
	of.NotFound = plural + " are supported by osupgrade-agent only; Avassa's own API has no such object. " +
		"If the endpoint is an osupgrade-agent, check its version and the name of the tenant."
	return of
}

// Locate returns the attribute of a field of the object. What has no attribute of its own, such
// as an element of a set, a key of a map or a place in a text, is located at the one around it.
func (k *Mapping[T]) Locate(field string) (path.Path, bool) {
	if attribute, ok := k.Elsewhere[field]; ok {
		return path.Root(attribute), true
	}
	all := strings.Split(field, ".")
	var segments []string
	for inside := k.Attributes(); len(segments) < len(all); {
		segment := all[len(segments)]
		member, _, _ := strings.Cut(segment, "[")
		name := k.Attribute(member)
		segment = strings.ReplaceAll(name, "_", "-") + strings.TrimPrefix(segment, member)
		attribute, known := inside[name]
		if !known {
			break
		}
		segments = append(segments, segment)
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			inside = a.Attributes
		case schema.ListNestedAttribute:
			inside = a.NestedObject.Attributes
		case schema.ListAttribute:
			inside = nil
		default:
			inside = nil
			segments[len(segments)-1], _, _ = strings.Cut(segment, "[")
		}
	}
	return diagnostics.Field(strings.Join(segments, "."))
}

// objectType is the type of an object with the attributes.
func (k *Mapping[T]) objectType() types.ObjectType {
	k.build()
	return k.kind
}

func (k *Mapping[T]) broken(diags *diag.Diagnostics, err error) {
	diags.AddError("Unable to convert "+k.TypeName, err.Error()+". This is a bug in the provider. Please report it.")
}

// Tree converts an object to maps, lists and scalars, as encoding/json does. It
// panics if the object has no JSON form; every type of the API has one.
func Tree[T any](object T) map[string]any {
	var members map[string]any
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		panic("tenantobject: cannot turn an object into JSON: " + err.Error())
	}
	return members
}

// Declared returns the members that own, a struct of the attributes, declares.
// Unlike a T, the map distinguishes false and [] from undeclared members.
func (k *Mapping[T]) Declared(ctx context.Context, own any, diags *diag.Diagnostics) map[string]any {
	object, problems := types.ObjectValueFrom(ctx, k.objectType().AttrTypes, own)
	diags.Append(problems...)
	raw, err := object.ToTerraformValue(ctx)
	d := conversion.Document{Member: k.Member, Err: err}
	members, _ := d.Read("", raw).(map[string]any)
	if d.Err != nil {
		k.broken(diags, d.Err)
	}
	return members
}

// ToAPI returns the object that own, a struct of the attributes, declares.
func (k *Mapping[T]) ToAPI(ctx context.Context, own any, diags *diag.Diagnostics) T {
	object := k.object(k.Declared(ctx, own, diags), diags)
	if k.Defaults.Trimmed == nil {
		return object
	}
	return k.Defaults.Trimmed(object)
}

func (k *Mapping[T]) object(members map[string]any, diags *diag.Diagnostics) T {
	joined, _ := k.rewritten("", members, func(j Joined, set any) any { return j.join(set) }).(map[string]any)
	object, err := objectOf[T](joined)
	if err != nil {
		k.broken(diags, err)
	}
	return object
}

// rewritten returns a value of a path with each joined member in it rewritten.
func (k *Mapping[T]) rewritten(at string, value any, rewrite func(Joined, any) any) any {
	if joined, ok := k.Joined[at]; ok && value != nil {
		return rewrite(joined, value)
	}
	switch value := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(value))
		for name, member := range value {
			all[name] = k.rewritten(strings.TrimPrefix(at+"."+name, "."), member, rewrite)
		}
		return all
	case []any:
		all := make([]any, len(value))
		for i, element := range value {
			all[i] = k.rewritten(at, element, rewrite)
		}
		return all
	}
	return value
}

// join returns the text of a set. An element that is not known is left out.
func (j Joined) join(set any) any {
	elements, _ := set.([]any)
	var texts []string
	for _, element := range elements {
		if text, ok := element.(string); ok {
			texts = append(texts, text)
		}
	}
	return j.Join(texts)
}

// split returns the set of a text.
func (j Joined) split(text any) any {
	joined, _ := text.(string)
	set := []any{}
	for _, element := range j.Split(joined) {
		set = append(set, element)
	}
	return set
}

// objectOf is the inverse of Tree.
func objectOf[T any](members map[string]any) (object T, err error) {
	text, err := json.Marshal(members)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	return object, err
}

// FromAPI sets own, a pointer to a struct of the attributes, to the server's
// object. A value with the same meaning keeps its form in own. If all is set, every
// attribute gets the server's value.
func (k *Mapping[T]) FromAPI(ctx context.Context, own any, server T, all bool, diags *diag.Diagnostics) {
	split, _ := k.rewritten("", Tree(server), func(j Joined, text any) any { return j.split(text) }).(map[string]any)
	kept := k.Filled(split)
	if !all {
		declared := k.Filled(k.Declared(ctx, own, diags))
		kept = keepMembers(declared, kept, k.meaning(k.object(declared, diags)), k.meaning(server))
	}
	k.Declare(ctx, own, kept, diags)
}

// Declare sets own, a pointer to a struct of the attributes, to members. It is
// the inverse of Declared.
func (k *Mapping[T]) Declare(ctx context.Context, own, members any, diags *diag.Diagnostics) {
	value, err := k.value(ctx, k.objectType(), members)
	if err != nil {
		k.broken(diags, err)
		return
	}
	diags.Append(tfsdk.ValueAs(ctx, value, own)...)
}

// value converts what a field has to a value of a type.
func (k *Mapping[T]) value(ctx context.Context, of attr.Type, plain any) (attr.Value, error) {
	raw, err := conversion.Write(of.TerraformType(ctx), plain, k.Member)
	if err != nil {
		return nil, err
	}
	return of.ValueFromTerraform(ctx, raw)
}

// keep returns the server's value, or own wherever the two have the same
// meaning. ownMeans and serverMeans are their meanings.
func keep(own, server, ownMeans, serverMeans any) any {
	if reflect.DeepEqual(ownMeans, serverMeans) {
		return own
	}
	switch own := own.(type) {
	case map[string]any:
		if server, ok := server.(map[string]any); ok {
			return keepMembers(own, server, ownMeans, serverMeans)
		}
	case []any:
		server, ok := server.([]any)
		ownMeans, okOwn := ownMeans.([]any)
		serverMeans, okServer := serverMeans.([]any)
		if !ok || !okOwn || !okServer || len(own) != len(ownMeans) || len(server) != len(serverMeans) {
			break
		}
		kept := append([]any{}, server...)
		for i := range min(len(own), len(server)) {
			kept[i] = keep(own[i], server[i], ownMeans[i], serverMeans[i])
		}
		return kept
	}
	return server
}

func keepMembers(own, server map[string]any, ownMeans, serverMeans any) map[string]any {
	means := func(all any, name string) any {
		members, ok := all.(map[string]any)
		if !ok {
			return nil
		}
		return members[name]
	}
	kept := map[string]any{}
	for _, side := range []map[string]any{own, server} {
		for name := range side {
			if value := keep(own[name], server[name], means(ownMeans, name), means(serverMeans, name)); value != nil {
				kept[name] = value
			}
		}
	}
	return kept
}

// whole is the one part of an object with one owner. An undeclared attribute has its default;
// if somebody else sets it, that is a change of this resource.
func (k *Mapping[T]) whole() Part[T] {
	return Part[T]{
		Owned: func(T) bool { return true },
		Same:  k.Same,
		Copy:  func(to *T, from T) { *to = from },
		Clear: func(object *T) {
			var none T
			*object = none
		},
		Conflicts: k.conflicts,
	}
}

// Same reports whether two objects have the same meaning.
func (k *Mapping[T]) Same(a, b T) bool { return reflect.DeepEqual(k.meaning(a), k.meaning(b)) }

func (k *Mapping[T]) meaning(object T) map[string]any { return Tree(k.Meaning(object)) }

// conflicts is a three-way comparison, attribute by attribute, of what the
// resource owned, what the server has and what is wanted.
func (k *Mapping[T]) conflicts(prior, server, want T) []Conflict {
	owned, stored, wanted := k.meaning(prior), k.meaning(server), k.meaning(want)
	members := maps.Clone(owned)
	maps.Copy(members, stored)
	maps.Copy(members, wanted)
	var found []Conflict
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c := clash{name, [3]any{owned[name], stored[name], wanted[name]}, [3]any{Tree(prior)[name], Tree(server)[name], Tree(want)[name]}}
		if !c.conflicts() {
			continue
		}
		c = c.narrowed()
		at, ok := k.Locate(c.field)
		if !ok {
			at = path.Root(k.Attribute(name))
		}
		found = append(found, Conflict{At: at, Was: entries(c.declared[0]), Server: entries(c.declared[1]), Want: entries(c.declared[2])})
	}
	return found
}

// clash is a field with its values in what the resource owned, what the server has and
// what is wanted: as they are meant, and as they are declared.
type clash struct {
	field           string
	means, declared [3]any
}

// conflicts reports whether the server's value is neither the prior nor the wanted one.
func (c clash) conflicts() bool {
	return !reflect.DeepEqual(c.means[1], c.means[0]) && !reflect.DeepEqual(c.means[1], c.means[2])
}

// narrowed returns the deepest field that has the whole conflict: an error about one
// attribute of one stage names that, and not all stages.
func (c clash) narrowed() clash {
	var only []clash
	for _, inner := range c.inner() {
		if reflect.DeepEqual(inner.means[1], inner.means[0]) && reflect.DeepEqual(inner.means[1], inner.means[2]) {
			continue
		}
		only = append(only, inner)
	}
	if len(only) != 1 || !only[0].conflicts() {
		return c
	}
	return only[0].narrowed()
}

// inner returns the members or elements of a field; none if the three values differ in
// shape.
func (c clash) inner() []clash {
	var names []string
	segment := func(name string) string { return "." + name }
	switch server := c.means[1].(type) {
	case map[string]any:
		all := map[string]any{}
		for _, means := range c.means {
			members, ok := means.(map[string]any)
			if !ok {
				return nil
			}
			maps.Copy(all, members)
		}
		names = slices.Sorted(maps.Keys(all))
	case []any:
		for _, means := range c.means {
			if list, ok := means.([]any); !ok || len(list) != len(server) {
				return nil
			}
		}
		for i := range server {
			names = append(names, strconv.Itoa(i))
		}
		segment = func(name string) string { return "[" + name + "]" }
	}
	parts := make([]clash, len(names))
	for i, name := range names {
		parts[i].field = c.field + segment(name)
		for side := range c.means {
			parts[i].means[side] = part(c.means[side], name)
			parts[i].declared[side] = part(c.declared[side], name)
		}
	}
	return parts
}

// part returns a member of an object or an element of a list; nil if there is none.
func part(value any, name string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i < len(value) {
			return value[i]
		}
	}
	return nil
}

// entries formats a member for people, a list entry by entry.
func entries(value any) []string {
	switch value := value.(type) {
	case nil:
		return nil
	case string:
		return []string{value}
	case []any:
		var lines []string
		for _, entry := range value {
			lines = append(lines, entries(entry)...)
		}
		return lines
	default:
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			return []string{err.Error()}
		}
		return []string{strings.TrimSpace(text.String())}
	}
}

// ValidateConfig applies the API's rules. A rule may depend on neighbouring
// values, so a problem counts only if all of them are known. Terraform validates
// again once they are.
func (k *Mapping[T]) ValidateConfig(config tftypes.Value, diags *diag.Diagnostics) {
	d := conversion.Document{Member: k.Member}
	members := d.Object(config, k.Names())
	if d.Err != nil {
		k.broken(diags, d.Err)
		return
	}
	var misfits diag.Diagnostics
	declared := k.object(members, &misfits)
	if misfits.HasError() {
		// Such as 1.5 for an integer. The framework reports it.
		return
	}
	for _, problem := range k.Validate(declared) {
		if doubtful(d.Unknown, problem.Field) || zero(members, problem.Field) {
			continue
		}
		at, ok := k.Locate(problem.Field)
		if !ok {
			diags.AddError("Invalid configuration of "+k.TypeName, diagnostics.HCL(problem.Field+": "+problem.Message))
			continue
		}
		diags.AddAttributeError(at, "Invalid value of "+diagnostics.Attribute(at), diagnostics.HCL(problem.Message))
	}
}

// zero reports whether a number is declared as 0, which its attribute refuses: the API takes it
// for one that is absent.
func zero(members any, field string) bool {
	for _, segment := range strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		members = part(members, segment)
	}
	number, ok := members.(float64)
	return ok && number == 0
}

// doubtful reports whether a value beside, below or above a field is among the unknowns.
func doubtful(unknowns []string, field string) bool {
	around := field
	if end := strings.LastIndexAny(field, ".["); end > 0 {
		around = field[:end]
	}
	for _, unknown := range unknowns {
		if within(unknown, around) || within(field, unknown) {
			return true
		}
	}
	return false
}

// within reports whether a field is equal to another field or below it.
func within(field, other string) bool {
	rest, below := strings.CutPrefix(field, other)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
