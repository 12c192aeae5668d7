package window

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// Day returns a validator for the English name of a day, in any case.
func Day() validator.String {
	return validators.Rule("the English name of a day, such as Friday", func(text string) error {
		if strings.Contains(text, ",") {
			return fmt.Errorf("%q is more than one day; use one element for each day", text)
		}
		_, err := window.ParseDays(text)
		return err
	})
}

// StartTime returns a validator for a time of day.
func StartTime() validator.String {
	return validators.Rule("a time of day HH:MM from 00:00 to 23:59", func(text string) error {
		_, err := window.ParseTimeOfDay(text)
		return err
	})
}

// Timezone returns a validator for site-local, UTC or an IANA name.
func Timezone() validator.String {
	return validators.Rule("site-local, UTC or the IANA name of a zone", func(text string) error {
		if text == "" {
			return fmt.Errorf(`"" is not a timezone; omit it for site-local, or use UTC or an IANA name such as Europe/Stockholm`)
		}
		_, err := window.ParseZone(text)
		return err
	})
}

// Duration returns a validator for the duration of a window.
func Duration() validator.String {
	return validators.Rule("a duration from 1m to 7d, such as 4h or 1d4h", func(text string) error {
		_, err := window.ParseLength(text)
		return err
	})
}

// DistinctDays returns a validator that refuses a day repeated in another case,
// which a set does not find.
func DistinctDays() validator.Set { return distinctDays{} }

type distinctDays struct{}

func (distinctDays) Description(context.Context) string { return "each day once" }

func (d distinctDays) MarkdownDescription(ctx context.Context) string { return d.Description(ctx) }

func (distinctDays) ValidateSet(ctx context.Context, req validator.SetRequest, resp *validator.SetResponse) {
	if req.ConfigValue.IsNull() || !Known(ctx, req.ConfigValue) {
		return
	}
	seen := map[string]string{}
	for _, day := range texts(req.ConfigValue) {
		lower := strings.ToLower(strings.TrimSpace(day))
		if other, ok := seen[lower]; ok {
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid value of "+diagnostics.Attribute(req.Path),
				fmt.Sprintf("%q and %q are the same day; use one of them", other, day))
		}
		seen[lower] = day
	}
}

// Distinct returns a validator that refuses two windows with the same meaning.
func Distinct() validator.List { return distinct{} }

type distinct struct{}

func (distinct) Description(context.Context) string {
	return "no two windows with the same meaning, in whatever form"
}

func (d distinct) MarkdownDescription(ctx context.Context) string { return d.Description(ctx) }

func (distinct) ValidateList(ctx context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	windows, indexes := knownWindows(ctx, req.ConfigValue)
	if earlier, later, found := Duplicate(windows); found {
		resp.Diagnostics.AddAttributeError(req.Path.AtListIndex(indexes[later]), "Duplicate maintenance window",
			fmt.Sprintf("This window and the window at index %d are the same: %s. Remove one.", indexes[earlier], Key(windows[later])))
	}
}

// knownWindows returns the windows without unknown values, and their indexes.
func knownWindows(ctx context.Context, list types.List) (windows []v1.MaintenanceWindow, indexes []int) {
	for i, element := range list.Elements() {
		object, ok := element.(types.Object)
		if !ok || object.IsNull() || !Known(ctx, object) {
			continue
		}
		var m Model
		if object.As(ctx, &m, asIs).HasError() {
			continue
		}
		windows, indexes = append(windows, m.API()), append(indexes, i)
	}
	return windows, indexes
}

var asIs = basetypes.ObjectAsOptions{}
