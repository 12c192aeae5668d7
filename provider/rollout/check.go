package rollout

import "github.com/hashicorp/terraform-plugin-framework/resource/schema"

func checksAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "What must be healthy; no checks by default. They run one after the other, in the order given.",
		Attributes: map[string]schema.Attribute{
			"before_host": objects("On the host, before it is taken out of service.", checkAttributes()),
			"after_host":  objects("On the host, after its upgrade and reboot. A host that does not pass has failed, and stays out of service.", checkAttributes()),
			"fleet":       objects("At the site, between hosts: before each host they must pass. When one does not, `on_failure` decides at once, whatever `max_failures` is: `stop` fails the run, `pause` holds it up, `continue` tries again every 30 seconds.", checkAttributes()),
		},
	}
}

func checkAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":     text("What it is called in messages; its type and what it looks at by default."),
		"type":     required("`exec` runs a script, `http` asks for a URL, `tcp` connects, `systemd` looks at a unit, `disk` at free space."),
		"script":   text("Of `exec`: the name of a script in the folder that `--checks` of the worker names; of a check of the fleet, `--checks` of `serve`."),
		"args":     textList("Of `exec`: the arguments of the script."),
		"url":      text("Of `http`: the URL to get, with `http` or `https`."),
		"status":   number("Of `http`: the status that passes, from `100` to `599`; any of 200 to 299 by default."),
		"address":  text("Of `tcp`: host and port, such as `127.0.0.1:22`."),
		"unit":     text("Of `systemd`: the unit that must be active, such as `nginx.service`."),
		"path":     text("Of `disk`: a path on the file system that is looked at, such as `/var`."),
		"min_free": text("Of `disk`: how much must be free, such as `500MB`, `2GiB` or `10%`."),
		"passes":   number("How often in a row it must pass, from `1` to `100`; `1` by default."),
		"interval": length("The wait between tries, from `1s` to `1d`; `5s` by default."),
		"timeout":  length("The longest time until it has passed so often, from `1s` to `1d`; `1m` by default."),
	}
}
