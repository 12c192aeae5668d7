package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// console is where a person is asked: apart from the output, which a program may
// read.
type console struct {
	in  io.Reader
	err io.Writer
}

// terminal reports whether there is a person to ask.
func (c *console) terminal() bool {
	file, ok := c.in.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// confirming is the common part of the commands that may cost a run.
type confirming struct {
	Yes bool `help:"Do not ask for confirmation." short:"y"`
}

var errNotConfirmed = errors.New("nothing was done, because the answer was not yes")

// confirm asks about what a command would cost; empty asks nothing.
func (c *confirming) confirm(person *console, cost string) error {
	switch {
	case cost == "" || c.Yes:
		return nil
	case !person.terminal():
		return misusedf("%s To go ahead, add --yes.", sentence(cost))
	}
	return askYes(person, cost)
}

// sentence is a text with a capital and a full stop, or the question mark that it has.
func sentence(said string) string {
	if strings.HasSuffix(said, "?") {
		return strings.ToUpper(said[:1]) + said[1:]
	}
	return strings.ToUpper(said[:1]) + strings.TrimSuffix(said[1:], ".") + "."
}

func askYes(person *console, cost string) error {
	_, _ = fmt.Fprintf(person.err, "%s Type yes to go ahead: ", sentence(cost))
	answer, err := bufio.NewReader(person.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if strings.TrimSpace(strings.ToLower(answer)) != "yes" {
		return errNotConfirmed
	}
	return nil
}

// underWay returns the run under way that a selector chooses; nil when there is none, or more than
// one.
func underWay(ctx context.Context, api *client.Client, tenant string, selector v1.Selector) (*v1.Run, error) {
	filter := v1.RunFilter{Selector: selector}
	if !selector.IsZero() { // An environment and a host have one run at a time.
		filter.Limit = 1
	}
	runs, err := api.Runs(ctx, tenant, filter)
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, v1.Run.Finished)
	if len(runs) != 1 {
		return nil, nil
	}
	current, err := api.Run(ctx, tenant, runs[0].ID) // A list may come without hosts.
	if client.Missing(err) {
		return nil, nil
	}
	return &current, err
}

// allUnderWay returns the runs under way of all environments.
func allUnderWay(ctx context.Context, api *client.Client, tenant string) ([]v1.Run, error) {
	runs, err := api.Runs(ctx, tenant, v1.RunFilter{Limit: v1.MaxRuns})
	return slices.DeleteFunc(runs, v1.Run.Finished), err
}

// costOfAll says what it costs to abort some runs; empty when there are none.
func costOfAll(runs []v1.Run) string {
	if len(runs) == 0 {
		return ""
	}
	var names []string
	for _, r := range runs {
		names = append(names, fmt.Sprintf("run %d of %s", r.ID, environmentOf(r)))
	}
	return "this aborts " + text.Count(len(runs), "run", "runs") + ": " + someOf(names)
}

// costOfAbort says what an abort costs; empty for one that changes nothing.
func costOfAbort(r v1.Run, now bool) string {
	if r.Aborted != "" && !now {
		return ""
	}
	upgraded, busy, left := 0, 0, 0
	for _, h := range r.Hosts {
		switch status := run.Status(h.Status); {
		case status == run.Upgraded:
			upgraded++
		case status == run.Pending, status == run.Prepared:
			left++
		case !status.Final():
			busy++
		}
	}
	step := stepInProgress(r)
	if now {
		if step != "" {
			step = "; step " + step + " is left as it is"
		}
		return fmt.Sprintf("this ends run %d at once: %d upgraded, %d being upgraded and %d not started stay as they are%s", r.ID, upgraded, busy, left, step)
	}
	if step != "" {
		step = "; step " + step + " finishes first"
	}
	return fmt.Sprintf("this ends run %d: %d upgraded, %d being upgraded finish first, %d not started keep what they have%s", r.ID, upgraded, busy, left, step)
}

// costOfHost says what it costs a run to lose a host by what is done to it, such as
// Releasing; empty when that is nothing.
func costOfHost(r v1.Run, host, doing string) string {
	for _, h := range r.Hosts {
		if h.Hostname == host && !run.Status(h.Status).Final() {
			state := "is being upgraded"
			if s := run.Status(h.Status); s == run.Pending || s == run.HostPreparing || s == run.Prepared {
				state = "is not upgraded yet"
			}
			return fmt.Sprintf("Host %s %s. %s it makes run %d give it up", host, state, doing, r.ID)
		}
	}
	return ""
}
