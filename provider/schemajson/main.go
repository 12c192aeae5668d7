// Schemajson prints the provider's schemas as terraform providers schema -json prints them,
// for the pages in docs/. A CLI leaves out what it does not have itself, such as actions:
// without it the pages would depend on the CLI of whoever makes them.
//
//	go run ./provider/schemajson
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/osupgrade/terraform-provider-osupgrade/provider"
)

// name is that of the provider in the output; tfplugindocs knows a provider by its short name
// or as one of HashiCorp's.
const name = "osupgrade"

func main() {
	text, err := schemas(context.Background())
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schemajson:", err)
		os.Exit(1)
	}
}

type object = map[string]any

func schemas(ctx context.Context) ([]byte, error) {
	server := providerserver.NewProtocol6(provider.New("docs")())()
	all, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	for _, d := range all.Diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return nil, fmt.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	functions, actions := object{}, object{}
	for name, f := range all.Functions {
		functions[name] = function(f)
	}
	for name, a := range all.ActionSchemas {
		actions[name] = object{"block": block(a.Schema)}
	}
	return json.Marshal(object{"format_version": "1.0", "provider_schemas": object{name: object{
		"provider":                   schema(all.Provider),
		"resource_schemas":           each(all.ResourceSchemas),
		"data_source_schemas":        each(all.DataSourceSchemas),
		"ephemeral_resource_schemas": each(all.EphemeralResourceSchemas),
		"list_resource_schemas":      each(all.ListResourceSchemas),
		"action_schemas":             actions,
		"functions":                  functions,
	}}})
}

func each(schemas map[string]*tfprotov6.Schema) object {
	all := object{}
	for name, s := range schemas {
		all[name] = schema(s)
	}
	return all
}

func schema(s *tfprotov6.Schema) object {
	return object{"version": s.Version, "block": block(s)}
}

// block describes the attributes of a schema. The provider has nested attributes and no
// nested blocks.
func block(s *tfprotov6.Schema) object {
	if len(s.Block.BlockTypes) > 0 {
		panic("schemajson: cannot print nested blocks")
	}
	b := object{"attributes": attributes(s.Block.Attributes)}
	describe(b, s.Block.Description, s.Block.DescriptionKind)
	set(b, "deprecated", s.Block.Deprecated)
	return b
}

func attributes(list []*tfprotov6.SchemaAttribute) object {
	all := object{}
	for _, a := range list {
		one := object{}
		if a.NestedType == nil {
			one["type"] = a.Type
		} else {
			one["nested_type"] = object{
				"attributes":   attributes(a.NestedType.Attributes),
				"nesting_mode": strings.ToLower(a.NestedType.Nesting.String()),
			}
		}
		describe(one, a.Description, a.DescriptionKind)
		for member, value := range map[string]bool{
			"required": a.Required, "optional": a.Optional, "computed": a.Computed,
			"sensitive": a.Sensitive, "deprecated": a.Deprecated, "write_only": a.WriteOnly,
		} {
			set(one, member, value)
		}
		all[a.Name] = one
	}
	return all
}

func function(f *tfprotov6.Function) object {
	described := object{"description": f.Description, "summary": f.Summary, "return_type": f.Return.Type}
	var parameters []object
	for _, p := range f.Parameters {
		parameters = append(parameters, parameter(p))
	}
	if parameters != nil {
		described["parameters"] = parameters
	}
	if f.VariadicParameter != nil {
		described["variadic_parameter"] = parameter(f.VariadicParameter)
	}
	return described
}

func parameter(p *tfprotov6.FunctionParameter) object {
	one := object{"name": p.Name, "description": p.Description, "type": p.Type}
	set(one, "is_nullable", p.AllowNullValue)
	return one
}

func describe(o object, text string, kind tfprotov6.StringKind) {
	o["description_kind"] = "plain"
	if kind == tfprotov6.StringKindMarkdown {
		o["description_kind"] = "markdown"
	}
	if text != "" {
		o["description"] = text
	}
}

func set(o object, member string, value bool) {
	if value {
		o[member] = true
	}
}
