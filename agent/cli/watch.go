package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// watchCommand follows a run.
type watchCommand struct {
	operator
	ID runID `arg:"" optional:"" help:"Id of the run (default: the one under way, or else the next one)."`
}

// Run implements the command.
func (c *watchCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.Output == "text" && c.ID == 0 {
		_, _ = fmt.Fprintf(out, "Following the runs of tenant %s; Ctrl-C ends this.\n", c.Tenant)
	}
	return follow(ctx, out, &c.operator, api, uint64(c.ID))
}

// follow prints what changes in a run until it ends. id 0 is the run under
// way, or else the next one.
func follow(ctx context.Context, out io.Writer, o *operator, api *client.Client, id uint64) error {
	p := progress{out: out, o: o, id: id, hosts: map[string]string{}}
	err := p.follow(ctx, api)
	switch {
	case p.err != nil:
		return p.err
	case err != nil && ctx.Err() != nil && p.id != 0:
		return errors.New("stopped watching; the run continues")
	case err != nil && ctx.Err() != nil:
		return errors.New("stopped watching; no run has begun")
	case err != nil:
		return err
	case p.last.Result != "completed":
		return errNotCompleted
	}
	return nil
}

// progress turns runs as they change into lines.
type progress struct {
	out   io.Writer
	o     *operator
	id    uint64
	last  v1.Run
	hosts map[string]string
	// waiting is what the run waited for when it was shown last, forecast what it
	// expected.
	waiting, forecast string
	// err is why nothing more could be printed.
	err error
}

// follow returns when the run has ended. Events tell of the newest run alone,
// so a run of the past, and one that a later run has overtaken, is asked for.
func (p *progress) follow(ctx context.Context, api *client.Client) error {
	if p.id != 0 {
		if err := p.ask(ctx, api); err != nil || p.err != nil || p.last.Finished() {
			return err
		}
	}
	if err := api.Watch(ctx, p.o.Tenant, p.see); err != nil || p.err != nil || p.last.Finished() {
		return err
	}
	if err := p.ask(ctx, api); err != nil || p.last.Finished() {
		return err
	}
	return fmt.Errorf("run %d has not ended, though a later one has begun", p.id)
}

func (p *progress) ask(ctx context.Context, api *client.Client) error {
	r, err := api.Run(ctx, p.o.Tenant, p.id)
	if err == nil {
		p.show(r)
	}
	return err
}

// see shows the run that is followed and reports whether there is more to
// come.
func (p *progress) see(r v1.Run) bool {
	switch {
	case p.id == 0 && r.Finished(), r.ID < p.id:
		return true
	case p.id == 0:
		p.id = r.ID
	case r.ID > p.id:
		return false
	}
	p.show(r)
	return p.err == nil && !r.Finished()
}

// show prints what is new.
func (p *progress) show(r v1.Run) {
	if reflect.DeepEqual(r, p.last) {
		return
	}
	p.last = r
	if p.o.Output == "json" {
		p.err = p.o.json(p.out, r)
		return
	}
	if len(p.hosts) == 0 {
		p.line("run %d: %s, not after %s", r.ID, text.Count(len(r.Hosts), "host", "hosts"), r.NotAfter.Format(time.RFC3339))
	}
	for _, h := range r.Hosts {
		if line := hostLine(h); p.hosts[h.Hostname] != line {
			p.hosts[h.Hostname] = line
			p.line("%s  %s", h.Hostname, line)
		}
	}
	if waiting := waitingLine(r); waiting != p.waiting {
		if p.waiting = waiting; waiting != "" {
			p.line("run %d: %s", r.ID, waiting)
		}
	}
	if p.forecast != r.Forecast && !r.Finished() {
		if p.forecast = r.Forecast; p.forecast != "" {
			p.line("run %d: %s", r.ID, p.forecast)
		}
	}
	if r.Finished() {
		p.line("run %d: %s", r.ID, headline(r))
	}
}

// waitingLine says what a run waits for, unless the lines of its hosts say so.
func waitingLine(r v1.Run) string {
	if r.WaitingFor == nil || r.WaitingFor.What == "host" && r.Phase != "open" {
		return ""
	}
	return "waiting for " + r.WaitingFor.What + ": " + r.WaitingFor.Detail
}

func (p *progress) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
}
