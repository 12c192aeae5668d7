package rollout

import (
	"context"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/apiobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// model is the resource as Terraform has it.
type model struct {
	tenantresource.Common
	Policy
}

// Policy are the attributes that make up the API's object: see package whole.
type Policy struct {
	Stages       types.List   `tfsdk:"stages"`
	MaxFailures  types.String `tfsdk:"max_failures"`
	OnFailure    types.String `tfsdk:"on_failure"`
	MinPrepared  types.String `tfsdk:"min_prepared"`
	Overrun      types.String `tfsdk:"overrun"`
	Reserve      types.String `tfsdk:"reserve"`
	Splay        types.String `tfsdk:"splay"`
	Paused       types.Bool   `tfsdk:"paused"`
	Exempt       types.Object `tfsdk:"exempt"`
	ExemptReboot types.Object `tfsdk:"exempt_reboot"`
	Checks       types.Object `tfsdk:"checks"`
	Hooks        types.Object `tfsdk:"hooks"`
	StepTimeouts types.Object `tfsdk:"step_timeouts"`
}

// ToAPI is what the model declares.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Rollout {
	return kind.ToAPI(ctx, m.Policy, diags)
}

// FromAPI takes over what the server has.
func (m *model) FromAPI(ctx context.Context, server v1.Rollout, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Policy, server, all, diags)
}

// Claims is the rollout as a whole.
func (*model) Claims() map[string]path.Path {
	return map[string]path.Path{"the rollout": path.Root("tenant")}
}

// Loss tells that the defaults hold again.
func (*model) Loss(tenant string) (summary, detail string) {
	return "Runs go by the defaults again",
		"When " + TypeName + " of tenant " + tenant + " is deleted, its stages, limits, checks and hooks go. " +
			"From then on its runs have one stage of all hosts, one host at a time, no checks and no hooks, and stop at the first failure. " +
			"A pause that the rollout declares ends."
}

// Schema describes the resource.
func (*Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The policy of a tenant's runs: in which order the hosts go and how many at once, what must be healthy before and after, " +
			"and what happens when a host fails. Offered by `osupgrade-agent` only; Avassa's own API has no such object. " +
			"The guide [Rollouts](../guides/rollout.md) explains how the rules work together.\n\n" +
			"There is one rollout for each tenant, and this resource owns it as a whole: an attribute that is left out has the server's default, " +
			"and when somebody sets it to something else elsewhere, the next plan shows it. A change counts from the next run on; " +
			"only `paused` also holds up a run that is under way.\n\n" +
			"A length of time is such as `30s`, `90m` or `1d4h`, and another spelling of the same length is no change. " +
			"A number of hosts is a count such as `2`, or a percentage such as `10%`.",
		Attributes: tenantresource.Attributes(ctx, attributes()),
	}
}

// attributes are those that make up the API's object.
func attributes() map[string]schema.Attribute {
	all := limitAttributes()
	all["stages"] = stagesAttribute()
	all["exempt"] = matchAttribute("The hosts that are not upgraded. They are shown as skipped, with the reason. No host is exempt by default.")
	all["exempt_reboot"] = matchAttribute("The hosts that are upgraded but not rebooted. A note at the host says so. No host by default.")
	all["checks"] = checksAttribute()
	all["hooks"] = hooksAttribute()
	all["step_timeouts"] = timeoutsAttributes()
	return all
}

// limitAttributes are the simple ones.
func limitAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"max_failures": apiobject.Text("The number of failed hosts at which `on_failure` happens; `1` by default. " +
			"A percentage is of the run's hosts, rounded down, but at least 1."),
		"on_failure": apiobject.Text("What happens then: `stop` ends the run after the hosts under way, `pause` holds it up until somebody resumes or aborts it, " +
			"`continue` goes on; `stop` by default."),
		"min_prepared": apiobject.Text("How many hosts must have prepared before the first one is upgraded; `100%` by default. A percentage is rounded up."),
		"overrun": apiobject.Text("What happens to hosts under way when the time of the run is up: `finish-host` waits for what they are doing, sends them no further command and undrains them; " +
			"`stop` leaves them behind at once; `finish-host` by default."),
		"reserve": apiobject.Duration("How long before the end of its window a run ends; `0s` by default."),
		"splay":   apiobject.Duration("The span at the beginning of a stage over which its hosts start; `0s` by default."),
		"paused":  apiobject.Bool("Whether all runs of the tenant are held up, the one under way included; `false` by default."),
	}
}

func timeoutsAttributes() schema.Attribute {
	return apiobject.Object("How long a host may take to answer each command, from `1s` to `7d`; one that does not has failed. "+
		"The attribute `timeouts` is about Terraform's own operations instead.", map[string]schema.Attribute{
		"prepare": apiobject.Duration("For preparing; `1h` by default."),
		"upgrade": apiobject.Duration("For upgrading; `1h` by default."),
		"reboot":  apiobject.Duration("For rebooting; `15m` by default."),
	})
}

func stagesAttribute() schema.Attribute {
	return apiobject.Objects("The stages, one after the other; a host is in the first one that matches it, and hosts that none matches are skipped. "+
		"Within a stage the hosts go in the order of their names. Left out or `[]`: one stage of all hosts, one at a time.",
		map[string]schema.Attribute{
			"name":  apiobject.Required("Its name: lower-case letters, digits and hyphens, each name once."),
			"match": matchAttribute("Which hosts are in it; left out, which only the last stage may, all that no earlier stage has."),
			"max_unavailable": apiobject.Text("How many of the stage's hosts may be out of service at once; `1` by default. " +
				"A percentage is of the stage's hosts, rounded down, but at least 1. A host that is unhealthy or silent counts as out of service."),
			"soak":             apiobject.Duration("How long the run waits after the stage, before the next one; `0s` by default."),
			"approval":         apiobject.Bool("Whether the stage waits for somebody to approve it; `false` by default."),
			"approval_timeout": apiobject.Duration("How long it waits for that at most, from `1s` to `7d`; `1d` by default."),
		})
}

// matchAttribute chooses hosts.
func matchAttribute(description string) schema.Attribute {
	return apiobject.Object(description+" A host is chosen when it fits each attribute that is given; at least one must be.", map[string]schema.Attribute{
		"hosts": apiobject.TextSet("Names of hosts; a host fits when its own is one of them."),
		"labels": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Labels with their values, as the host's worker tells them; a host fits when it has all of them.",
			Validators:          []validator.Map{mapvalidator.NoNullValues()},
		},
		"roles":        apiobject.TextSet("Roles, as the host's worker tells its own; a host fits when it has one of them."),
		"applications": apiobject.TextSet("Worker applications; a host fits when its worker is known under one of them."),
	})
}

func checksAttribute() schema.Attribute {
	return apiobject.Object("What must be healthy; no checks by default. They run one after the other, in the order given.", map[string]schema.Attribute{
		"before_host": apiobject.Objects("On the host, before it is taken out of service.", checkAttributes()),
		"after_host":  apiobject.Objects("On the host, after its upgrade and reboot. A host that does not pass has failed, and stays out of service.", checkAttributes()),
		"fleet":       apiobject.Objects("At the site, between hosts: before each host they must pass. When one does not, `on_failure` decides at once, whatever `max_failures` is: `stop` fails the run, `pause` holds it up, `continue` tries again every 30 seconds.", checkAttributes()),
	})
}

func checkAttributes() map[string]schema.Attribute {
	return withKinds(v1.CheckKinds, map[string]schema.Attribute{
		"name":     apiobject.Text("What it is called in messages; its type and what it looks at by default."),
		"passes":   apiobject.Number("How often in a row it must pass, from `1` to `100`; `1` by default."),
		"interval": apiobject.Duration("The wait between tries, from `1s` to `1d`; `5s` by default."),
		"timeout":  apiobject.Duration("The longest time until it has passed so often, from `1s` to `1d`; `1m` by default."),
	})
}

func hooksAttribute() schema.Attribute {
	return apiobject.Object("What takes a host out of service and puts it back; no hooks by default. "+
		"A hook may run more than once for a host and, after a crash, at the same time as itself: make it idempotent.", map[string]schema.Attribute{
		"drain":   hookAttribute("Runs before the host is upgraded. A host that cannot be drained has failed and is not upgraded."),
		"undrain": hookAttribute("Runs when the host is done, and always when `drain` has begun, also after a failure."),
	})
}

func hookAttribute(description string) schema.Attribute {
	return apiobject.Object(description, withKinds(v1.HookKinds, map[string]schema.Attribute{
		"on":             apiobject.Text("Where it runs: on the `host`, or at the `site`; `host` by default."),
		"timeout":        apiobject.Duration("How long one try may take, from `1s` to `1d`; `1m` by default."),
		"retries":        apiobject.Number("How many more tries follow a failed one, from `0` to `20`; `2` by default."),
		"retry_interval": apiobject.Duration("The wait between tries, from `0s` to `1d`; `10s` by default."),
	}))
}

// withKinds adds the type of a check or of a hook, and the attributes that only
// some types have.
func withKinds[T any](kinds []v1.Kind[T], all map[string]schema.Attribute) map[string]schema.Attribute {
	var types []string
	of, is := map[string][]string{}, map[string]string{}
	for _, kind := range kinds {
		types = append(types, "`"+kind.Type+"` "+kind.Does)
		for _, member := range kind.Members {
			of[member.Name] = append(of[member.Name], "`"+kind.Type+"`")
			is[member.Name] = member.Is
		}
	}
	all["type"] = apiobject.Required(strings.Join(types, "; ") + ".")
	for member, description := range is {
		description = "Of " + strings.Join(of[member], " and ") + ": " + description + "."
		all[strings.ReplaceAll(member, "-", "_")] = attributeOf[T](member, description)
	}
	return all
}

// attributeOf returns the attribute for a member of an object of the API.
func attributeOf[T any](member, description string) schema.Attribute {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != member {
			continue
		}
		switch field.Type.Kind() {
		case reflect.Slice:
			return apiobject.Texts(description)
		case reflect.Int:
			return apiobject.Number(description)
		default:
			return apiobject.Text(description)
		}
	}
	panic("rollout: there is no member " + member)
}
