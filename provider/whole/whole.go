// Package whole is what resources have in common that own an object of the API
// as a whole, each attribute being a member of it: the rollout, a calendar.
//
// It decides how an attribute stands for a member, when two objects are the
// same though spelt differently, and which spelling is kept. How an object is
// written, package singleton decides.
package whole

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
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
