package v1

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// The limits of checks and hooks.
const (
	MaxChecks = 20
	maxCheck  = 24 * time.Hour

	maxPasses            = 100
	maxRetries           = 20
	minStatus, maxStatus = 100, 599
)

// member is one that only some types have.
type member struct {
	name, value string
}

// takes lists the members that each type of check, or of hook, has beside
// those that all have.
type takes map[string][]string

var (
	checkTakes = takes{"exec": {"script", "args"}, "http": {"url", "status"}, "tcp": {"address"}, "systemd": {"unit"}, "disk": {"path", "min-free"}}
	hookTakes  = takes{"exec": {"script", "args"}, "http": {"url", "method"}}
)

// strangers notes each member that is there and not of the type.
func (i *inspector) strangers(field, kind string, of takes, members ...member) {
	for _, m := range members {
		own := false
		for _, name := range of[kind] {
			own = own || name == m.name
		}
		if m.value != "" && !own {
			i.wrong(field+"."+m.name, m.value, fmt.Sprintf("is not of type %s, which takes %s; leave it out", kind, strings.Join(of[kind], " and ")))
		}
	}
}

// listed and digits write a member's value for strangers; absent is empty.
func listed(args []string) string { return strings.Join(args, " ") }

func digits(n int) string { return strings.TrimPrefix(strconv.Itoa(n), "0") }

func (i *inspector) checks(field string, checks []Check) {
	if !i.limit(field, len(checks), MaxChecks) {
		return
	}
	for n, c := range checks {
		i.check(fmt.Sprintf("%s[%d]", field, n), c)
	}
}

func (i *inspector) check(field string, c Check) {
	if !validTitle(c.Name) {
		i.wrong(field+".name", c.Name, "is not a name; use at most 100 printable characters without blanks at the ends")
	}
	i.number(field+".passes", c.Passes, 1, maxPasses)
	i.span(field+".interval", c.Interval, time.Second, maxCheck)
	i.span(field+".timeout", c.Timeout, time.Second, maxCheck)
	i.enough(field, c.withDefaults())
	if !i.choice(field+".type", c.Type, "exec", "http", "tcp", "systemd", "disk") {
		return
	}
	i.strangers(field, c.Type, checkTakes, member{"script", c.Script}, member{"args", listed(c.Args)}, member{"url", c.URL},
		member{"status", digits(c.Status)}, member{"address", c.Address}, member{"unit", c.Unit}, member{"path", c.Path}, member{"min-free", c.MinFree})
	switch c.Type {
	case "exec":
		i.script(field, c.Script, c.Args)
	case "http":
		if strings.Contains(c.URL, "{host}") {
			i.wrong(field+".url", c.URL, "has {host}, which only a hook's may have; name the host, such as 127.0.0.1")
		} else {
			i.url(field+".url", c.URL)
		}
		i.number(field+".status", c.Status, minStatus, maxStatus)
	case "tcp":
		i.address(field+".address", c.Address)
	case "systemd":
		i.unit(field+".unit", c.Unit)
	case "disk":
		i.disk(field, c.Path, c.MinFree)
	}
}

// enough notes a check that cannot pass often enough in its time.
func (i *inspector) enough(field string, c Check) {
	interval, err := window.ParseDuration(c.Interval)
	timeout, err2 := window.ParseDuration(c.Timeout)
	if err != nil || err2 != nil || c.Passes < 2 || c.Passes > maxPasses || interval > maxCheck {
		return
	}
	if needs := interval * time.Duration(c.Passes-1); needs >= timeout {
		i.wrong(field+".timeout", c.Timeout, fmt.Sprintf("is too short for %d passes that are %s apart; use more than %s", c.Passes, c.Interval, window.FormatDuration(needs)))
	}
}

func (i *inspector) hook(field string, h *Hook) {
	if h == nil {
		return
	}
	i.option(field+".on", h.On, "host", "site")
	i.span(field+".timeout", h.Timeout, time.Second, maxCheck)
	i.span(field+".retry-interval", h.RetryInterval, 0, maxCheck)
	if h.Retries != nil {
		i.number(field+".retries", *h.Retries, 0, maxRetries)
	}
	if !i.choice(field+".type", h.Type, "exec", "http") {
		return
	}
	i.strangers(field, h.Type, hookTakes, member{"script", h.Script}, member{"args", listed(h.Args)}, member{"url", h.URL}, member{"method", h.Method})
	if h.Type == "exec" {
		i.script(field, h.Script, h.Args)
		return
	}
	if address := strings.ReplaceAll(h.URL, "{host}", "host"); strings.ContainsAny(address, "{}") {
		i.wrong(field+".url", h.URL, "has braces that are not {host}, for which alone something is put in; write a brace of the address itself as %7B or %7D")
	} else {
		i.url(field+".url", address)
	}
	i.option(field+".method", h.Method, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
}
