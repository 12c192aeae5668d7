package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/provider"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// protocol is a provider that is configured for a server, without a CLI.
type protocol struct {
	tfprotov6.ProviderServer
	schemas    *tfprotov6.GetProviderSchemaResponse
	identities *tfprotov6.GetResourceIdentitySchemasResponse
}

func configured(t testing.TB, server acctest.Server) protocol {
	t.Helper()
	values := map[string]tftypes.Value{"endpoint": text(server.Endpoint), "token": text(server.Token)}
	if server.Tenant != "" {
		values["tenant"] = text(server.Tenant)
	}
	return configuredBy(t, values)
}

// configuredBy is configured with these attributes of the provider.
func configuredBy(t testing.TB, values map[string]tftypes.Value) protocol {
	t.Helper()
	p := protocol{ProviderServer: provider.NewServer("test")()}
	var err error
	if p.schemas, err = p.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	if p.identities, err = p.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{}); err != nil {
		t.Fatal(err)
	}
	config := object(t, p.schemas.Provider.ValueType(), values)
	resp, err := p.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0", Config: config})
	healthy(t, resp.Diagnostics, err)
	return p
}

// object returns an object with these attributes; the others are null.
func object(t testing.TB, of tftypes.Type, attributes map[string]tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	kind, ok := of.(tftypes.Object)
	if !ok {
		t.Fatalf("%s is no object", of)
	}
	values := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		if values[name] = tftypes.NewValue(attribute, nil); attributes[name].Type() != nil {
			values[name] = attributes[name]
		}
	}
	value, err := tfprotov6.NewDynamicValue(of, tftypes.NewValue(of, values))
	if err != nil {
		t.Fatal(err)
	}
	return &value
}

func healthy(t testing.TB, found []*tfprotov6.Diagnostic, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}

func text(value string) tftypes.Value { return tftypes.NewValue(tftypes.String, value) }

func boolean(value bool) tftypes.Value { return tftypes.NewValue(tftypes.Bool, value) }
