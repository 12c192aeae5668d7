package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/planmodifiers"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wayback"
)

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Starts a run, which is one pass over the hosts of a tenant, and waits for its end, unless `wait = false`. A changed value in `triggers`, `environment`, `until`, `release`, `retry_of`, `rollback_of`, `host_names`, `labels`, `roles` or `tenant` starts another run; a change of any other attribute does not.\n\n" +
			"If the result of the run is not in `accept`, apply fails with the reason of the run, the errors of its hosts and what to do. The resource is then tainted, so that the next apply starts another run. " +
			"If another run of the environment is in progress, the creation first waits for its end. If that run was started for the same `triggers`, `environment`, `until`, `release`, `retry_of` and `rollback_of` by an apply that was interrupted or timed out, the creation takes it over instead of starting another, " +
			"unless another resource of this configuration has it. Two configurations that start runs of one tenant need different `triggers`.\n\n" +
			"Deleting the resource changes nothing on the server: it neither ends the run nor rolls it back. To roll back a run, start another one with `rollback_of`.",
		Attributes: requestAttributes(),
	}
	for name, attribute := range resultAttributes() {
		resp.Schema.Attributes[name] = attribute
	}
}

// What the attributes of a request mean, for the resource and for the actions.
const (
	aboutOverride = "Whether the run starts even if no maintenance window is open; `false` by default. Needs a `reason`."
	aboutReason   = "The reason for the run, kept in its history; at most 1,000 characters."
	aboutDuration = "How long the run may last at most, from `1m` to `7d`; only with `override_window`. By default the run lasts at most until the open maintenance window closes, or `4h` if none is open."
	aboutRetryOf  = "The id of a run that has ended. The new run contains only the hosts that it did not upgrade, and the steps that failed while it went on without them. A rollback is not retried: start it again, and it goes on. " +
		"Supported by `osupgrade-agent` only."
	aboutEnvironment = "The environment whose hosts are upgraded, such as `osupgrade_environment.basel.name`; `default` has the hosts that are in no other. Needed if several environments have hosts. " +
		"Runs of several environments go side by side. Supported by `osupgrade-agent` only."
	aboutOverrideAfter = "Why the run starts although environments that its own comes after have not completed a run. By default it waits for them: the start is refused. Supported by `osupgrade-agent` only."
	aboutHostNames     = "Only hosts of these names. With `labels` and `roles`, a host must fit all of them. The site chooses the hosts when the run starts. If no host fits, it refuses the start. " +
		"Supported by `osupgrade-agent` only."
	aboutLabels = "Only hosts with all of these labels, such as `{ shop = \"basel\" }`. Commas join alternatives: `basel,bern` is either. Supported by `osupgrade-agent` only."
	aboutRoles  = "Only hosts with one of these roles. Supported by `osupgrade-agent` only."
	aboutUntil  = "The stage of the rollout after which the run ends, as `completed`; by default the last one. The next run goes on there: hosts that are upgraded are left out, steps that are done stay done. " +
		"Not with `host_names`, `labels`, `roles` or `retry_of`. Supported by `osupgrade-agent` only."
	aboutRelease = "The name of the release that the run installs, such as `osupgrade_release.spring.name`; by default that of the environment, and for a retry that of its run, which may have none. " +
		"Supported by `osupgrade-agent` only."
	aboutAccept = "The results with which apply succeeds: `completed`, `partial`, `failed`, `aborted` or `timed-out`. Defaults to `[\"completed\"]`: " +
		"a run that left out a host fails the apply."
)

// requestAttributes are the attributes of the request.
func requestAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"tenant": tenantobject.TenantAttribute(),
		"triggers": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Any values. A change of one of them starts another run.",
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
		"override_window": tenantobject.BoolAttribute(aboutOverride),
		"reason":          tenantobject.TextAttribute(aboutReason),
		"duration": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: aboutDuration,
			PlanModifiers:       []planmodifier.String{planmodifiers.KeepDuration()},
		},
		"retry_of": schema.Int64Attribute{
			Optional:            true,
			MarkdownDescription: aboutRetryOf + " A change starts another run.",
			Validators:          []validator.Int64{validators.Number(1, 0)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"rollback_of": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "The id of a run that has ended. The new run rolls back what it has done, with the runs to the same release before it: each of their hosts goes back to what it had, in the reverse order of stages. " +
				"It needs a `reason` and waits for no window. Not with `retry_of`, `release`, `until`, `override_window`, `override_after`, `host_names`, `labels` or `roles`. Supported by `osupgrade-agent` only." +
				" A change starts another run.",
			Validators:    []validator.Int64{validators.Number(1, 0)},
			PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"environment": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: aboutEnvironment + " A change starts another run.",
			Validators:          []validator.String{validators.Name()},
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"override_after": tenantobject.TextAttribute(aboutOverrideAfter),
		"host_names": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: aboutHostNames + " A change starts another run.",
			Validators:          hostNameValidators(),
			PlanModifiers:       []planmodifier.Set{setplanmodifier.RequiresReplace()},
		},
		"labels": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: aboutLabels + " A change starts another run.",
			Validators:          labelValidators(),
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
		"roles": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: aboutRoles + " A change starts another run.",
			Validators:          roleValidators(),
			PlanModifiers:       []planmodifier.Set{setplanmodifier.RequiresReplace()},
		},
		"until": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: aboutUntil + " A change starts another run, which goes on where this one ended.",
			Validators:          []validator.String{validators.Name()},
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"release": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: aboutRelease + " It is null if the run has no release. A change starts another run.",
			Validators:          []validator.String{validators.Name()},
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured()},
		},
		"accept": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: aboutAccept,
			Validators:          acceptValidators(),
		},
		"wait": tenantobject.BoolAttribute("Whether an apply waits until the run has ended, and fails if its result is not in `accept`; `true` by default. " +
			"With `false` the creation ends as soon as the run has started, and the result is in the state after it has ended."),
		"timeouts": tenantobject.TimeoutsAttribute(map[string]string{
			"create": "For waiting until this run, and any run before it, has ended; `50m` by default, so that a job of one hour ends with the state of the run and not by force. The run continues; the next apply takes it over.",
		}),
	}
}

func hostNameValidators() []validator.Set {
	return []validator.Set{setvalidator.SizeBetween(1, v1.MaxSelectorHosts), setvalidator.NoNullValues(), setvalidator.ValueStringsAre(validators.Hostname())}
}

// labelValidators refuse an empty map, too: it would choose all hosts, which nobody can have meant.
func labelValidators() []validator.Map {
	return append(validators.Labels(), mapvalidator.SizeAtLeast(1))
}

func roleValidators() []validator.Set {
	return []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.NoNullValues(), setvalidator.ValueStringsAre(validators.Text())}
}

func acceptValidators() []validator.Set {
	return []validator.Set{
		setvalidator.SizeAtLeast(1), setvalidator.NoNullValues(),
		setvalidator.ValueStringsAre(validators.Rule("a result of a run", func(text string) error {
			if slices.Contains(v1.Results(), text) {
				return nil
			}
			return fmt.Errorf("%q is not a result of a run; use %s", text, strings.Join(v1.Results(), ", "))
		})),
	}
}

// resultAttributes are the computed attributes. They do not change after the end
// of the run.
func resultAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"run_id": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "The id of the run.",
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		},
		"result":    computed("The result of the run: `completed`, `partial`, `failed`, `aborted` or `timed-out`; null until it ends."),
		"opened_at": computed("When the run was opened (RFC 3339)."),
		"ended_at":  computed("When the run ended (RFC 3339); null until it ends."),
		"hosts": tenantobject.Typed(schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "The result of each host.",
			PlanModifiers:       []planmodifier.List{listplanmodifier.UseStateForUnknown()},
			NestedObject:        schema.NestedAttributeObject{Attributes: memberAttributes()},
		}),
		"way_back": tenantobject.Typed(schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: wayback.About + " With `wait = false` it is null until the run has ended; `osupgrade_runs` has it before.",
			PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
			Attributes:          wayback.Attributes(computedText),
		}),
	}
}

func memberAttributes() map[string]schema.Attribute {
	all := HostAttributes(computedText)
	all["up_to_date"] = schema.BoolAttribute{Computed: true, MarkdownDescription: UpToDate}
	return all
}

func computedText(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func computed(description string) schema.Attribute {
	return schema.StringAttribute{
		Computed:            true,
		MarkdownDescription: description,
		PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}
