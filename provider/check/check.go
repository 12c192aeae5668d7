// Package check turns the rules of the API into validators of attributes, so
// that a plan tells what the server would refuse.
//
// It decides only about known values: an unknown one is checked again at
// apply. It has no rules of its own.
package check

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Text is a validator of one string by a rule whose error says what would be
// right.
func Text(description string, rule func(string) error) validator.String {
	return text{description, rule}
}

type text struct {
	description string
	rule        func(string) error
}

func (t text) Description(context.Context) string { return t.description }

func (t text) MarkdownDescription(context.Context) string { return t.description }

func (t text) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := t.rule(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value of "+req.Path.String(), err.Error())
	}
}

// Name is a validator of a name of a tenant, an application or a site (AV-2).
func Name() validator.String {
	return Text("a name of lower-case letters, digits and hyphens", name)
}

func name(text string) error {
	if v1.ValidName(text) {
		return nil
	}
	return fmt.Errorf("%q is not a name; use 1 to %d lower-case letters, digits and hyphens, with a letter or digit at each end",
		text, v1.MaxNameLength)
}
