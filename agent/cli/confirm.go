package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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
	Yes bool `help:"Do it without asking, though it costs a run or a host of it." short:"y"`
}

var errNotConfirmed = errors.New("nothing was done: the answer was not yes")

// confirm asks about what a command would cost; empty asks nothing.
func (c *confirming) confirm(person *console, cost string) error {
	switch {
	case cost == "" || c.Yes:
		return nil
	case !person.terminal():
		return misusedf("nothing was done: %s; add --yes to do it", cost)
	}
	return askYes(person, cost)
}

func askYes(person *console, cost string) error {
	_, _ = fmt.Fprintf(person.err, "%s. Type yes to do it: ", strings.ToUpper(cost[:1])+cost[1:])
	answer, err := bufio.NewReader(person.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if strings.TrimSpace(strings.ToLower(answer)) != "yes" {
		return errNotConfirmed
	}
	return nil
}

// underWay returns the run under way; nil when there is none.
func underWay(ctx context.Context, api *client.Client, tenant string) (*v1.Run, error) {
	runs, err := api.Runs(ctx, tenant, v1.RunFilter{Limit: 1})
	if err != nil || len(runs) == 0 || runs[0].Finished() {
		return nil, err
	}
	current, err := api.Run(ctx, tenant, runs[0].ID) // A list may come without hosts.
	if client.Missing(err) {
		return nil, nil
	}
	return &current, err
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
	return fmt.Sprintf("this ends run %d: %d upgraded, %d under way, %d not begun are left as they are", r.ID, upgraded, busy, left)
}

// costOfHost says what it costs a run to lose a host; empty when that is nothing. loses
// reports whether the request takes the host from the run at all.
func costOfHost(r v1.Run, host string, loses func(v1.RunHost) bool) string {
	for _, h := range r.Hosts {
		if h.Hostname == host && !run.Status(h.Status).Final() && loses(h) {
			return fmt.Sprintf("host %s is %s in run %d, which will not upgrade it", host, h.Status, r.ID)
		}
	}
	return ""
}

// byForget reports that a deletion takes every host from a run.
func byForget(v1.RunHost) bool { return true }

// byRelease reports whether a release takes a host from a run: the site refuses to
// release one that holds no slot.
func byRelease(h v1.RunHost) bool { return h.Slot != nil || h.SlotReason != "" }
