// Package planmodifiers plans no change where the configured text means the same as
// the prior one: 240m instead of 4h is no change.
//
// It decides which texts have the same meaning, by the rules of the agent. Each
// modifier looks at one attribute alone.
package planmodifiers

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// KeepDuration returns a plan modifier that plans the prior text of a duration
// if the configured text has the same meaning: 240m instead of 4h is no change.
func KeepDuration() planmodifier.String {
	return keepText{"Another form of the same duration is no change.", same(window.ParseDuration)}
}

// KeepTimeOfDay is KeepDuration for the time of day at which a window starts.
func KeepTimeOfDay() planmodifier.String {
	return keepText{"Another form of the same time is no change.", same(window.ParseTimeOfDay)}
}

// KeepZone is KeepDuration for the name of a time zone.
func KeepZone() planmodifier.String {
	return keepText{"Another form of the same time zone is no change.", same(func(text string) (string, error) {
		zone, err := window.ParseZone(text)
		return zone.String(), err
	})}
}

// same returns what reports whether two texts stand for one value.
func same[T comparable](parse func(text string) (T, error)) func(a, b string) bool {
	return func(a, b string) bool {
		valueA, errA := parse(a)
		valueB, errB := parse(b)
		return errA == nil && errB == nil && valueA == valueB
	}
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
