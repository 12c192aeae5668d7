// Package apiobject maps the attributes of a resource to the members of an
// object of the API, for resources that own the complete object: the rollout and
// the calendars.
//
// It decides which attribute is which member, when two objects have the same
// meaning, and which form of a value the state keeps. It never talks to a
// server: package tenantresource does.
package apiobject

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// Kind is a kind of object with content T.
type Kind[T any] struct {
	// TypeName is the type name of the resource.
	TypeName string
	// Attributes are the attributes of the object. Each is a member of the same
	// name, nested ones too, with an underscore for a hyphen.
	Attributes func() map[string]schema.Attribute
	// Renamed maps attributes of another name to their members.
	Renamed map[string]string
	// Canonical returns the canonical form of an object. Meaning returns the
	// canonical form with every default filled in.
	Canonical, Meaning func(T) T
	// Validate returns every problem of an object.
	Validate func(T) v1.Problems
	// Locate returns the attribute of a field of the object.
	Locate diagnostic.Locate
}

// Names lists the attributes of the object.
func (k *Kind[T]) Names() []string { return slices.Sorted(maps.Keys(k.Attributes())) }

// Attribute returns the attribute of a member.
func (k *Kind[T]) Attribute(member string) string {
	for attribute, renamed := range k.Renamed {
		if member == renamed {
			return attribute
		}
	}
	return strings.ReplaceAll(member, "-", "_")
}

// Member returns the member of an attribute.
func (k *Kind[T]) Member(attribute string) string {
	if member, ok := k.Renamed[attribute]; ok {
		return member
	}
	return strings.ReplaceAll(attribute, "_", "-")
}

// objectType is the type of an object with the attributes.
func (k *Kind[T]) objectType() types.ObjectType {
	kinds := map[string]attr.Type{}
	for name, a := range k.Attributes() {
		kinds[name] = a.GetType()
	}
	return types.ObjectType{AttrTypes: kinds}
}

func (k *Kind[T]) broken(diags *diag.Diagnostics, err error) {
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
		panic("apiobject: cannot turn an object into JSON: " + err.Error())
	}
	return members
}

// Declared returns the members that own, a struct of the attributes, declares.
// Unlike a T, the map distinguishes false and [] from undeclared members.
func (k *Kind[T]) Declared(ctx context.Context, own any, diags *diag.Diagnostics) map[string]any {
	object, problems := types.ObjectValueFrom(ctx, k.objectType().AttrTypes, own)
	diags.Append(problems...)
	raw, err := object.ToTerraformValue(ctx)
	d := document{member: k.Member, err: err}
	members, _ := d.read("", raw).(map[string]any)
	if d.err != nil {
		k.broken(diags, d.err)
	}
	return members
}

// ToAPI returns the object that own, a struct of the attributes, declares.
func (k *Kind[T]) ToAPI(ctx context.Context, own any, diags *diag.Diagnostics) T {
	return k.object(k.Declared(ctx, own, diags), diags)
}

func (k *Kind[T]) object(members map[string]any, diags *diag.Diagnostics) T {
	var object T
	text, err := json.Marshal(members)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		k.broken(diags, err)
	}
	return object
}

// FromAPI sets own, a pointer to a struct of the attributes, to the server's
// object. A value with the same meaning keeps its form in own, and a default
// stays undeclared. If all is set, every attribute gets the server's value.
func (k *Kind[T]) FromAPI(ctx context.Context, own any, server T, all bool, diags *diag.Diagnostics) {
	var kept any = Tree(server)
	if !all {
		declared := k.Declared(ctx, own, diags)
		kept = keep(declared, kept, k.meaning(k.object(declared, diags)), k.meaning(server))
	}
	k.Declare(ctx, own, kept, diags)
}

// Declare sets own, a pointer to a struct of the attributes, to members. It is
// the inverse of Declared.
func (k *Kind[T]) Declare(ctx context.Context, own, members any, diags *diag.Diagnostics) {
	raw, err := write(k.objectType().TerraformType(ctx), members, k.Member)
	if err != nil {
		k.broken(diags, err)
		return
	}
	value, err := k.objectType().ValueFromTerraform(ctx, raw)
	if err != nil {
		k.broken(diags, err)
		return
	}
	diags.Append(tfsdk.ValueAs(ctx, value, own)...)
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

func keepMembers(own, server map[string]any, ownMeans, serverMeans any) any {
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

// Rules are the rules of an object with one owner. An undeclared attribute has
// its default; if somebody else sets it, that is a change of this resource.
func (k *Kind[T]) Rules() tenantresource.Rules[T] {
	var none T
	return tenantresource.Rules[T]{
		Merged:     func(want, _ T) T { return want },
		InSync:     k.Same,
		Unchanged:  k.unchanged,
		Conflicts:  k.conflicts,
		OwnsAll:    func(T) bool { return true },
		Restricted: func(content, _ T) T { return content },
		Emptied:    func(T) T { return none },
		// Only a deletion calls Empty. While the resource exists, an object that
		// declares nothing is kept.
		Empty: func(content T) bool { return k.unchanged(content, none) },
	}
}

// Same reports whether two objects have the same meaning.
func (k *Kind[T]) Same(a, b T) bool { return reflect.DeepEqual(k.meaning(a), k.meaning(b)) }

// unchanged reports whether two objects have the same canonical form. A declared
// default differs from an undeclared one.
func (k *Kind[T]) unchanged(a, b T) bool {
	return reflect.DeepEqual(Tree(k.Canonical(a)), Tree(k.Canonical(b)))
}

func (k *Kind[T]) meaning(object T) map[string]any { return Tree(k.Meaning(object)) }

// conflicts is a three-way comparison, attribute by attribute, of what the
// resource owned, what the server has and what is wanted (terraform.md 4.5 rule
// 5).
func (k *Kind[T]) conflicts(prior, server, want T) []tenantresource.Conflict {
	was, is, shall := k.meaning(prior), k.meaning(server), k.meaning(want)
	members := maps.Clone(was)
	maps.Copy(members, is)
	maps.Copy(members, shall)
	var found []tenantresource.Conflict
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !reflect.DeepEqual(is[name], was[name]) && !reflect.DeepEqual(is[name], shall[name]) {
			found = append(found, tenantresource.Conflict{
				Attribute: k.Attribute(name),
				Was:       entries(Tree(prior)[name]), Server: entries(Tree(server)[name]), Want: entries(Tree(want)[name]),
			})
		}
	}
	return found
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
