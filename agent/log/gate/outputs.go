package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Secrets opens what the site has sealed.
type Secrets interface {
	Open(sealed, purpose string) ([]byte, error)
}

// given are the outputs of the step of a stage, as the log has them.
type given struct{ stage, sealed string }

// noteOutputs notes the outputs of a step that is done. Of the many events of a run only those that
// have some are decoded.
func (c *cache) noteOutputs(r message.Record) {
	if !bytes.Contains(r.Body, []byte(`"outputs"`)) {
		return
	}
	event, err := message.DecodeEvent(r.Body)
	ran, is := event.(message.Ran)
	o := ran.Outcome
	if err != nil || !is || o.Outputs == nil {
		return
	}
	run := c.byRun[o.Run]
	if run == nil || slices.ContainsFunc(run.given, func(g given) bool { return g.stage == o.Stage }) {
		return // A step is done once; the log may be followed again.
	}
	run.given = append(run.given, given{o.Stage, o.Outputs.Sealed})
}

// gave returns the outputs that the steps of a run have given.
func (c *cache) gave(run uint64) []given {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.byRun[run]; of != nil {
		return slices.Clone(of.given)
	}
	return nil
}

// hasOutputs reports whether the hosts of a run may ask for outputs of its steps, or of those that
// earlier runs have done for it. As long as the gate cannot read what opened the run, they may.
func (g *Gate) hasOutputs(ctx context.Context, run uint64) bool {
	if len(g.cache.gave(run)) > 0 {
		return true
	}
	o, err := g.opened(ctx, run)
	return err != nil || len(o.given) > 0
}

// outputs returns the outputs of the steps of a run that are done, and of those that earlier runs have
// done for it, to a member of the run. An error names no value.
func (g *Gate) outputs(ctx context.Context, host, run string) Response {
	if err := g.cache.current(ctx); err != nil {
		return failed(err)
	}
	o, no := g.openedFor(ctx, host, run)
	if o == nil {
		return no
	}
	all := map[string]string{}
	for _, s := range slices.Concat(o.given, g.cache.gave(o.run)) {
		if g.Secrets == nil {
			return refused("this site keeps no secrets")
		}
		body, err := g.Secrets.Open(s.sealed, message.OutputsPurpose(g.Tenant, s.stage))
		if err != nil {
			return failed(fmt.Errorf("cannot open the outputs of step %s: %w", s.stage, err))
		}
		if json.Unmarshal(body, &all) != nil {
			return refused("the outputs of step %s cannot be read", s.stage)
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		return failed(err)
	}
	return Response{Body: body}
}

// Outputs implements log.HostLog.
func (c *Client) Outputs(ctx context.Context, run uint64) (map[string]string, error) {
	r, err := c.ask(ctx, nil, verbOutputs, strconv.FormatUint(run, 10))
	if err != nil {
		return nil, err
	}
	var outputs map[string]string
	if json.Unmarshal(r.Body, &outputs) != nil {
		return nil, fmt.Errorf("cannot read the outputs of the steps of run %d", run)
	}
	return outputs, nil
}
