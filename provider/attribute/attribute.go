// Package attribute has what resources and data sources need for single
// attributes: conversion from plain values, validators, plan modifiers and the
// attribute timeouts.
//
// It decides that an absent value is null and which texts have the same meaning.
// The rules for values are those of package v1; it adds none.
package attribute

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// Text converts a text; an empty text is null.
func Text(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// Time converts an instant to RFC 3339 in UTC; no instant is null.
func Time(at *time.Time) types.String {
	if at == nil || at.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(at.UTC().Format(time.RFC3339Nano))
}

// Timeouts returns the attribute timeouts. Each timeout in opts must have a
// description.
func Timeouts(ctx context.Context, opts timeouts.Opts) schema.Attribute {
	attribute := timeouts.Attributes(ctx, opts)
	if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long each operation may take, retries included. " +
			"A timeout is a number with a unit, such as `30s`, `10m` or `2h45m`."
		return nested
	}
	return attribute
}

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
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value of "+req.Path.String(), err.Error())
	}
}

// KeepDuration returns a plan modifier that plans the prior text of a duration
// if the configured text has the same meaning: 240m instead of 4h is no change.
func KeepDuration() planmodifier.String {
	return keepText{"Another form of the same duration is no change.", func(a, b string) bool {
		durationA, errA := window.ParseDuration(a)
		durationB, errB := window.ParseDuration(b)
		return errA == nil && errB == nil && durationA == durationB
	}}
}

// KeepTimeOfDay is KeepDuration for the time of day at which a window starts.
func KeepTimeOfDay() planmodifier.String {
	return keepText{"Another form of the same time is no change.", func(a, b string) bool {
		timeA, errA := window.ParseTimeOfDay(a)
		timeB, errB := window.ParseTimeOfDay(b)
		return errA == nil && errB == nil && timeA == timeB
	}}
}

// KeepZone is KeepDuration for the name of a time zone.
func KeepZone() planmodifier.String {
	return keepText{"Another form of the same time zone is no change.", func(a, b string) bool {
		zoneA, errA := window.ParseZone(a)
		zoneB, errB := window.ParseZone(b)
		return errA == nil && errB == nil && zoneA.String() == zoneB.String()
	}}
}

// KeepTime is KeepDuration for a wall-clock time: 18:00:00 instead of 18:00 is
// no change.
func KeepTime() planmodifier.String {
	return keepText{"Another form of the same time is no change.", func(a, b string) bool {
		return withSeconds(a) == withSeconds(b)
	}}
}

func withSeconds(text string) string {
	if strings.Count(text, ":") == 1 {
		return text + ":00"
	}
	return text
}

// keepText is a plan modifier that plans the prior text if the configured text
// has the same meaning. It looks at one attribute alone. A modifier of a whole list or
// object must not do the same: its answer would depend on values beside the text that
// may be unknown at plan and known at apply, and Terraform refuses an apply that plans
// a known value anew ("Provider produced inconsistent final plan").
type keepText struct {
	description string
	same        func(a, b string) bool
}

func (k keepText) Description(context.Context) string { return k.description }

func (k keepText) MarkdownDescription(context.Context) string { return k.description }

func (k keepText) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() {
		return
	}
	if k.same(req.StateValue.ValueString(), req.PlanValue.ValueString()) {
		resp.PlanValue = req.StateValue
	}
}
