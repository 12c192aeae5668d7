//go:build !worker

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// devCommand runs a site with simulated hosts.
type devCommand struct {
	Hosts      int      `help:"Number of simulated hosts: h01, h02, ..." default:"3" env:"OSUPGRADE_HOSTS"`
	Label      []string `help:"Label of a simulated host (repeatable)." placeholder:"HOST:KEY=VALUE"`
	Data       string   `help:"Folder for all data; when restarted, the site continues from it." required:"" type:"path" env:"OSUPGRADE_DATA" placeholder:"DIR"`
	Listen     string   `help:"Where the REST API listens; port 0 takes any free port." default:"127.0.0.1:4646" env:"OSUPGRADE_LISTEN"`
	ActionTime length   `help:"How long one simulated action takes." default:"2s" env:"OSUPGRADE_ACTION_TIME"`
	tracesFlags
}

// garbagePercent is GOGC, in percent of the memory in use. Go's default of 100 takes 90 MiB more for
// a thousand hosts in one process; this costs a few percent more processor time.
const garbagePercent = 50

// Run implements the command.
func (c *devCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger, program version) error {
	if c.Hosts < 0 || c.Hosts > 10_000 {
		return misusedf("--hosts %d is out of range; use 0 to 10000", c.Hosts)
	}
	if err := checkAddress("listen", c.Listen); err != nil {
		return misused(err)
	}
	labels, err := hostLabels(c.Label, c.Hosts)
	if err != nil {
		return misused(err)
	}
	traces, err := c.traces()
	if err != nil {
		return misused(err)
	}
	defer hangups(func() { log.Info("SIGHUP is ignored") })()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	d, err := dev.Start(ctx, dev.Options{Dir: c.Data, Hosts: c.Hosts, Labels: labels, ActionTime: time.Duration(c.ActionTime), Listen: c.Listen, Traces: traces, Version: string(program), Log: log})
	if err != nil {
		return err
	}
	env := filepath.Join(c.Data, "dev.env")
	if err := d.WriteEnv(env); err != nil {
		return errors.Join(err, d.Close())
	}
	example := filepath.Join(c.Data, "example.yaml")
	if err := dev.WriteExample(example); err != nil {
		return errors.Join(err, d.Close())
	}
	_, _ = fmt.Fprintf(out, "The agent is ready at %s with %s of application %s.\nIn another terminal, from here to a run:\n"+
		"  . %s\n  %[5]s apply -f %[6]s\n  %[5]s start --override-window --reason \"first run\" --wait\n",
		d.Endpoint, text.Count(c.Hosts, "simulated host", "simulated hosts"), dev.Application, shellWord(env), shellWord(ownPath()), shellWord(example))
	return errors.Join(wait(ctx, d.Failed()), d.Close())
}

// hostLabels returns the labels of each of some simulated hosts. Each text is such as
// h01:shop=basel.
func hostLabels(texts []string, hosts int) (map[string]map[string]string, error) {
	given := map[string][]string{}
	for _, entry := range texts {
		host, label, found := strings.Cut(entry, ":")
		if !found || !dev.HasHost(hosts, host) {
			return nil, fmt.Errorf("label: %.200q names none of the %s; use HOST:KEY=VALUE, such as h01:shop=basel", entry, text.Count(hosts, "host", "hosts"))
		}
		given[host] = append(given[host], label)
	}
	all := map[string]map[string]string{}
	for host, texts := range given {
		labels, err := parseLabels(texts)
		if err != nil {
			return nil, err
		}
		all[host] = labels
	}
	return all, nil
}

// ownPath is how this program is called from any folder.
func ownPath() string {
	name := os.Args[0]
	if !strings.Contains(name, "/") {
		return name
	}
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

// plainWord is text that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shellWord writes a text so that a shell takes it for one word.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// wait returns when ctx ends, which is no error, or a part has stopped.
func wait(ctx context.Context, failed <-chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
