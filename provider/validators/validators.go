// Package validators has the validators of single attributes that the framework's own
// library lacks: names, and texts in the formats of the API.
//
// Each validator applies a rule of the agent's packages; this package adds none. A
// validator accepts an unknown value, because Terraform validates again once it is
// known.
package validators

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
)

// Rule returns a validator that applies a rule to a known string. An unknown
// value is validated again at apply. The rule's error says what would be right.
func Rule(description string, rule func(string) error) validator.String {
	return ruleValidator{description, rule}
}

// Name returns a validator for the name of a tenant, an application or a site
// (AV-2).
func Name() validator.String {
	return Rule("a name of lower-case letters, digits and hyphens", checkName)
}

// Hostname returns a validator for the name of a host.
func Hostname() validator.String {
	return Rule("the name of a host", func(text string) error {
		if names.ValidHost(text) {
			return nil
		}
		return fmt.Errorf("%q is not the name of a host", text)
	})
}

// Duration returns a validator for a duration from least to most (AV-19).
func Duration(least, most time.Duration) validator.String {
	description := fmt.Sprintf("a duration from %s to %s", window.FormatDuration(least), window.FormatDuration(most))
	return Rule(description, func(text string) error {
		_, err := window.ParseDurationWithin(text, least, most)
		return err
	})
}

func checkName(text string) error {
	if names.Valid(text) {
		return nil
	}
	return fmt.Errorf("%q is not a name; use 1 to %d lower-case letters, digits and hyphens, with a letter or digit at each end",
		text, names.MaxLength)
}

type ruleValidator struct {
	description string
	rule        func(string) error
}

func (v ruleValidator) Description(context.Context) string { return v.description }

func (v ruleValidator) MarkdownDescription(context.Context) string { return v.description }

func (v ruleValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := v.rule(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value of "+diagnostics.Attribute(req.Path), err.Error())
	}
}
