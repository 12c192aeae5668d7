package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// release returns the text of the release that a run is pinned to, to a member of it. The text is
// in the event that has opened the run, so that it stays what it was.
func (g *Gate) release(ctx context.Context, host, run string) Response {
	id, err := strconv.ParseUint(run, 10, 64)
	if err != nil {
		return refused("%.20q is not the number of a run", run)
	}
	if newest, err := g.isNewest(ctx, host, id); err != nil {
		return failed(err)
	} else if !newest {
		return refused("run %d is not the newest of this host", id)
	}
	text, member := g.cache.text(host, id)
	switch {
	case !member:
		return refused("this host is no member of run %d, or the run has no release", id)
	case text == nil:
		switch text, err = g.openedText(ctx, id); {
		case err != nil:
			return failed(err)
		case text == nil:
			return refused("the log does not have the release of run %d", id)
		}
		g.cache.keepText(id, text)
	}
	return Response{Body: text}
}

// openedText reads the text of the release of a run from the event that has opened the run: the
// last one of its environment before its prepare. It is nil if the log has none.
func (g *Gate) openedText(ctx context.Context, run uint64) (text json.RawMessage, err error) {
	environment := g.cache.environment(run)
	for seq := run - 1; seq > 0; seq-- {
		var opened *message.Opened
		if err := g.Log.Read(ctx, seq, seq, func(r message.Record) {
			if r.Kind != message.EventRecord {
				return
			}
			event, err := message.DecodeEvent(r.Body)
			if o, ok := event.(message.Opened); err == nil && ok && o.Environment == environment {
				opened = &o
			}
		}); err != nil {
			return nil, fmt.Errorf("cannot read what opened run %d: %w", run, err)
		}
		if opened != nil && opened.Release != nil {
			return opened.Release.Text, nil
		}
		if opened != nil {
			break
		}
	}
	return nil, nil
}

// text returns the text of the release of a run; nil while this gate has not read it. member is
// false for a host that the run does not upgrade, and for a run without a release.
func (c *cache) text(host string, run uint64) (text json.RawMessage, member bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.byRun[run]
	if of == nil || of.record.Release == "" || !of.has(host) {
		return nil, false
	}
	return of.release, true
}

// keepText keeps the text of the release of a run, for which all its hosts ask.
func (c *cache) keepText(run uint64, text json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.byRun[run]; of != nil {
		of.release = text
	}
}

// environment returns the environment of a run that this gate knows.
func (c *cache) environment(run uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.byRun[run]; of != nil {
		return of.record.Environment
	}
	return ""
}
