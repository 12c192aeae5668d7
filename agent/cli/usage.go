package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// habits are the commands of other programs that people type here, and what does the same.
var habits = map[string]string{
	"help":       "add --help to a command",
	"version":    "osupgrade-agent --version prints the version",
	"plan":       "osupgrade-agent start --dry-run shows what a run would do, osupgrade-agent apply --dry-run what a file would change",
	"preflight":  "osupgrade-agent start --dry-run shows what a run would do and what is missing",
	"freeze":     "a freeze is an event of a calendar of the kind freeze: osupgrade-agent edit or apply declares it; osupgrade-agent pause holds the current run",
	"upgrade":    "osupgrade-agent start starts a run, which upgrades hosts",
	"run":        "osupgrade-agent start starts a run, osupgrade-agent runs lists them",
	"list":       "osupgrade-agent get lists what is declared, osupgrade-agent hosts the hosts, and osupgrade-agent runs the runs",
	"show":       "osupgrade-agent get shows what is declared, osupgrade-agent hosts HOST a host, and osupgrade-agent runs ID a run",
	"create":     "osupgrade-agent apply -f FILE declares the objects of a file, osupgrade-agent credentials makes tokens and keys",
	"step":       "a step is a stage of the rollout: osupgrade-agent edit rollout declares it, osupgrade-agent step-check tries out its scripts",
	"token":      "osupgrade-agent credentials token makes one, on the machine of the site",
	"join-token": "osupgrade-agent credentials join-token makes and lists them, on the machine of the site",
}

// instead says what to type in place of a command that does not exist; empty if nothing fits. For a kind of
// object, such as releases, it names the commands that show and declare it.
func instead(word string) string {
	for _, k := range kinds {
		switch word {
		case k.plural, string(k.name):
			if k.plural == "" {
				return fmt.Sprintf("osupgrade-agent get %s prints it, osupgrade-agent edit %s changes it", k.name, k.name)
			}
			return fmt.Sprintf("osupgrade-agent get %s lists them, osupgrade-agent apply -f FILE declares them", k.plural)
		}
	}
	return cmp.Or(habits[word], habits[strings.TrimSuffix(word, "s")])
}

// explainUse tells what is wrong with arguments that could not be parsed, and whose help says
// what is right.
func explainUse(err error) string {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return fmt.Sprintf("%v\nSee %s --help.", err, programName)
	}
	at, text := typedCommand(parse.Context), err.Error()
	rest := unparsed(parse.Context)
	switch {
	case len(rest) == 0:
		text = missingFlags(parse.Context, text)
	case !at.Leaf() && rest[0] == "help":
		text, at = "there is no command help; "+habits["help"], below(at, rest[1:])
	case at.Parent == nil && instead(rest[0]) != "":
		text = fmt.Sprintf("there is no command %s; %s", rest[0], instead(rest[0]))
	case at.Leaf() && len(at.Positional) == 0 && !strings.HasPrefix(rest[0], "-") && takes(parse.Context, "environment"):
		text += "; to name an environment: --environment " + rest[0]
	default:
		text = negativeNumber(parse.Context, rest, text)
	}
	return fmt.Sprintf("%s\nSee %s --help.", text, at.FullPath())
}

// emptyName refuses a flag that names an object and has an empty value, usually a variable of a script
// that is not set. Read as no flag at all, it would choose everything, such as all hosts. Flags that name
// an object are those with a completion.
func emptyName(c *kong.Context) error {
	for _, p := range c.Path {
		if p.Flag == nil || p.Resolved || p.Flag.Tag.Get("complete") == "" {
			continue
		}
		if typed := p.Flag.Target; typed.IsZero() || typed.Kind() == reflect.Slice && typed.Len() == 0 {
			return misusedf("--%s is empty; give it a value, or leave it out", p.Flag.Name)
		}
	}
	return nil
}

// typedCommand returns the command that was typed, as far as it could be parsed.
func typedCommand(c *kong.Context) *kong.Node {
	at := c.Model.Node
	for _, p := range c.Path {
		if node := p.Node(); node != nil {
			at = node
		}
	}
	return at
}

// unparsed returns the arguments that begin with the one that could not be parsed; nothing if
// all could.
func unparsed(c *kong.Context) []string {
	if c.Error == nil {
		return nil
	}
	return c.Path[len(c.Path)-1].Remainder()
}

// takes reports whether the command that was typed has a flag.
func takes(c *kong.Context, flag string) bool {
	return slices.ContainsFunc(c.Flags(), func(f *kong.Flag) bool { return f.Name == flag })
}

// below returns the command below another that words name, as far as they do.
func below(at *kong.Node, words []string) *kong.Node {
	for _, word := range words {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word && !n.Hidden })
		if i < 0 {
			break
		}
		at = at.Children[i]
	}
	return at
}

// negativeNumber tells of a number below 0, which the parser takes for a flag; otherwise it
// returns the text.
func negativeNumber(c *kong.Context, rest []string, text string) string {
	if len(rest) < 2 {
		return text
	}
	for _, f := range c.Flags() {
		if number, err := strconv.Atoi(rest[1]); rest[0] == "--"+f.Name && !f.IsBool() && err == nil && number < 0 {
			return fmt.Sprintf("%s: %s is invalid; no flag takes a number below 0", rest[0], rest[1])
		}
	}
	return text
}

// missingFlags tells of each flag that is missing which variable sets it too, and how to get a
// token if that is missing as well; if none is missing it returns the text.
func missingFlags(c *kong.Context, text string) string {
	if !strings.HasPrefix(text, "missing flags: ") {
		return text
	}
	var missing []string
	for _, f := range c.Flags() {
		if !f.Required || f.Set {
			continue
		}
		one := f.Summary()
		if len(f.Envs) > 0 {
			one += fmt.Sprintf(" (or the variable %s)", strings.Join(f.Envs, " or "))
		}
		missing = append(missing, one)
	}
	slices.Sort(missing)
	text = "missing flags: " + strings.Join(missing, ", ")
	if needsToken(c.Flags()) {
		text += "; besides, " + errNoToken.Error()
	}
	return text
}

// needsToken reports whether a command calls the REST API for a tenant with a token, and there
// is none.
func needsToken(flags []*kong.Flag) bool {
	forTenant, byToken := false, false
	for _, f := range flags {
		switch f.Name {
		case "tenant":
			forTenant = f.Required
		case "token-file":
			byToken = !f.Set && slices.Contains(f.Envs, "OSUPGRADE_TOKEN_FILE")
		case "client-cert-file":
			if f.Set {
				return false
			}
		case "context":
			if f.Set {
				return false
			}
		case "data":
			return false // On the machine of the site root needs none.
		}
	}
	return forTenant && byToken && strings.TrimSpace(os.Getenv("OSUPGRADE_TOKEN")) == ""
}
