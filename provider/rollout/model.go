package rollout

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.Common
	Policy
}

// Policy are the attributes of the API's object: see tenantobject.Mapping.
type Policy struct {
	Stages          types.List   `tfsdk:"stages"`
	MaxFailures     types.String `tfsdk:"max_failures"`
	OnFailure       types.String `tfsdk:"on_failure"`
	Absent          types.String `tfsdk:"absent"`
	MinPrepared     types.String `tfsdk:"min_prepared"`
	PreparePatience types.String `tfsdk:"prepare_patience"`
	Overrun         types.String `tfsdk:"overrun"`
	OverrunLimit    types.String `tfsdk:"overrun_limit"`
	Reserve         types.String `tfsdk:"reserve"`
	RetryAfter      types.String `tfsdk:"retry_after"`
	Splay           types.String `tfsdk:"splay"`
	Paused          types.Bool   `tfsdk:"paused"`
	FreezeChanges   types.Bool   `tfsdk:"freeze_changes"`
	FleetLock       types.Bool   `tfsdk:"fleetlock"`
	Exempt          types.Object `tfsdk:"exempt"`
	ExemptReboot    types.Object `tfsdk:"exempt_reboot"`
	Checks          types.Object `tfsdk:"checks"`
	Hooks           types.Object `tfsdk:"hooks"`
	CommandTimeouts types.Object `tfsdk:"command_timeouts"`
}

// ToAPI returns the declared rollout.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Rollout {
	return kind.ToAPI(ctx, m.Policy, diags)
}

// FromAPI sets the attributes from the server's rollout.
func (m *model) FromAPI(ctx context.Context, server v1.Rollout, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Policy, server, all, diags)
}

// Loss warns that the defaults apply again.
func (*model) Loss(tenant string) (summary, detail string) {
	return "The defaults apply to runs again",
		"Deleting " + TypeName + " of tenant " + tenant + " removes its stages, limits, checks and hooks. " +
			"From then on runs have one stage of all hosts, one host at a time, no checks and no hooks, and stop at the first failure. " +
			"If the rollout has paused = true, runs are no longer held."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The policy of a tenant's runs: in which order and how many hosts at once are upgraded, what must be healthy before and after, " +
			"and what happens when a host fails. Supported by `osupgrade-agent` only; Avassa's own API has no such object.\n\n" +
			"Each tenant has one rollout, and this resource owns all of it: an omitted attribute has its default, " +
			"and if somebody sets it to another value elsewhere, the next plan shows the change. A change takes effect with the next run; " +
			"only `paused` also affects the run in progress.\n\n" +
			"A duration is written as `30s`, `90m` or `1d4h`; another form of the same duration is no change. " +
			"A number of hosts is a count such as `2`, or a percentage such as `10%`.",
		Attributes: tenantobject.Attributes(kind.Attributes(), tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object.
func attributes() map[string]schema.Attribute {
	all := limitAttributes()
	all["stages"] = stagesAttribute()
	all["exempt"] = MatchAttribute("The hosts that are not upgraded. They are shown as skipped, with the reason; none by default.")
	all["exempt_reboot"] = MatchAttribute("The hosts that are upgraded but not rebooted. They are shown with a note; none by default.")
	all["checks"] = checksAttribute()
	all["hooks"] = hooksAttribute()
	all[CommandTimeouts] = timeoutsAttributes()
	return all
}

// Attributes are the attributes of a rollout inside another object, such as an environment.
func Attributes() map[string]schema.Attribute { return kind.Attributes() }

// Filled returns the members of such a rollout with the defaults of those that are absent, as a
// plan has them.
func Filled(members map[string]any) map[string]any { return kind.Filled(members) }

// CommandTimeouts is the attribute of the member timeouts: the attribute timeouts limits Terraform's
// own operations.
const CommandTimeouts = "command_timeouts"

// limitAttributes are the attributes that are not objects.
func limitAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"max_failures": tenantobject.TextAttribute("The number of failed hosts at which `on_failure` takes effect, at least `1`; `1` by default. A host that could not prepare is not counted. " +
			"A percentage is of the hosts that are present, rounded down, but at least 1."),
		"on_failure": tenantobject.ChoiceAttribute("What happens when `max_failures` hosts have failed: `stop` ends the run after the hosts in progress, `pause` holds it until somebody resumes or aborts it, "+
			"`continue` continues the run; `stop` by default.", "stop", "pause", "continue"),
		"absent": tenantobject.ChoiceAttribute("What happens to hosts that were silent before the run was opened: `skip` leaves them out as `unreachable`, so that they hold no slot and no percentage includes them; "+
			"`count` counts them as present and out of service; `skip` by default. A host that falls silent during a run is out of service in any case.", "skip", "count"),
		"min_prepared": tenantobject.TextAttribute("How many hosts must have prepared before the first one is upgraded, at least `0`; `50%` by default. Otherwise the run ends without a change on any host. A percentage is of the hosts that are present, rounded up."),
		"prepare_patience": tenantobject.DurationAttribute("How long a run waits for the other hosts once `min_prepared` hosts have prepared, from `0s` to `7d`; `5m` by default, and never longer than a tenth of the window. " +
			"Then it begins without them. A host that is late joins its stage as soon as it has prepared; the stage waits for it no longer than this either, and then skips it."),
		"overrun": tenantobject.ChoiceAttribute("What happens to hosts in progress when the time of the run is up: `finish-host` waits until they have finished their current command, at most for `overrun_limit`, and undrains them; "+
			"`stop` does not wait for them; `finish-host` by default. Neither sends a further command.", "finish-host", "stop"),
		"overrun_limit": tenantobject.DurationAttribute("How long after its time is up a run ends at the latest, whatever its hosts do, from `0s` to `7d`; `15m` by default. " +
			"Hosts that have not finished by then stay out of service until they are heard of, released or deleted."),
		"reserve": tenantobject.DurationAttribute("How long before the end of its window a run ends at the latest, from `0s` to `7d`; `0s` by default."),
		"retry_after": tenantobject.DurationAttribute("How long after the end of a run that touched no host the next run is started in the same window, from `1m` to `7d`; `15m` by default. " +
			"It is started if the window minus `reserve` has not ended by then."),
		"freeze_changes": tenantobject.BoolAttribute("Whether a run refuses changes of the tenant's configuration from its first stage to its end; `false` by default. " +
			"Pausing runs and adding freezes remains possible. An apply in the meantime fails with the run and the way out; a plan is still validated."),
		"splay":     tenantobject.DurationAttribute("The time at the beginning of a stage over which the starts of its hosts are spread, from `0s` to `7d`; `0s` by default."),
		"fleetlock": tenantobject.BoolAttribute("Whether hosts that reboot by themselves may ask for that by the FleetLock protocol; `false` by default."),
		"paused":    tenantobject.BoolAttribute("Whether all runs of the tenant are held, including the run in progress; `false` by default."),
	}
}

func timeoutsAttributes() schema.Attribute {
	return tenantobject.ObjectAttribute("How long a host may take to answer each command, from `1s` to `7d`; a host that does not answer in time has failed. "+
		"The attribute `timeouts` is different: it limits Terraform's own operations.", map[string]schema.Attribute{
		"prepare": tenantobject.DurationAttribute("For preparing; `1h` by default."),
		"upgrade": tenantobject.DurationAttribute("For upgrading; `1h` by default."),
		"reboot":  tenantobject.DurationAttribute("For rebooting; `15m` by default."),
	})
}

func stagesAttribute() schema.Attribute {
	return tenantobject.ObjectListAttribute("The stages, which run one after the other. A host belongs to the first stage that matches it; hosts that match no stage are skipped. "+
		"Within a stage hosts are ordered by name. At most 100. Omitted or `[]`: one stage of all hosts, one at a time.",
		map[string]schema.Attribute{
			"name":  tenantobject.RequiredText("The name of the stage: lower-case letters, digits and hyphens, unique in the rollout."),
			"match": MatchAttribute("The hosts of the stage. Only the last stage with hosts may omit it: it contains all remaining hosts."),
			"step":  stepAttribute(),
			"max_unavailable": tenantobject.TextAttribute("How many of the stage's hosts may be out of service at once, at least `1`; `1` by default. " +
				"A percentage is of the stage's hosts that are not absent, rounded down, but at least 1. A host that is unhealthy, or fell silent during a run, counts as out of service."),
			"point_of_no_return": tenantobject.BoolAttribute("Whether there is no way back once the stage has begun; `false` by default. One stage may have it."),
			"soak":               tenantobject.DurationAttribute("How long the run waits after the stage, before the next one, from `0s` to `7d`; `0s` by default."),
			"approval":           tenantobject.BoolAttribute("Whether the stage waits for somebody to approve it; `false` by default."),
			"approval_timeout":   tenantobject.DurationAttribute("How long the stage waits for the approval at most, from `1s` to `7d`; `1d` by default."),
		})
}

// stepAttribute is what a stage does once in place of hosts.
func stepAttribute() schema.Attribute {
	return tenantobject.ObjectAttribute("What is done once in place of hosts, after the hosts of the stages before it and before those of the stages after it. A stage has `match` or `step`, never both.", map[string]schema.Attribute{
		"do":    hookAttribute("The hook that does it; each step has one. With `on` = `host`, the default, it runs on the host that `match` chooses. It may run more than once, so make it idempotent."),
		"undo":  hookAttribute("The hook that undoes `do`. None by default: then a rollback leaves the step done."),
		"match": MatchAttribute("Of a step with a hook on a host: the first present host that matches, by name, when the step begins, is that of its hooks."),
		"gives": tenantobject.TextListAttribute("The names of the outputs of `do`, a script: lines `NAME=VALUE` that it prints to descriptor 3. Outputs are sealed, and only the steps and hosts after it get them. At most 20."),
	})
}

// MatchAttribute is an attribute that selects hosts.
func MatchAttribute(description string) schema.Attribute {
	return tenantobject.ObjectAttribute(description+" A host is selected if it matches each attribute that is given; at least one must be given.", map[string]schema.Attribute{
		"hosts": tenantobject.TextSetAttribute("Names of hosts; a host matches if its name is one of them."),
		"labels": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Labels with their values, as the host's worker reports them; a host matches if it has all of them.",
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
		},
		"roles":        tenantobject.TextSetAttribute("Roles, as the host's worker reports its role; a host matches if it has one of them."),
		"applications": tenantobject.TextSetAttribute("Worker applications; a host matches if its worker has one of them."),
	})
}

func checksAttribute() schema.Attribute {
	start := checkAttributes()
	start["match"] = MatchAttribute("The hosts of the run on which the check is asked. Omitted: it is asked once, at the site.")
	return tenantobject.ObjectAttribute("What must be healthy; no checks by default. Each list has at most 20 checks, which run one after the other, in the order given.", map[string]schema.Attribute{
		"start":       tenantobject.ObjectListAttribute("Before a run prepares any host: all of them, and all at once. A run that fails one has touched nothing, and its window stays open for the next. `osupgrade-agent health` asks the same list at any time.", start),
		"before_host": tenantobject.ObjectListAttribute("On the host, before it is taken out of service.", checkAttributes()),
		"after_host":  tenantobject.ObjectListAttribute("On the host, after its upgrade and reboot. A host that does not pass has failed and stays out of service.", checkAttributes()),
		"fleet":       tenantobject.ObjectListAttribute("At the site, before each host. If one of them fails, `on_failure` decides at once, whatever `max_failures` is: `stop` fails the run, `pause` holds it, `continue` retries every 30 seconds.", checkAttributes()),
	})
}

func checkAttributes() map[string]schema.Attribute {
	return withKinds(v1.CheckKinds, map[string]schema.Attribute{
		"name":     tenantobject.TextAttribute("The name of the check in messages; by default its type and target."),
		"passes":   tenantobject.NumberAttribute("How often in a row the check must pass, from `1` to `100`; `1` by default.", 1),
		"interval": tenantobject.DurationAttribute("The wait between tries, from `1s` to `1d`; `5s` by default."),
		"timeout":  tenantobject.DurationAttribute("The time within which the check must have passed that often, from `1s` to `1d`; `1m` by default."),
	})
}

func hooksAttribute() schema.Attribute {
	return tenantobject.ObjectAttribute("The hooks that take a host out of service and put it back; none by default. "+
		"A hook may run more than once for a host and, after a crash, concurrently with itself: make it idempotent.", map[string]schema.Attribute{
		"drain":   hookAttribute("Runs before the host is upgraded. A host that cannot be drained has failed and is not upgraded."),
		"undrain": hookAttribute("Runs when the host is done, and whenever `drain` has begun, also after a failure."),
	})
}

func hookAttribute(description string) schema.Attribute {
	return tenantobject.ObjectAttribute(description, withKinds(v1.HookKinds, map[string]schema.Attribute{
		"on":             tenantobject.ChoiceAttribute("Where the hook runs: on the `host` or at the `site`; `host` by default.", "host", "site"),
		"timeout":        tenantobject.DurationAttribute("How long one try may take, from `1s` to `1d`; `1m` by default."),
		"retries":        tenantobject.NumberAttribute("How often a failed try is repeated, from `0` to `20`; `2` by default.", 0),
		"retry_interval": tenantobject.DurationAttribute("The wait between tries, from `0s` to `1d`; `10s` by default."),
	}))
}

// withKinds adds the attribute type of a check or hook, and the attributes of the
// single types.
func withKinds[T any](kinds []v1.Kind[T], all map[string]schema.Attribute) map[string]schema.Attribute {
	var types, members []string
	usedBy := map[string][]string{}
	for _, kind := range kinds {
		types = append(types, "`"+kind.Type+"` "+kind.Does)
		for _, member := range kind.Members {
			if usedBy[member.Name] == nil {
				members = append(members, member.Name)
			}
			usedBy[member.Name] = append(usedBy[member.Name], "`"+kind.Type+"`: "+member.Is)
		}
	}
	all["type"] = tenantobject.RequiredText(strings.Join(types, "; ") + ".")
	for _, member := range members {
		all[strings.ReplaceAll(member, "-", "_")] = attributeOf[T](member, "Of "+strings.Join(usedBy[member], "; of ")+".")
	}
	return all
}

// attributeOf returns the attribute for a member of an object of the API.
func attributeOf[T any](member, description string) schema.Attribute {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != member {
			continue
		}
		of := strings.Fields(field.Tag.Get("oneof"))
		switch kind := field.Type.Kind(); {
		case kind == reflect.Slice:
			return tenantobject.TextListAttribute(description)
		case len(of) > 0:
			return tenantobject.ChoiceAttribute(description, of...)
		case kind == reflect.Int:
			return tenantobject.NumberAttribute(description, leastOf(field.Tag.Get("within")))
		default:
			return tenantobject.TextAttribute(description)
		}
	}
	panic("rollout: there is no member " + member)
}

// leastOf returns the lower of a number's bounds in its tag, such as "100 599".
func leastOf(within string) int64 {
	var least int64
	if _, err := fmt.Sscan(within, &least); err != nil {
		panic("rollout: a number has no bounds: " + err.Error())
	}
	return least
}
