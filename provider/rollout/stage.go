package rollout

import "github.com/hashicorp/terraform-plugin-framework/resource/schema"

func stagesAttribute() schema.Attribute {
	return objects("The stages, one after the other; a host is in the first one that matches it, and hosts that none matches are skipped. "+
		"Within a stage the hosts go in the order of their names. Left out or `[]`: one stage of all hosts, one at a time.",
		map[string]schema.Attribute{
			"name":  required("Its name: lower-case letters, digits and hyphens, each name once."),
			"match": matchAttribute("Which hosts are in it; left out, which only the last stage may, all that no earlier stage has."),
			"max_unavailable": text("How many of the stage's hosts may be out of service at once; `1` by default. " +
				"A percentage is of the stage's hosts, rounded down, but at least 1. A host that is unhealthy or silent counts as out of service."),
			"soak": length("How long the run waits after the stage, before the next one; `0s` by default."),
			"approval": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether the stage waits for somebody to approve it; `false` by default.",
			},
			"approval_timeout": length("How long it waits for that at most, from `1s` to `7d`; `1d` by default."),
		})
}
