package whole

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

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
