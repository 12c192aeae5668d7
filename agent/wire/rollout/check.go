package rollout

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// The types of checks and hooks.
const (
	Exec    = "exec"
	HTTP    = "http"
	TCP     = "tcp"
	Systemd = "systemd"
	Disk    = "disk"
	Units   = "units"
	Load    = "load"
	// TimeSync is whether the clock is synchronised.
	TimeSync = "time-sync"
	// Prometheus is what a query returns, Hosts whether hosts are present and alike. Both are
	// asked at the site.
	Prometheus = "prometheus"
	Hosts      = "hosts"
)

// Where a hook runs.
const (
	OnHost = "host"
	OnSite = "site"
)

// Kind is a type of check or of hook, T being Check or Hook. A further type of
// check is an entry of CheckKinds, a member of Check for what is its own, and a
// probe in package check.
type Kind[T any] struct {
	Type string
	// Does says what it does, for people.
	Does string
	// Members are those that only some types have. The first says what it looks
	// at.
	Members []Member
	// AtSite says that it can be asked at the site only.
	AtSite bool
	// inspect checks what the tags of the members cannot say.
	inspect func(i *inspector, field string, of T)
}

// Member is a member that only some types have, and what it is, for people.
type Member struct{ Name, Is string }

// CheckKinds are the types of checks.
var CheckKinds = []Kind[Check]{
	{
		Type: Exec, Does: "runs a script",
		Members: []Member{
			{"script", "the name of a script in the folder of the worker's option `--checks`; for a fleet check, of the option `--checks` of `serve`"},
			{"args", "the arguments of the script"},
		},
		inspect: func(i *inspector, field string, c Check) { i.script(field, c.Script, c.Args) },
	},
	{
		Type: HTTP, Does: "requests a URL",
		Members: []Member{
			{"url", "the URL to get, with `http` or `https`"},
			{"status", "the status that passes, from `100` to `599`; any of 200 to 299 by default"},
		},
		inspect: func(i *inspector, field string, c Check) {
			if strings.Contains(c.URL, "{host}") {
				i.wrong(field+".url", c.URL, "has {host}, which only a hook's may have; name the host, such as 127.0.0.1")
				return
			}
			i.url(field+".url", c.URL)
		},
	},
	{
		Type: TCP, Does: "opens a TCP connection",
		Members: []Member{{"address", "host and port, such as `127.0.0.1:22`"}},
		inspect: func(i *inspector, field string, c Check) { i.address(field+".address", c.Address) },
	},
	{
		Type: Systemd, Does: "checks that a unit is active",
		Members: []Member{{"unit", "the unit that must be active, such as `nginx.service`"}},
		inspect: func(i *inspector, field string, c Check) { i.unit(field+".unit", c.Unit) },
	},
	{
		Type: Disk, Does: "checks the free space of a file system",
		Members: []Member{
			{"path", "a path on the file system, such as `/var`"},
			{"min-free", "how much must be free, such as `500MB`, `2GiB` or `10%`"},
		},
		inspect: func(i *inspector, field string, c Check) {
			if !path.IsAbs(c.Path) || len(c.Path) > maxArg || !names.Printable(c.Path) {
				i.wrong(field+".path", c.Path, `is not an absolute path; use one that begins with "/", such as /var`)
			}
			if _, _, err := c.MinFree.parse(); err != nil {
				i.add(field+".min-free", string(c.MinFree), err.Error())
			}
		},
	},
	{
		Type: Units, Does: "checks that no systemd unit has failed, but for those that had failed before the upgrade of the run",
		Members: []Member{{"ignore", "the units whose failure does not count, such as `motd-news.service`"}},
		inspect: func(i *inspector, field string, c Check) {
			if !i.limit(field+".ignore", len(c.Ignore), maxArgs) {
				return
			}
			for n, unit := range c.Ignore {
				i.unit(fmt.Sprintf("%s.ignore[%d]", field, n), unit)
			}
		},
	},
	{
		Type: Load, Does: "checks the load average of the last minute",
		Members: []Member{{"max-load", "the highest load in percent of the processors, from `1` to `100000`, such as `150` for 6 on a machine with 4"}},
		inspect: func(i *inspector, field string, c Check) {
			if c.MaxLoad == 0 {
				i.wrong(field+".max-load", "", "is missing; use a percentage of the processors, such as 150")
			}
		},
	},
	{
		Type: TimeSync, Does: "checks that the clock is synchronised, as the kernel knows from NTP or chrony",
		Members: []Member{{"max-error", "by how much the clock may be wrong by its own estimate, from `1s` to `1h`; any error by default"}},
		inspect: func(*inspector, string, Check) {},
	},
	{
		Type: Prometheus, Does: "asks Prometheus, at the site: the query must return nothing, or only values within the bounds", AtSite: true,
		Members: []Member{
			{"query", "the expression, such as `ALERTS{severity=\"page\",alertstate=\"firing\"}`"},
			{"url", "the URL of the server, such as `http://prometheus:9090`; a token for it is in a file, and goes over `https` only"},
			{"below", "a number such as `0.8`: the query must return something, and each value must be below it"},
			{"above", "a number: the query must return something, and each value must be above it"},
		},
		inspect: func(i *inspector, field string, c Check) {
			i.query(field+".query", c.Query)
			i.url(field+".url", c.URL)
			i.bounds(field, c.Below, c.Above)
		},
	},
	{
		Type: Hosts, Does: "checks, at the site, that hosts are present and have the same version", AtSite: true,
		Members: []Member{
			{"expected", "the names of the hosts that must be present; by default all hosts of the environment"},
			{"same-version", "the package of which all these hosts must have the same version, such as `linux-image-amd64`"},
		},
		inspect: func(i *inspector, field string, c Check) {
			i.each(field+".expected", c.Expected, maxHosts, names.ValidHost, notAHost)
			if strings.TrimSpace(c.SameVersion) != c.SameVersion || len(c.SameVersion) > maxPackage || !names.Printable(c.SameVersion) {
				i.wrong(field+".same-version", c.SameVersion, fmt.Sprintf("is not the name of a package; use at most %d printable characters without blanks at the ends", maxPackage))
			}
		},
	},
}

// Check is one check. Which members count depends on Type, as CheckKinds says.
type Check struct {
	// Name is for people; its default is the type and what it looks at.
	Name   string   `json:"name,omitempty"`
	Type   string   `json:"type"`
	Script string   `json:"script,omitempty"`
	Args   []string `json:"args,omitempty"`
	URL    string   `json:"url,omitempty"`
	// Status is the HTTP status that passes; 0 means any of 200 to 299.
	Status  int    `json:"status,omitempty" within:"100 599"`
	Address string `json:"address,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Path    string `json:"path,omitempty"`
	MinFree Free   `json:"min-free,omitempty"`
	// Ignore are units.
	Ignore []string `json:"ignore,omitempty"`
	// MaxLoad is in percent of the processors.
	MaxLoad  int  `json:"max-load,omitempty" within:"1 100000"`
	MaxError Span `json:"max-error,omitempty" within:"1s 1h"`
	// Query is an expression of Prometheus. Below and Above bound what it returns; without
	// either it must return nothing.
	Query string `json:"query,omitempty"`
	Below Number `json:"below,omitempty"`
	Above Number `json:"above,omitempty"`
	// Expected are hosts, SameVersion is a package.
	Expected    []string `json:"expected,omitempty"`
	SameVersion string   `json:"same-version,omitempty"`
	// Passes is how often in a row it must pass, Interval the wait between tries, and
	// Timeout the longest time for that.
	Passes   int  `json:"passes,omitempty" default:"1" within:"1 100"`
	Interval Span `json:"interval,omitempty" default:"5s" within:"1s 1d"`
	Timeout  Span `json:"timeout,omitempty" default:"1m" within:"1s 1d"`
}

func (c Check) inspect(i *inspector, field string) {
	if !validTitle(c.Name) {
		i.wrong(field+".name", c.Name, "is not a name; use at most 100 printable characters without blanks at the ends")
	}
	inspectKind(i, field, c.Type, c, CheckKinds)
	i.enough(field, rewritten(c, setDefault))
}

// enough notes a check that cannot pass often enough in its time.
func (i *inspector) enough(field string, c Check) {
	interval, timeout := c.Interval.Duration(), c.Timeout.Duration()
	if c.Interval.unreadable() != nil || c.Timeout.unreadable() != nil || c.Passes < 2 || c.Passes > 100 || interval > 24*time.Hour {
		return
	}
	if needs := interval * time.Duration(c.Passes-1); needs >= timeout {
		i.wrong(field+".timeout", string(c.Timeout), fmt.Sprintf("is too short for %d passes that are %s apart; use more than %s", c.Passes, c.Interval, window.FormatDuration(needs)))
	}
}

// complete gives a check its name: the type and what it looks at, cut to what a
// name may be. Of a URL it is what has no secret in it.
func (c *Check) complete() {
	if c.Name != "" {
		return
	}
	name := c.Type + " "
	if kind, ok := kindOf(CheckKinds, c.Type); ok {
		first := kind.Members[0].Name
		looksAt := memberOf(*c, first).text()
		if u, err := url.Parse(c.URL); err == nil && c.URL != "" && first == "url" {
			looksAt = u.Scheme + "://" + u.Host + u.EscapedPath()
		}
		if first == "query" { // It may have several lines.
			looksAt = strings.Join(strings.Fields(looksAt), " ")
		}
		name += looksAt
	}
	cut := []rune(name)
	c.Name = strings.TrimSpace(string(cut[:min(len(cut), maxTitle)]))
}

// HookKinds are the types of hooks.
var HookKinds = []Kind[Hook]{
	{
		Type: Exec, Does: "runs a script, which finds the host's name in `OSUPGRADE_HOST`",
		Members: []Member{
			{"script", "the name of a script in the folder of the worker's option `--checks`; at the site, of the option `--checks` of `serve`"},
			{"args", "the arguments of the script"},
		},
		inspect: func(i *inspector, field string, h Hook) { i.script(field, h.Script, h.Args) },
	},
	{
		Type: HTTP, Does: "calls a URL",
		Members: []Member{
			{"url", "the URL to call; `{host}` in it stands for the host's name"},
			{"method", "the method, such as `PUT`; `POST` by default"},
		},
		inspect: func(i *inspector, field string, h Hook) {
			address := strings.ReplaceAll(h.URL, "{host}", "host")
			if strings.ContainsAny(address, "{}") {
				i.wrong(field+".url", h.URL, "has braces that are not {host}, for which alone something is put in; write a brace of the address itself as %7B or %7D")
				return
			}
			i.url(field+".url", address)
		},
	},
}

// Hook is one hook. Which members count depends on Type, as HookKinds says.
type Hook struct {
	Type   string   `json:"type"`
	Script string   `json:"script,omitempty"`
	Args   []string `json:"args,omitempty"`
	URL    string   `json:"url,omitempty"`
	// Method is POST by default.
	Method string `json:"method,omitempty" oneof:"GET HEAD POST PUT PATCH DELETE OPTIONS"`
	// On is where it runs.
	On string `json:"on,omitempty" default:"host" oneof:"host site"`
	// Timeout bounds one try. A failed try is repeated up to Retries times, RetryInterval
	// apart.
	Timeout       Span `json:"timeout,omitempty" default:"1m" within:"1s 1d"`
	Retries       *int `json:"retries,omitempty" default:"2" within:"0 20"`
	RetryInterval Span `json:"retry-interval,omitempty" default:"10s" within:"0s 1d"`
}

func (h Hook) inspect(i *inspector, field string) { inspectKind(i, field, h.Type, h, HookKinds) }

func (h *Hook) complete() {
	if h.Type == HTTP && h.Method == "" {
		h.Method = "POST"
	}
}

// Retried is how many tries may follow the first.
func (h Hook) Retried() int {
	if h.Retries == nil {
		return 0
	}
	return *h.Retries
}

func kindOf[T any](kinds []Kind[T], name string) (Kind[T], bool) {
	for _, k := range kinds {
		if k.Type == name {
			return k, true
		}
	}
	return Kind[T]{}, false
}

// inspectKind checks the members that every type has, then those of the type;
// the others must be absent.
func inspectKind[T any](i *inspector, field, kindName string, of T, kinds []Kind[T]) {
	var types []string
	special := map[string]bool{}
	for _, k := range kinds {
		types = append(types, k.Type)
		for _, m := range k.Members {
			special[m.Name] = true
		}
	}
	for member, m := range membersOf(of) {
		if !special[member] {
			i.member(below(field, member), m)
		}
	}
	if !i.choice(field+".type", kindName, types...) {
		return
	}
	kind, _ := kindOf(kinds, kindName)
	var own []string
	for _, m := range kind.Members {
		own = append(own, m.Name)
		delete(special, m.Name)
	}
	for member, m := range membersOf(of) {
		if special[member] && !m.value.IsZero() && m.text() != "" {
			i.wrong(below(field, member), m.text(), fmt.Sprintf("is not of type %s, which takes %s; leave it out", kind.Type, strings.Join(own, " and ")))
		}
	}
	kind.inspect(i, field, of)
	for _, member := range own {
		i.member(below(field, member), memberOf(of, member))
	}
}

const (
	maxTitle  = 100
	maxArgs   = 100
	maxArg    = 4096 // As PATH_MAX of Linux: an argument may be a path.
	maxURL    = 2048
	maxUnit   = 255 // UNIT_NAME_MAX of systemd.
	maxScript = 255 // NAME_MAX of Linux.
	// maxPackage is that of message.MaxPlanName, a name in a plan or a report.
	maxPackage = 512
)

var (
	scriptPattern = text.Pattern(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	// unitPattern is that of systemd.unit(5), without a "-" at the beginning,
	// which systemctl would take for an option.
	unitPattern = text.Pattern(`^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`)
)

// validTitle reports whether text can be shown as what a check is called.
func validTitle(text string) bool {
	return strings.TrimSpace(text) == text && utf8.RuneCountInString(text) <= maxTitle && names.Printable(text)
}

// ValidScript reports whether a rollout may name a script so.
func ValidScript(name string) bool {
	return len(name) <= maxScript && scriptPattern().MatchString(name)
}

func (i *inspector) script(field, name string, args []string) {
	if !ValidScript(name) {
		i.wrong(field+".script", name, `is not the name of a script; use letters, digits, "-", "_" and ".", with no "." or "-" at the beginning and no folder`)
	}
	if !i.limit(field+".args", len(args), maxArgs) {
		return
	}
	for n, arg := range args {
		if len(arg) > maxArg || strings.ContainsRune(arg, 0) {
			i.wrong(fmt.Sprintf("%s.args[%d]", field, n), arg, fmt.Sprintf("is not an argument; use at most %d bytes, none of them zero", maxArg))
		}
	}
}

// url checks an address to call. The text of one with a password is shown nowhere.
func (i *inspector) url(field, text string) {
	if _, rest, found := strings.Cut(text, "://"); found {
		if authority, _, _ := strings.Cut(rest, "/"); strings.Contains(authority, "@") {
			i.add(field, "", "the URL contains a user or a password, which anyone who can read the rollout would see; use a script (type exec) that reads them from a file on its machine")
			return
		}
	}
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || !names.Printable(text) || u.Scheme != "http" && u.Scheme != "https" ||
		!validTarget(u.Hostname()) || !validPort(u.Port(), true) {
		i.wrong(field, text, "is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz")
	}
}

// address checks host:port. It does not use net.SplitHostPort, since this
// package has nothing to do with networks.
func (i *inspector) address(field, text string) {
	host, port := text, ""
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		host, port = text[:colon], text[colon+1:]
	}
	valid := names.ValidHost(host)
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
		valid = bracketed && !names.ValidHost(inner) && validTarget(inner)
	}
	if !valid || !validPort(port, false) {
		i.wrong(field, text, "is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22")
	}
}

// validTarget reports whether text is the name or the address of a host.
func validTarget(text string) bool {
	_, err := netip.ParseAddr(text)
	return names.ValidHost(text) || err == nil && names.Printable(text)
}

func validPort(text string, absent bool) bool {
	if text == "" {
		return absent
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// ValidUnit reports whether name is that of a unit.
func ValidUnit(name string) bool { return len(name) <= maxUnit && unitPattern().MatchString(name) }

func (i *inspector) unit(field, name string) {
	if !ValidUnit(name) {
		i.wrong(field, name, "is not the name of a systemd unit; use one with its type, such as nginx.service")
	}
}
