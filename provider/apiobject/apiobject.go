// Package whole is what resources have in common that own an object of the API
// as a whole, each attribute being a member of it: the rollout, a calendar.
//
// It decides how an attribute stands for a member, when two objects are the
// same though spelt differently, and which spelling is kept. How an object is
// written, package singleton decides.
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

// Kind is one kind of object, whose content is a T.
type Kind[T any] struct {
	// TypeName is the name of the resource.
	TypeName string
	// Attributes are those that make up the object: each is a member of it with
	// an underscore for a hyphen, down to the last one.
	Attributes func() map[string]schema.Attribute
	// Renamed are the attributes of another name, with their members.
	Renamed map[string]string
	// Canonical is an object in the one way to spell it, and Meaning is that
	// with every default written out.
	Canonical, Meaning func(T) T
	// Validate finds everything that is wrong with an object.
	Validate func(T) v1.Problems
	// Locate finds the attribute of a field of the object.
	Locate diagnostic.Locate
}

// Names lists the attributes that make up the object.
func (k *Kind[T]) Names() []string { return slices.Sorted(maps.Keys(k.Attributes())) }

// Attribute is the attribute of a member of the object.
func (k *Kind[T]) Attribute(member string) string {
	for attribute, renamed := range k.Renamed {
		if member == renamed {
			return attribute
		}
	}
	return strings.ReplaceAll(member, "-", "_")
}

// Member is the member of the object for an attribute.
func (k *Kind[T]) Member(attribute string) string {
	if member, ok := k.Renamed[attribute]; ok {
		return member
	}
	return strings.ReplaceAll(attribute, "_", "-")
}

// objectType is the type of the attributes together.
func (k *Kind[T]) objectType() types.ObjectType {
	kinds := map[string]attr.Type{}
	for name, a := range k.Attributes() {
		kinds[name] = a.GetType()
	}
	return types.ObjectType{AttrTypes: kinds}
}

func (k *Kind[T]) broken(diags *diag.Diagnostics, err error) {
	diags.AddError("Unable to convert "+k.TypeName, err.Error()+". This is always an error in the provider. Please report it.")
}

// Tree is an object as JSON has it. It must be one of texts, numbers and lists
// of them, as the API's types are.
func Tree[T any](object T) map[string]any {
	var members map[string]any
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		panic("whole: cannot turn an object into JSON: " + err.Error())
	}
	return members
}

// Declared is what own, a struct of the attributes, declares, as JSON has it:
// unlike a T it still tells false and [] from what is not declared.
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

// ToAPI is what own, a struct of the attributes, declares.
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

// FromAPI puts what the server has into own, a pointer to a struct of the
// attributes. What means the same as before stays as it is spelt there, and
// what the server has by default stays undeclared. With all, everything is the
// server's.
func (k *Kind[T]) FromAPI(ctx context.Context, own any, server T, all bool, diags *diag.Diagnostics) {
	var kept any = Tree(server)
	if !all {
		declared := k.Declared(ctx, own, diags)
		kept = keep(declared, kept, k.meaning(k.object(declared, diags)), k.meaning(server))
	}
	k.Declare(ctx, own, kept, diags)
}

// Declare is the opposite of Declared; own is a pointer.
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

// keep is what the server has, in the spelling of own wherever the two mean the
// same. ownMeans and serverMeans are what they mean.
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

// Rules are those of an object that is owned as a whole: an attribute that is
// not declared has its default, and what somebody else sets there is a change
// of this resource.
func (k *Kind[T]) Rules() tenantresource.Rules[T] {
	var none T
	return tenantresource.Rules[T]{
		Merged:     func(want, _ T) T { return want },
		Settled:    k.Same,
		Unchanged:  k.unchanged,
		Conflicts:  k.conflicts,
		OwnsAll:    func(T) bool { return true },
		Restricted: func(content, _ T) T { return content },
		Emptied:    func(T) T { return none },
		// An object that declares nothing is one as long as the resource is
		// there; only a deletion asks.
		Empty: func(content T) bool { return k.unchanged(content, none) },
	}
}

// Same reports whether two objects mean the same.
func (k *Kind[T]) Same(a, b T) bool { return reflect.DeepEqual(k.meaning(a), k.meaning(b)) }

// unchanged reports whether two objects declare the same, whatever the
// spelling. One that writes a default out is not the same as one that leaves it
// to the server.
func (k *Kind[T]) unchanged(a, b T) bool {
	return reflect.DeepEqual(Tree(k.Canonical(a)), Tree(k.Canonical(b)))
}

func (k *Kind[T]) meaning(object T) map[string]any { return Tree(k.Meaning(object)) }

// conflicts compares three ways, attribute by attribute (terraform.md 4.5 rule
// 5): what the resource knew, what the server has, and what is wanted.
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

// entries shows a member for people, a list entry by entry.
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
