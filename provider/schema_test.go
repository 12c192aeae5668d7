package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/action"
	actionschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	datasourceschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	frameworkprovider "github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/osupgrade/terraform-provider-osupgrade/provider"
)

// attribute is the common interface of the attributes of all kinds of schemas.
type attribute interface {
	GetDescription() string
	GetMarkdownDescription() string
	IsRequired() bool
	IsOptional() bool
	IsComputed() bool
}

func TestSchema_provider(t *testing.T) {
	t.Parallel()
	var resp frameworkprovider.SchemaResponse
	provider.New("test")().Schema(t.Context(), frameworkprovider.SchemaRequest{}, &resp)
	if diags := resp.Schema.ValidateImplementation(t.Context()); diags.HasError() {
		t.Fatal(diags)
	}
	describedText(t, "provider", resp.Schema.MarkdownDescription)
	for name, a := range resp.Schema.Attributes {
		described(t, name, a)
	}
}

func TestSchema_resources(t *testing.T) {
	t.Parallel()
	for _, create := range provider.New("test")().Resources(t.Context()) {
		r := create()
		var name resource.MetadataResponse
		r.Metadata(t.Context(), resource.MetadataRequest{}, &name)
		var resp resource.SchemaResponse
		r.Schema(t.Context(), resource.SchemaRequest{}, &resp)
		if diags := resp.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Fatal(diags)
		}
		describedText(t, name.TypeName, resp.Schema.MarkdownDescription)
		for attr, a := range resp.Schema.Attributes {
			described(t, name.TypeName+"."+attr, a)
			steady(t, name.TypeName+"."+attr, a)
			typed(t, name.TypeName+"."+attr, a)
		}
	}
}

func TestSchema_dataSources(t *testing.T) {
	t.Parallel()
	for _, create := range provider.New("test")().DataSources(t.Context()) {
		d := create()
		var name datasource.MetadataResponse
		d.Metadata(t.Context(), datasource.MetadataRequest{}, &name)
		var resp datasource.SchemaResponse
		d.Schema(t.Context(), datasource.SchemaRequest{}, &resp)
		if diags := resp.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Fatal(diags)
		}
		describedText(t, name.TypeName, resp.Schema.MarkdownDescription)
		for attr, a := range resp.Schema.Attributes {
			described(t, name.TypeName+"."+attr, a)
		}
	}
}

func TestSchema_actions(t *testing.T) {
	t.Parallel()
	p, ok := provider.New("test")().(frameworkprovider.ProviderWithActions)
	if !ok {
		t.Fatal("the provider has no actions")
	}
	for _, create := range p.Actions(t.Context()) {
		a := create()
		var name action.MetadataResponse
		a.Metadata(t.Context(), action.MetadataRequest{}, &name)
		var resp action.SchemaResponse
		a.Schema(t.Context(), action.SchemaRequest{}, &resp)
		if diags := resp.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Fatal(diags)
		}
		describedText(t, name.TypeName, resp.Schema.MarkdownDescription)
		for attr, a := range resp.Schema.Attributes {
			described(t, name.TypeName+"."+attr, a)
		}
	}
}

func TestSchema_ephemeralResources(t *testing.T) {
	t.Parallel()
	p, ok := provider.New("test")().(frameworkprovider.ProviderWithEphemeralResources)
	if !ok {
		t.Fatal("the provider has no ephemeral resources")
	}
	for _, create := range p.EphemeralResources(t.Context()) {
		e := create()
		var name ephemeral.MetadataResponse
		e.Metadata(t.Context(), ephemeral.MetadataRequest{}, &name)
		var resp ephemeral.SchemaResponse
		e.Schema(t.Context(), ephemeral.SchemaRequest{}, &resp)
		if diags := resp.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Fatal(diags)
		}
		describedText(t, name.TypeName, resp.Schema.MarkdownDescription)
		for attr, a := range resp.Schema.Attributes {
			described(t, name.TypeName+"."+attr, a)
		}
	}
}

func TestSchema_lists(t *testing.T) {
	t.Parallel()
	p, ok := provider.New("test")().(frameworkprovider.ProviderWithListResources)
	if !ok {
		t.Fatal("the provider has no lists")
	}
	for _, create := range p.ListResources(t.Context()) {
		l := create()
		var name resource.MetadataResponse
		l.Metadata(t.Context(), resource.MetadataRequest{}, &name)
		var resp list.ListResourceSchemaResponse
		l.ListResourceConfigSchema(t.Context(), list.ListResourceSchemaRequest{}, &resp)
		if diags := resp.Schema.ValidateImplementation(t.Context()); diags.HasError() {
			t.Fatal(diags)
		}
		describedText(t, name.TypeName, resp.Schema.MarkdownDescription)
		for attr, a := range resp.Schema.Attributes {
			described(t, name.TypeName+"."+attr, a)
		}
	}
}

func TestSchema_functions(t *testing.T) {
	t.Parallel()
	p, ok := provider.New("test")().(frameworkprovider.ProviderWithFunctions)
	if !ok {
		t.Fatal("the provider has no functions")
	}
	for _, create := range p.Functions(t.Context()) {
		f := create()
		var name function.MetadataResponse
		f.Metadata(t.Context(), function.MetadataRequest{}, &name)
		var resp function.DefinitionResponse
		f.Definition(t.Context(), function.DefinitionRequest{}, &resp)
		describedText(t, name.Name, resp.Definition.MarkdownDescription)
		parameters := resp.Definition.Parameters
		if resp.Definition.VariadicParameter != nil {
			parameters = append(parameters, resp.Definition.VariadicParameter)
		}
		for _, parameter := range parameters {
			describedText(t, name.Name+"."+parameter.GetName(), parameter.GetMarkdownDescription())
		}
	}
}

// described checks that an attribute and the attributes below it are described in
// complete sentences.
func described(t *testing.T, name string, a attribute) {
	t.Helper()
	text := a.GetMarkdownDescription()
	if text == "" {
		text = a.GetDescription()
	}
	describedText(t, name, text)
	for below, nested := range children(a) {
		described(t, name+"."+below, nested)
	}
}

func describedText(t *testing.T, name, text string) {
	t.Helper()
	if !strings.HasSuffix(text, ".") {
		t.Errorf("%s is not described in a sentence: %q", name, text)
	}
	// An editor shows the text without the pages around it.
	if strings.Contains(text, "](") {
		t.Errorf("%s is described with a link that leads nowhere in an editor: %q", name, text)
	}
}

// steady checks that a computed attribute of a resource has a plan modifier. Without
// one every change makes it "known after apply".
func steady(t *testing.T, name string, a attribute) {
	t.Helper()
	if !a.IsComputed() {
		return
	}
	steady := false
	switch a := a.(type) {
	case resourceschema.StringAttribute:
		steady = len(a.PlanModifiers) > 0 || a.Default != nil
	case resourceschema.Int64Attribute:
		steady = len(a.PlanModifiers) > 0 || a.Default != nil
	case resourceschema.BoolAttribute:
		steady = a.Default != nil
	case resourceschema.ListNestedAttribute:
		steady = len(a.PlanModifiers) > 0 || a.Default != nil
	case resourceschema.SingleNestedAttribute:
		steady = len(a.PlanModifiers) > 0 || a.Default != nil
	}
	if !steady {
		t.Errorf("%s is computed and has neither a default nor a plan modifier that this test knows", name)
	}
}

// typed checks that an attribute and those below it have their type: a plan of many resources would spend
// a third of its time on putting it together.
func typed(t *testing.T, name string, a attribute) {
	t.Helper()
	has := true
	switch a := a.(type) {
	case resourceschema.SingleNestedAttribute:
		has = a.CustomType != nil
	case resourceschema.ListNestedAttribute:
		has = a.CustomType != nil && a.NestedObject.CustomType != nil
	}
	if !has {
		t.Errorf("%s has no type of its own: use tenantobject.Typed", name)
	}
	for below, a := range children(a) {
		typed(t, name+"."+below, a)
	}
}

// children returns the attributes below an attribute.
func children(a attribute) map[string]attribute {
	below := map[string]attribute{}
	switch a := a.(type) {
	case resourceschema.ListNestedAttribute:
		fill(below, a.NestedObject.Attributes)
	case resourceschema.SingleNestedAttribute:
		fill(below, a.Attributes)
	case actionschema.SingleNestedAttribute:
		fill(below, a.Attributes)
	case datasourceschema.ListNestedAttribute:
		fill(below, a.NestedObject.Attributes)
	case datasourceschema.SingleNestedAttribute:
		fill(below, a.Attributes)
	case providerschema.SingleNestedAttribute:
		fill(below, a.Attributes)
	}
	return below
}

func fill[A attribute](below map[string]attribute, attributes map[string]A) {
	for name, a := range attributes {
		below[name] = a
	}
}
