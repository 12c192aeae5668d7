package v1

import (
	"fmt"
	"strings"
	"testing"
)

// wrongRollouts are bodies with one thing wrong, and what is told of it.
var wrongRollouts = []struct{ name, body, problem string }{
	{"stage without a name", `{"stages": [{}]}`, `stages[0].name: "" is not a name; use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends`},
	{"two stages of a name", `{"stages": [{"name": "a", "match": {"roles": ["x"]}}, {"name": "a"}]}`, `stages[1].name: "a" is the name of stages[0] already; give each stage its own`},
	{"stage after all hosts", `{"stages": [{"name": "a"}, {"name": "b"}]}`, `stages[0].match: it is absent, so that this stage takes all hosts that are left and none are left for stages[1]; give match, or make this the last stage`},
	{"match of nothing", `{"stages": [{"name": "a", "match": {"hosts": []}}]}`, `stages[0].match: it names no hosts; give hosts, labels, roles or applications, or leave it out`},
	{"exempt of nothing", `{"exempt": {}}`, `exempt: it names no hosts; give hosts, labels, roles or applications, or leave it out`},
	{"no unavailable host", `{"stages": [{"name": "a", "max-unavailable": "0%"}]}`, `stages[0].max-unavailable: "0%" is too few; use at least 1 or 1%`},
	{"count", `{"max-failures": "two"}`, `max-failures: "two" is not a count; use a number up to 10000 such as 2, or a percentage such as 10%`},
	{"min-prepared", `{"min-prepared": "101%"}`, `min-prepared: "101%" is not a count; use a number up to 10000 such as 2, or a percentage such as 10%`},
	{"soak", `{"stages": [{"name": "a", "soak": "169h"}]}`, `stages[0].soak: "169h" is too long; use 0s to 7d`},
	{"soak without end", `{"stages": [{"name": "a", "soak": "200000d"}]}`, `stages[0].soak: "200000d" is too long; use 0s to 7d`},
	{"approval-timeout", `{"stages": [{"name": "a", "approval-timeout": "0s"}]}`, `stages[0].approval-timeout: "0s" is too short; use 1s to 7d`},
	{"on-failure", `{"on-failure": "Stopp"}`, `on-failure: "Stopp" is not possible; use stop, pause or continue; did you mean stop?`},
	{"overrun", `{"overrun": "hope"}`, `overrun: "hope" is not possible; use finish-host or stop`},
	{"reserve", `{"reserve": "-1h"}`, `reserve: "-1h" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`},
	{"timeout of prepare", `{"timeouts": {"prepare": "0s"}}`, `timeouts.prepare: "0s" is too short; use 1s to 7d`},
	{"timeout of upgrade", `{"timeouts": {"upgrade": "8d"}}`, `timeouts.upgrade: "8d" is too long; use 1s to 7d`},
	{"host", `{"exempt": {"hosts": ["a b"]}}`, `exempt.hosts[0]: "a b" is not the name of a host; use 1 to 253 letters, digits, "-", "_" and ".", with a letter or digit at both ends`},
	{"host twice", `{"exempt": {"hosts": ["a", "b", "a"]}}`, `exempt.hosts[2]: "a" is exempt.hosts[0] again; give it once`},
	{"role", `{"exempt": {"roles": [" a"]}}`, `exempt.roles[0]: " a" is not a role; use 1 to 63 printable characters without blanks at the ends`},
	{"application", `{"exempt": {"applications": ["A"]}}`, `exempt.applications[0]: "A" is not a name; use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends`},
	{"key of a label", `{"exempt": {"labels": {"a b": "c"}}}`, `exempt.labels: "a b" is not the key of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`},
	{"value of a label", `{"exempt": {"labels": {"a": "c d"}}}`, `exempt.labels.a: "c d" is not the value of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`},
	{"value of a label with a dot", `{"exempt": {"labels": {"a.b": "c d"}}}`, `exempt.labels["a.b"]: "c d" is not the value of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`},
}

// wrongChecks are the same of one check.
var wrongChecks = []struct{ name, body, problem string }{
	{"no type", `{}`, `type: "" is not possible; use exec, http, tcp, systemd or disk`},
	{"type", `{"type": "execc", "script": "a b"}`, `type: "execc" is not possible; use exec, http, tcp, systemd or disk; did you mean exec?`},
	{"name", `{"type": "tcp", "address": "a:1", "name": "a\nb"}`, `name: "a\nb" is not a name; use at most 100 printable characters without blanks at the ends`},
	{"script with a folder", `{"type": "exec", "script": "/bin/true"}`, `script: "/bin/true" is not the name of a script; use letters, digits, "-", "_" and ".", with no "." or "-" at the beginning and no folder`},
	{"script above", `{"type": "exec", "script": ".."}`, `script: ".." is not the name of a script; use letters, digits, "-", "_" and ".", with no "." or "-" at the beginning and no folder`},
	{"argument", `{"type": "exec", "script": "a", "args": ["\u0000"]}`, `args[0]: "\x00" is not an argument; use at most 4096 bytes, none of them zero`},
	{"no URL", `{"type": "http"}`, `url: "" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL of a file", `{"type": "http", "url": "file:///etc/passwd"}`, `url: "file:///etc/passwd" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL with a wild port", `{"type": "http", "url": "http://a:99999/"}`, `url: "http://a:99999/" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL with a host that cannot be shown", `{"type": "http", "url": "http://%C2%85/"}`, `url: "http://%C2%85/" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL of any host", `{"type": "http", "url": "http://{host}/"}`, `url: "http://{host}/" has {host}, which only a hook's may have; name the host, such as 127.0.0.1`},
	{"status", `{"type": "http", "url": "http://a/", "status": 600}`, `status: 600 is out of range; use 100 to 599`},
	{"no port", `{"type": "tcp", "address": "127.0.0.1"}`, `address: "127.0.0.1" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"port 0", `{"type": "tcp", "address": "a:0"}`, `address: "a:0" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"IPv6 without brackets", `{"type": "tcp", "address": "::1:22"}`, `address: "::1:22" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"name in brackets", `{"type": "tcp", "address": "[a]:22"}`, `address: "[a]:22" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"unit without its type", `{"type": "systemd", "unit": "nginx"}`, `unit: "nginx" is not the name of a systemd unit; use one with its type, such as nginx.service`},
	{"unit that is an option", `{"type": "systemd", "unit": "-Hx.service"}`, `unit: "-Hx.service" is not the name of a systemd unit; use one with its type, such as nginx.service`},
	{"path", `{"type": "disk", "path": "var", "min-free": "1%"}`, `path: "var" is not an absolute path; use one that begins with "/", such as /var`},
	{"min-free", `{"type": "disk", "path": "/var", "min-free": "1G"}`, `min-free: "1G" is not an amount of free space; use a whole number with KB, MB, GB, TB, KiB, MiB, GiB or TiB such as 2GiB, or a percentage such as 10%`},
	{"passes", `{"type": "tcp", "address": "a:1", "passes": 0}`, `passes: 0 is out of range; use 1 to 100`},
	{"interval", `{"type": "tcp", "address": "a:1", "interval": "0s"}`, `interval: "0s" is too short; use 1s to 1d`},
	{"timeout", `{"type": "tcp", "address": "a:1", "timeout": "25h"}`, `timeout: "25h" is too long; use 1s to 1d`},
	{"time for the passes", `{"type": "tcp", "address": "a:1", "passes": 13}`, `timeout: "1m" is too short for 13 passes that are 5s apart; use more than 1m`},
	{"member of another type", `{"type": "exec", "script": "a", "url": "http://a/"}`, `url: "http://a/" is not of type exec, which takes script and args; leave it out`},
	{"status of another type", `{"type": "tcp", "address": "a:1", "status": 200}`, `status: "200" is not of type tcp, which takes address; leave it out`},
	{"arguments of another type", `{"type": "disk", "path": "/", "min-free": "1%", "args": ["a", "b"]}`, `args: "a b" is not of type disk, which takes path and min-free; leave it out`},
}

// wrongHooks are the same of one hook.
var wrongHooks = []struct{ name, body, problem string }{
	{"type of a check", `{"type": "tcp"}`, `type: "tcp" is not possible; use exec or http`},
	{"method of exec", `{"type": "exec", "script": "a", "method": "GET"}`, `method: "GET" is not of type exec, which takes script and args; leave it out`},
	{"script of http", `{"type": "http", "url": "http://a/", "script": "a"}`, `script: "a" is not of type http, which takes url and method; leave it out`},
	{"method", `{"type": "http", "url": "http://a/", "method": "post"}`, `method: "post" is not possible; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; did you mean POST?`},
	{"on", `{"type": "exec", "script": "a", "on": "cloud"}`, `on: "cloud" is not possible; use host or site`},
	{"timeout", `{"type": "exec", "script": "a", "timeout": "2d"}`, `timeout: "2d" is too long; use 1s to 1d`},
	{"retries", `{"type": "exec", "script": "a", "retries": 21}`, `retries: 21 is out of range; use 0 to 20`},
	{"retry-interval", `{"type": "exec", "script": "a", "retry-interval": "x"}`, `retry-interval: "x" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`},
	{"another thing in braces", `{"type": "http", "url": "http://lb/{tenant}/{host}"}`, `url: "http://lb/{tenant}/{host}" has braces that are not {host}, for which alone something is put in; write a brace of the address itself as %7B or %7D`},
	{"a brace alone", `{"type": "http", "url": "http://lb/{host"}`, `url: "http://lb/{host" has braces that are not {host}, for which alone something is put in; write a brace of the address itself as %7B or %7D`},
	{"no address", `{"type": "http", "url": "/{host}"}`, `url: "/host" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
}

func TestWrongRollouts(t *testing.T) {
	t.Parallel()
	check := func(name, body, problem string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeRollout("", []byte(body))
			if errText(err) != problem {
				t.Fatalf("got %+v, %v\nwant %s", got, err, problem)
			}
		})
	}
	for _, row := range wrongRollouts {
		check(row.name, row.body, row.problem)
	}
	for _, row := range wrongChecks {
		check("check: "+row.name, `{"checks": {"after-host": [`+row.body+`]}}`, "checks.after-host[0]."+row.problem)
	}
	for _, row := range wrongHooks {
		check("hook: "+row.name, `{"hooks": {"undrain": `+row.body+`}}`, "hooks.undrain."+row.problem)
	}
}

// TestValuesThatNoBodyHas checks what only a program can hand to Validate.
func TestValuesThatNoBodyHas(t *testing.T) {
	t.Parallel()
	r := Rollout{
		Checks: &RolloutChecks{Fleet: []Check{{Type: "http", URL: "http://a/", Status: -1, Passes: -1}}},
		Hooks:  &RolloutHooks{Drain: &Hook{Type: "exec", Script: "a", Retries: new(-1)}},
	}
	want := "checks.fleet[0].passes: -1 is out of range; use 1 to 100; checks.fleet[0].status: -1 is out of range; use 100 to 599; hooks.drain.retries: -1 is out of range; use 0 to 20"
	if found := r.Validate(); found.Error() != want {
		t.Fatalf("problems %q; want %q", found, want)
	}
}

func TestRolloutBounds(t *testing.T) {
	t.Parallel()
	sized := func(stages, checks, hosts, labels int) Rollout {
		r := Rollout{Checks: &RolloutChecks{}, Exempt: &Match{Labels: map[string]string{}, Roles: []string{"r"}}}
		for i := range stages {
			r.Stages = append(r.Stages, Stage{Name: fmt.Sprint("s", i), Match: &Match{Roles: []string{"r"}}})
		}
		for range checks {
			r.Checks.BeforeHost = append(r.Checks.BeforeHost, Check{Type: "tcp", Address: "a:1"})
		}
		for i := range hosts {
			r.Exempt.Hosts = append(r.Exempt.Hosts, fmt.Sprint("h", i))
		}
		for i := range labels {
			r.Exempt.Labels[fmt.Sprint("l", i)] = "x"
		}
		return r
	}
	if found := sized(100, 20, 10000, 50).Validate(); len(found) > 0 {
		t.Errorf("the most of everything: %v", found)
	}
	want := []string{
		"stages: 101 entries are too many; use at most 100", "exempt.hosts: 10001 entries are too many; use at most 10000",
		"exempt.labels: 51 entries are too many; use at most 50", "checks.before-host: 21 entries are too many; use at most 20",
	}
	if found := sized(101, 21, 10001, 51).Validate(); found.Error() != strings.Join(want, "; ") {
		t.Errorf("problems %q; want %q", found, want)
	}
}
