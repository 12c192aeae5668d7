package rollout

import "github.com/hashicorp/terraform-plugin-framework/resource/schema"

func hooksAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "What takes a host out of service and puts it back; no hooks by default. " +
			"A hook may run more than once for a host and, after a crash, at the same time as itself: make it idempotent.",
		Attributes: map[string]schema.Attribute{
			"drain":   hookAttribute("Runs before the host is upgraded. A host that cannot be drained has failed and is not upgraded."),
			"undrain": hookAttribute("Runs when the host is done, and always when `drain` has begun, also after a failure."),
		},
	}
}

func hookAttribute(description string) schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"type":           required("`exec` runs a script, which finds the host's name in `OSUPGRADE_HOST`; `http` calls a URL."),
			"script":         text("Of `exec`: the name of a script in the folder that `--checks` of the worker names; at the site, `--checks` of `serve`."),
			"args":           textList("Of `exec`: the arguments of the script."),
			"url":            text("Of `http`: the URL to call; `{host}` in it stands for the host's name."),
			"method":         text("Of `http`: the method, such as `PUT`; `POST` by default."),
			"on":             text("Where it runs: on the `host`, or at the `site`; `host` by default."),
			"timeout":        length("How long one try may take, from `1s` to `1d`; `1m` by default."),
			"retries":        number("How many more tries follow a failed one, from `0` to `20`; `2` by default."),
			"retry_interval": length("The wait between tries, from `0s` to `1d`; `10s` by default."),
		},
	}
}
