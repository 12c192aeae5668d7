// Package spelling keeps a person's spelling of a value that can be spelt in
// several ways.
//
// It decides when two spellings mean the same. Whether they are right, it does
// not say.
package spelling

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	rules "github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// Duration is a plan modifier that plans the prior length of time when the
// configured one is another spelling of it: 240m instead of 4h is no change.
func Duration() planmodifier.String {
	return kept{"Another spelling of the same length is no change.", func(a, b string) bool {
		lengthA, errA := rules.ParseDuration(a)
		lengthB, errB := rules.ParseDuration(b)
		return errA == nil && errB == nil && lengthA == lengthB
	}}
}

// Time is Duration for a wall-clock time: 18:00:00 instead of 18:00 is no
// change.
func Time() planmodifier.String {
	return kept{"Another spelling of the same time is no change.", func(a, b string) bool {
		return withSeconds(a) == withSeconds(b)
	}}
}

func withSeconds(text string) string {
	if strings.Count(text, ":") == 1 {
		return text + ":00"
	}
	return text
}

// kept is a plan modifier that plans the prior text when the configured one
// means the same.
type kept struct {
	description string
	same        func(a, b string) bool
}

func (k kept) Description(context.Context) string { return k.description }

func (k kept) MarkdownDescription(context.Context) string { return k.description }

func (k kept) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() {
		return
	}
	if k.same(req.StateValue.ValueString(), req.PlanValue.ValueString()) {
		resp.PlanValue = req.StateValue
	}
}
