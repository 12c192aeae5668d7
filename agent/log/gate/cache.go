package gate

import (
	"context"
	"fmt"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// cache is the command cache: the newest prepare, and the newest command to each host
// since then. It is in memory because ten thousand hosts ask at once.
type cache struct {
	gate *Gate
	// followed means that the cache was up to date once.
	followed bool
	mu       sync.Mutex
	// seen is the sequence up to which the cache knows all commands and events.
	seen uint64
	// prepare is the newest prepare; each host gets a body of its own. raw is the
	// body of a prepare that cannot be read, which no controller writes.
	prepare message.Record
	raw     []byte
	command message.Command
	members map[string]struct{}
	// toHost are the newest commands by host, without those before the prepare: their
	// run accepts no more replies.
	toHost map[string]message.Record
}

// follow keeps the cache up to date until ctx ends. It calls loaded once the cache
// has the records that were on the log at the start.
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
			// Commands that were appended meanwhile were not pushed.
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

// add adds a record to the cache. After the log is followed again, records that the
// cache has already change nothing.
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

// current returns an error unless the cache has all commands that are on the log now.
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

// push sends a new command to its host. For a prepare it sends a hint, so that each
// host asks for its part.
func (c *cache) push(r message.Record) {
	switch r.Kind {
	case message.CommandAll:
		c.gate.hint()
	case message.CommandHost:
		command := toCommand(r, r.Body)
		c.gate.push(r.Host, Push{Command: &command})
	}
}

// newest returns a host's part of the newest prepare, and the newest command to that
// host.
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

// placeholders are two names for a host other than the one that asks: the second is
// for a host that has the first name itself.
var placeholders = [2]string{"another-host", "some-other-host"}

// part returns the body of the prepare with the asking host alone. For a host that is
// no member it names a placeholder: a prepare names at least one host, and the host
// must see that it is no member.
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

// commanded reports whether the newest run has the command of a reply, or a later one to
// the host, as far as the cache knows.
func (c *cache) commanded(r message.Record) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Action == message.Prepare {
		return r.Run == c.prepare.Seq && r.Run != 0
	}
	newest, some := c.toHost[r.Host]
	if !some || newest.Run != r.Run {
		return false
	}
	command, err := message.DecodeCommand(newest.Body)
	return err != nil || command.Action == r.Action || command.Action == message.Reboot
}

// run is the id of the newest run.
func (c *cache) run() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.prepare.Seq
}
