package gate

import (
	"context"
	"fmt"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// cache is what hosts ask for, in memory: the newest prepare and the commands
// to each host that came after it. Ten thousand hosts ask at once.
type cache struct {
	gate *Gate
	// followed tells that the cache was up to date once.
	followed bool
	mu       sync.Mutex
	// seen is the sequence up to which the cache knows all commands and events.
	seen uint64
	// prepare is the newest; its body is made for each host that asks. raw is
	// the body of one that cannot be read, which no controller writes.
	prepare message.Record
	raw     []byte
	command message.Command
	members map[string]struct{}
	// toHost are the newest commands by host. Those before the prepare are of no
	// use: their run takes no more replies.
	toHost map[string]message.Record
}

// follow keeps the cache as the log is until ctx ends. It calls loaded once
// the cache holds what was on the log when it began.
func (c *cache) follow(ctx context.Context, loaded func()) error {
	last, err := c.gate.Log.NewestCommand(ctx)
	if err != nil {
		return fmt.Errorf("cannot look for commands: %w: %w", log.ErrStale, err)
	}
	prepare, err := c.gate.Log.NewestPrepare(ctx)
	if err != nil {
		return fmt.Errorf("cannot look for the newest prepare: %w: %w", log.ErrStale, err)
	}
	from := last + 1
	if prepare != 0 {
		from = prepare
	}
	caughtUp := sync.OnceFunc(func() {
		loaded()
		if c.followed {
			// Commands that came meanwhile were not pushed.
			c.gate.hint()
		}
		c.followed = true
	})
	if from > last {
		c.saw(last)
		caughtUp()
	}
	return c.gate.Log.FollowCommands(ctx, from, func(r message.Record) {
		c.add(r)
		if r.Seq >= last {
			caughtUp()
		}
		if r.Seq > last {
			c.push(r)
		}
	})
}

// add takes a record into the cache. One that is older than what the cache
// holds, after it was followed anew, changes nothing.
func (c *cache) add(r message.Record) {
	c.saw(r.Seq)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Seq <= c.prepare.Seq:
	case r.Kind == message.CommandAll:
		c.raw, c.members, c.toHost = nil, map[string]struct{}{}, map[string]message.Record{}
		command, err := message.DecodeCommand(r.Body)
		if err != nil {
			c.raw = r.Body
		}
		for _, host := range command.Hosts {
			c.members[host] = struct{}{}
		}
		c.command, c.prepare = command, r
		c.prepare.Body = nil
	case r.Kind == message.CommandHost && c.toHost != nil && r.Seq > c.toHost[r.Host].Seq:
		c.toHost[r.Host] = r
	}
}

func (c *cache) saw(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = max(c.seen, seq)
}

// current fails unless the cache holds all that is on the log now.
func (c *cache) current(ctx context.Context) error {
	last, err := c.gate.Log.NewestCommand(ctx)
	if err != nil {
		return fmt.Errorf("cannot look for the newest command: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen < last {
		return fmt.Errorf("this gate knows the commands up to record %d, and the log has record %d", c.seen, last)
	}
	return nil
}

// push sends a new command to its host, and has all hosts ask for their part of
// a prepare.
func (c *cache) push(r message.Record) {
	switch r.Kind {
	case message.CommandAll:
		c.gate.hint()
	case message.CommandHost:
		command := toCommand(r, r.Body)
		c.gate.push(r.Host, Push{Command: &command})
	}
}

// newest returns the newest prepare as one host needs it, and the newest
// command to that host.
func (c *cache) newest(host string) []Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prepare.Seq == 0 {
		return nil
	}
	all := []Command{toCommand(c.prepare, c.part(host))}
	if r, ok := c.toHost[host]; ok {
		all = append(all, toCommand(r, r.Body))
	}
	return all
}

// placeholders are names that stand in the place of all other hosts; for a host
// of one of these names the other.
var placeholders = [2]string{"another-host", "some-other-host"}

// part is the body of the prepare with no host but the one that asks. For one
// that is no member a placeholder stands there, because a prepare names at least
// one host, and a host must see that it is not meant.
func (c *cache) part(host string) []byte {
	if c.raw != nil {
		return c.raw
	}
	command := c.command
	_, member := c.members[host]
	switch {
	case member:
		command.Hosts = []string{host}
	case host == placeholders[0]:
		command.Hosts = placeholders[1:]
	default:
		command.Hosts = placeholders[:1]
	}
	return command.Encode()
}

// run is the newest run's number.
func (c *cache) run() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.prepare.Seq
}
