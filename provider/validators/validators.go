// Package validators has the validators of single attributes that the framework's own
// library lacks: names, and texts in the formats of the API.
//
// Each validator applies a rule of the agent's packages; this package adds none. A
// validator accepts an unknown value, because Terraform validates again once it is
// known.
package validators

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
)

// Rule returns a validator that applies a rule to a known string. An unknown
// value is validated again at apply. The rule's error says what would be right.
func Rule(description string, rule func(string) error) validator.String {
	return ruleValidator{description, rule}
}

// Text returns a validator that refuses the empty text, which the API cannot tell from none.
func Text() validator.String {
	return Rule("a text that is not empty", func(text string) error {
		if text != "" {
			return nil
		}
		return errors.New(`"" is no value; leave the attribute out, or set it to null, to have none or the default`)
	})
}

// Choice returns a validator that refuses the empty text with the values that are right. The
// API's rules refuse any other text.
func Choice(of ...string) validator.String {
	return Rule("one of "+strings.Join(of, ", "), func(text string) error {
		if text != "" {
			return nil
		}
		return errors.New(document.NoneOf("", "", of...).Message)
	})
}

// OneOf returns a validator that refuses any text but some.
func OneOf(of ...string) validator.String {
	return Rule("one of "+strings.Join(of, ", "), func(text string) error {
		if slices.Contains(of, text) {
			return nil
		}
		return errors.New(document.NoneOf("", text, of...).Message)
	})
}

// Number returns a validator for a whole number from least to most; 0 is without a limit.
func Number(least, most int64) validator.Int64 { return number{least, most} }

type number struct{ least, most int64 }

func (n number) Description(context.Context) string {
	if n.most == 0 {
		return fmt.Sprintf("a whole number from %d", n.least)
	}
	return fmt.Sprintf("a whole number from %d to %d", n.least, n.most)
}

func (n number) MarkdownDescription(ctx context.Context) string { return n.Description(ctx) }

func (n number) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	value := req.ConfigValue.ValueInt64()
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || value >= n.least && (n.most == 0 || value <= n.most) {
		return
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Invalid value of "+diagnostics.Attribute(req.Path),
		fmt.Sprintf("%d is out of range; use %s, or leave the attribute out for its default", value, n.Description(ctx)))
}

// Name returns a validator for the name of a tenant, an application or a site.
func Name() validator.String {
	return Rule("a name of lower-case letters, digits and hyphens", CheckName)
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

// LoginName returns a validator for the name of a user or an approle.
func LoginName() validator.String {
	return Rule("a name of lower-case letters, digits, hyphens, dots, underscores and @", func(text string) error {
		if names.ValidLogin(text) {
			return nil
		}
		return fmt.Errorf("%q is not a name; %s", text, names.LoginForm)
	})
}

// Duration returns a validator for a duration from least to most.
func Duration(least, most time.Duration) validator.String {
	description := fmt.Sprintf("a duration from %s to %s", window.FormatDuration(least), window.FormatDuration(most))
	return Rule(description, func(text string) error {
		_, err := window.ParseDurationWithin(text, least, most)
		return err
	})
}

// CheckName returns what is wrong with the name of a tenant, an application or a site.
func CheckName(text string) error {
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
