package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// opening is what the gate needs of the event that has opened a run. The gate reads it from the log
// when somebody asks: it follows the log from the oldest prepare on, and the event comes before that.
type opening struct {
	run uint64
	// release is the text of the release that the run is pinned to; nil if it has none.
	release json.RawMessage
	// given are the outputs of the steps that earlier runs have done for it, in their order; of a
	// rollback those of the steps that it undoes.
	given []given
}

// openedFor returns what opened the run that a host names. It is refused unless that is the host's
// newest run and the host is a member of it.
func (g *Gate) openedFor(ctx context.Context, host, run string) (*opening, Response) {
	id, err := strconv.ParseUint(run, 10, 64)
	if err != nil {
		return nil, refused("%.20q is not the number of a run", run)
	}
	switch newest, err := g.isNewest(ctx, host, id); {
	case err != nil:
		return nil, failed(err)
	case !newest:
		return nil, refused("run %d is not the newest of this host", id)
	case !g.cache.isMember(host, id):
		return nil, refused("this host is no member of run %d", id)
	}
	o, err := g.opened(ctx, id)
	if err != nil {
		return nil, failed(err)
	}
	return o, Response{}
}

// opened returns what opened a run. It reads the log at most once for a run.
func (g *Gate) opened(ctx context.Context, run uint64) (*opening, error) {
	o, environment := g.cache.openingOf(run)
	if o != nil {
		return o, nil
	}
	o, err := g.readOpening(ctx, environment, run)
	if err != nil {
		return nil, fmt.Errorf("cannot read what opened run %d: %w", run, err)
	}
	g.cache.keepOpening(run, o)
	return o, nil
}

// readOpening reads the event that has opened a run: the last one of its environment before its prepare.
func (g *Gate) readOpening(ctx context.Context, environment string, run uint64) (*opening, error) {
	var o *opening
	for seq := run - 1; seq > 0 && o == nil; seq-- {
		if err := g.Log.Read(ctx, seq, seq, func(r message.Record) {
			if r.Kind != message.EventRecord {
				return
			}
			event, err := message.DecodeEvent(r.Body)
			if e, is := event.(message.Opened); err == nil && is && e.Environment == environment {
				o = openingOf(run, e)
			}
		}); err != nil {
			return nil, err
		}
	}
	if o == nil {
		return &opening{run: run}, nil
	}
	return o, nil
}

func openingOf(run uint64, e message.Opened) *opening {
	o := &opening{run: run}
	if e.Release != nil {
		o.release = e.Release.Text
	}
	for _, s := range e.Outputs {
		o.given = append(o.given, given{s.Stage, s.Sealed})
	}
	if e.Reached != nil && e.RollbackOf == 0 {
		for _, s := range e.Reached.Stages {
			if s.Outputs != nil {
				o.given = append(o.given, given{s.Name, s.Outputs.Sealed})
			}
		}
	}
	return o
}

// isMember reports whether a run that this gate knows upgrades a host.
func (c *cache) isMember(host string, run uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.byRun[run]
	return of != nil && of.has(host)
}

// openingOf returns what opened a run, nil while this gate has not read it, and the environment of the run.
func (c *cache) openingOf(run uint64) (o *opening, environment string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.byRun[run]; of != nil {
		return of.opening, of.record.Environment
	}
	return nil, ""
}

// keepOpening keeps what opened a run: all its hosts ask for it.
func (c *cache) keepOpening(run uint64, o *opening) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.byRun[run]; of != nil {
		of.opening = o
	}
}
