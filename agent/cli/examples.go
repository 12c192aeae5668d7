package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
)

// examples are what each command's help and man page show. A test parses them.
var examples = map[string][]string{
	"dev":               {"osupgrade-agent dev --hosts 3 --data /tmp/dev"},
	"serve":             {"osupgrade-agent serve --config /etc/osupgrade/serve.yaml", "osupgrade-agent serve --data /var/lib/osupgrade --tenants acme,beta --print-config"},
	"init":              {"osupgrade-agent init --name site.example --name 192.0.2.10"},
	"worker run":        {"osupgrade-agent worker --config /etc/osupgrade/worker.yaml"},
	"worker join":       {"osupgrade-agent worker join --site https://site.example:4646 --token-file join.token", "osupgrade-agent worker join --site https://site.example:4646 --token-file - --host web-1"},
	"strategy-check":    {"osupgrade-agent strategy-check --scripts /etc/osupgrade/scripts --yes"},
	"step-check":        {"osupgrade-agent step-check --checks /etc/osupgrade/checks --do mark-active --undo unmark-active --gives ACTIVE --yes"},
	"busy":              {"osupgrade-agent busy --for 30m --reason backup -- tar -czf /backup/etc.tar.gz /etc", "osupgrade-agent busy --for 2h --reason \"a person works here\"", "osupgrade-agent busy --list"},
	"worker accept":     {"osupgrade-agent worker accept 2026.11"},
	"worker rotate-key": {"osupgrade-agent worker rotate-key"},
	"status":            {"osupgrade-agent status", "osupgrade-agent status --output json", "osupgrade-agent status --context south", "osupgrade-agent status --tenant '*'"},
	"windows": {
		"osupgrade-agent windows --count 3", "osupgrade-agent windows --month --from 2026-12-01 --to 2027-01-31 --timezone Europe/Stockholm",
	},
	"hosts": {
		"osupgrade-agent hosts", "osupgrade-agent hosts h03", "osupgrade-agent hosts --wide", "osupgrade-agent hosts --label shop=basel --role till", "osupgrade-agent hosts --refresh",
		"osupgrade-agent hosts --waiting", "osupgrade-agent hosts --limit 100 --after h100",
	},
	"health": {"osupgrade-agent health", "osupgrade-agent health --environment basel --output json"},
	"start": {
		`osupgrade-agent start --dry-run`, `osupgrade-agent start --override-window --duration 2h --reason "CVE-2026-1234" --wait`,
		`osupgrade-agent start --host h03 --host h04 --override-window --reason "the new kernel, on two hosts first"`,
		`osupgrade-agent start --label shop=basel --dry-run`, `osupgrade-agent start --until standby --override-window --reason "the first night"`,
	},
	"watch":        {"osupgrade-agent watch", "osupgrade-agent watch 57 --output json"},
	"runs":         {"osupgrade-agent runs --result failed --since 2026-11-01", "osupgrade-agent runs 57"},
	"pause":        {`osupgrade-agent pause --reason "the database is being moved"`},
	"resume":       {`osupgrade-agent resume --reason "the database was moved"`},
	"abort":        {`osupgrade-agent abort --reason "wrong kernel"`, `osupgrade-agent abort --now --reason "h03 hangs"`},
	"approve":      {`osupgrade-agent approve rest --reason "the canary has run for a day"`},
	"withdraw":     {`osupgrade-agent withdraw nov --reason "loses routes"`, "osupgrade-agent withdraw nov --undo"},
	"release":      {`osupgrade-agent release h03 --reason "it is being repaired"`},
	"rollback":     {`osupgrade-agent rollback --dry-run`, `osupgrade-agent rollback 57 --reason "the new kernel loses packets" --wait`},
	"retry":        {`osupgrade-agent retry 57 --reason "the disk was cleaned" --wait`},
	"approve-host": {"osupgrade-agent approve-host shop-07"},
	"refuse-host":  {"osupgrade-agent refuse-host shop-07"},
	"forget":       {`osupgrade-agent forget h03 --reason "scrapped"`},
	"move":         {"osupgrade-agent move h03 --environment basel", "osupgrade-agent move h03 --auto"},
	"skip-window": {
		`osupgrade-agent skip-window --reason "stocktaking"`, `osupgrade-agent skip-window --environment shops --window-start 2026-11-29T01:00:00Z --reason "sale"`,
	},
	"unskip-window": {"osupgrade-agent unskip-window", "osupgrade-agent unskip-window --environment shops"},
	"audit": {
		"osupgrade-agent audit --since 2026-11-21 --by ann", "osupgrade-agent audit --after 0 --output jsonl >audit.jsonl", "osupgrade-agent audit --after 57 --follow --output syslog",
	},
	"history":          {"osupgrade-agent history config", "osupgrade-agent history calendar/holidays --limit 3"},
	"tenant list":      {"osupgrade-agent tenant list"},
	"tenant add":       {`osupgrade-agent tenant add beta --description "Beta Ltd"`, "osupgrade-agent tenant add beta --restore"},
	"tenant remove":    {"osupgrade-agent tenant remove beta"},
	"calendar refresh": {"osupgrade-agent calendar refresh holidays"},
	"webhook list":     {"osupgrade-agent webhook list"},
	"webhook add":      {"osupgrade-agent webhook add chat --url https://hooks.example/osupgrade --news run.finished,run.blocked,run.waiting"},
	"webhook test":     {"osupgrade-agent webhook test chat"},
	"webhook dead":     {"osupgrade-agent webhook dead chat"},
	"webhook resend":   {"osupgrade-agent webhook resend chat"},
	"apply": {
		"osupgrade-agent apply -f acme.yaml --dry-run", "osupgrade-agent apply -f holidays.ics --name holidays --kind freeze", "osupgrade-agent apply -f /etc/osupgrade/acme.d", "osupgrade-agent get --tenant acme | osupgrade-agent apply --tenant beta -f -",
	},
	"get":      {"osupgrade-agent get >acme.yaml", "osupgrade-agent get rollout calendar/holidays", "osupgrade-agent get users", "osupgrade-agent get policy night-shift"},
	"edit":     {"osupgrade-agent edit rollout", "osupgrade-agent edit policy/night-shift"},
	"delete":   {"osupgrade-agent delete user/ann webhook/chat", "osupgrade-agent delete policy night-shift --force"},
	"validate": {"osupgrade-agent validate -f acme.yaml", "osupgrade-agent validate -f acme.yaml --server"},
	"backup":   {"osupgrade-agent backup --data /var/lib/osupgrade --out /backup/site.tar"},
	"restore":  {"osupgrade-agent restore /backup/site.tar --data /var/lib/osupgrade"},
	"recover":  {"osupgrade-agent recover --data /var/lib/osupgrade"},
	"credentials token": {
		"osupgrade-agent credentials token --tenant acme --name ann --allow operator,approver --valid 90d",
		"osupgrade-agent credentials token --tenant acme --name phones --allow calendar",
	},
	"login": {"osupgrade-agent login --user ann", "osupgrade-agent login --user admin --tenant '*' --password-file admin.password"},
	"context add": {
		"osupgrade-agent context add north --endpoint https://north.example:4646 --ca-file north.pem --tenant acme --user ann",
		"osupgrade-agent context add south --endpoint https://south.example:4646 --tenant acme --token-command vault --token-arg kv --token-arg get --token-arg=-field=token --token-arg secret/south",
	},
	"context use":           {"osupgrade-agent context use north"},
	"context list":          {"osupgrade-agent context list"},
	"context show":          {"osupgrade-agent context show north --output json"},
	"context delete":        {"osupgrade-agent context delete north"},
	"password":              {"osupgrade-agent password", "osupgrade-agent password --current-file ann.password --new-file ann.new"},
	"unseal":                {"osupgrade-agent unseal --endpoint https://site.example:4646 --ca-file ca.pem"},
	"seal status":           {"osupgrade-agent seal status"},
	"seal key-file":         {"osupgrade-agent seal key-file --file /media/key/strongbox.key"},
	"seal credential":       {"osupgrade-agent seal credential --key strongbox.key"},
	"seal passphrase":       {"osupgrade-agent seal passphrase"},
	"seal rotate":           {"osupgrade-agent seal rotate"},
	"seal reset":            {"osupgrade-agent seal reset --yes"},
	"credentials user":      {"osupgrade-agent credentials user --tenant acme --name ann --allow operator,approver"},
	"credentials approle":   {"osupgrade-agent credentials approle --tenant acme --name terraform --allow viewer,write"},
	"credentials secret-id": {"osupgrade-agent credentials secret-id --tenant acme --name terraform --uses 1 --valid 10m"},
	"credentials rotate":    {"osupgrade-agent credentials rotate 4f2a91c07b13 --overlap 1h"},
	"credentials host":      {"osupgrade-agent credentials host --tenant acme --host h03 --out h03.key"},
	"credentials join-token create": {
		"osupgrade-agent credentials join-token create --tenant acme --host web-1 --application appliance",
		`osupgrade-agent credentials join-token create --tenant acme --host "shop-*" --max-hosts 40 --application appliance --label shop=basel --valid 7d --approve`,
	},
	"credentials join-token list":   {"osupgrade-agent credentials join-token list"},
	"credentials join-token show":   {"osupgrade-agent credentials join-token show 4f2a91c07b13"},
	"credentials join-token remove": {"osupgrade-agent credentials join-token remove 4f2a91c07b13"},
	"credentials list":              {"osupgrade-agent credentials list"},
	"credentials remove":            {"osupgrade-agent credentials remove 4f2a91c07b13"},
	"completion":                    {"osupgrade-agent completion bash >/etc/bash_completion.d/osupgrade-agent"},
	"man":                           {"osupgrade-agent man --out /usr/local/share/man/man1"},
}

// addExamples adds the examples to the help of the commands.
func addExamples(k *kong.Kong) error {
	for _, leaf := range k.Model.Leaves(false) {
		leaf.Detail = strings.TrimSpace(leaf.Detail + "\n\n" + shell.ExampleText(examples[shell.Name(leaf)]))
	}
	return nil
}
