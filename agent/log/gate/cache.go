package gate

import (
	"context"
	"fmt"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// cache is the command cache: the newest prepare of each environment, and the newest command
// to each host since then. It is in memory because ten thousand hosts ask at once.
type cache struct {
	gate *Gate
	// followed means that the cache was up to date once.
	followed bool
	mu       sync.Mutex
	// seen is the sequence up to which the cache knows all commands and events.
	seen uint64
	// runs are the newest prepares, by environment, and byRun the same by the id of the run.
	runs  map[string]*prepared
	byRun map[uint64]*prepared
	// home is the environment of the last prepare that has named a host; none for the default
	// environment. A host never gets the prepare of another: to it, the sequences of its
	// commands only grow.
	home map[string]string
}

// prepared is the newest prepare of an environment, with the commands since.
type prepared struct {
	// record is the prepare; each host gets a body of its own. raw is the body of a
	// prepare that cannot be read, which no controller writes.
	record  message.Record
	raw     []byte
	command message.Command
	members map[string]struct{}
	// misreads are members whose worker would misread its commands.
	misreads map[string]struct{}
	// opening is what opened the run; nil while the gate has not read it.
	opening *opening
	// toHost are the newest commands of the run by host.
	toHost map[string]message.Record
	// given are the outputs of its steps, in their order.
	given []given
}

// follow keeps the cache up to date until ctx ends. It calls loaded once the cache
// has the records that were on the log at the start.
func (c *cache) follow(ctx context.Context, loaded func()) error {
	last, err := c.gate.Log.NewestCommand(ctx)
	if err != nil {
		return fmt.Errorf("cannot look for commands: %w: %w", log.ErrStale, err)
	}
	prepare, err := c.gate.Log.OldestPrepare(ctx)
	if err != nil {
		return fmt.Errorf("cannot look for the newest prepares: %w: %w", log.ErrStale, err)
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
			c.push(ctx, r)
		}
	})
}

// add adds a record to the cache. After the log is followed again, records that the
// cache has already change nothing.
func (c *cache) add(r message.Record) {
	c.saw(r.Seq)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Kind {
	case message.CommandAll:
		c.prepare(r)
	case message.CommandHost:
		if run := c.byRun[r.Run]; run != nil && r.Seq > run.toHost[r.Host].Seq {
			run.toHost[r.Host] = r
		}
	case message.EventRecord:
		c.noteOutputs(r)
	case message.ReplyRecord:
	}
}

// prepare adds a prepare, which takes its members into its environment.
func (c *cache) prepare(r message.Record) {
	before := c.runs[r.Environment]
	if before != nil && r.Seq <= before.record.Seq {
		return
	}
	if c.runs == nil {
		c.runs, c.byRun, c.home = map[string]*prepared{}, map[uint64]*prepared{}, map[string]string{}
	}
	run := &prepared{record: r, members: map[string]struct{}{}, misreads: map[string]struct{}{}, toHost: map[string]message.Record{}}
	run.record.Body = nil
	var err error
	if run.command, err = message.DecodeCommand(r.Body); err != nil {
		run.raw = r.Body
	}
	for _, host := range run.command.Hosts {
		run.members[host] = struct{}{}
		c.moves(host, r)
	}
	if before != nil {
		delete(c.byRun, before.record.Seq)
	}
	c.runs[r.Environment], c.byRun[r.Seq] = run, run
}

// moves notes that a prepare names a host, unless a later one has done so.
func (c *cache) moves(host string, r message.Record) {
	switch last := c.of(host); {
	case last != nil && last.record.Seq > r.Seq && last.has(host):
	case r.Environment != "":
		c.home[host] = r.Environment
	default:
		delete(c.home, host)
	}
}

func (p *prepared) has(host string) bool {
	_, member := p.members[host]
	return member
}

// of returns the newest run of the environment of a host; nil when there is none.
func (c *cache) of(host string) *prepared { return c.runs[c.home[host]] }

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
// host asks for its part: to its members only, if the tenant has environments.
func (c *cache) push(ctx context.Context, r message.Record) {
	switch r.Kind {
	case message.CommandAll:
		if r.Environment == "" {
			c.gate.hint()
			return
		}
		for _, host := range c.members(r) {
			c.gate.push(host, Push{Hint: true})
		}
	case message.CommandHost:
		if c.misreads(r.Run, r.Host) {
			return
		}
		command := toCommand(r, r.Body)
		command.Outputs = c.gate.hasOutputs(ctx, r.Run)
		c.gate.push(r.Host, Push{Command: &command})
	case message.EventRecord, message.ReplyRecord:
	}
}

// members are the hosts that a prepare names.
func (c *cache) members(r message.Record) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run := c.runs[r.Environment]; run != nil {
		return run.command.Hosts
	}
	return nil
}

// newest returns a host's part of the newest prepare of its environment, and the newest
// command to that host. To a worker that would misread the prepare the host is no member, and gets no
// command of the run until another worker asks; misread says why.
func (c *cache) newest(host string, q Request) (commands []Command, misread string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	run := c.of(host)
	if run == nil {
		return nil, ""
	}
	delete(run.misreads, host)
	if cannot := q.unread(run.record); cannot != "" && run.has(host) {
		run.misreads[host] = struct{}{}
		return []Command{toCommand(run.record, run.part(host, false))}, fmt.Sprintf("run %d has this host, whose agent cannot %s", run.record.Seq, cannot)
	}
	commands = []Command{toCommand(run.record, run.part(host, run.has(host)))}
	if r, ok := run.toHost[host]; ok {
		commands = append(commands, toCommand(r, r.Body))
	}
	return commands, ""
}

// misreads reports whether the worker of a host would misread the commands of a run.
func (c *cache) misreads(run uint64, host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.byRun[run]
	if of == nil {
		return false
	}
	_, misreads := of.misreads[host]
	return misreads
}

// placeholders are two names for a host other than the one that asks: the second is
// for a host that has the first name itself.
var placeholders = [2]string{"another-host", "some-other-host"}

// part returns the body of the prepare with the asking host alone if it is a member. For a host that is
// no member it names a placeholder: a prepare names at least one host, and the host
// must see that it is no member.
func (p *prepared) part(host string, member bool) []byte {
	if p.raw != nil {
		return p.raw
	}
	command := p.command
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

// commanded reports whether the newest run of the host has the command of a reply, or a later
// one to the host, as far as the cache knows.
func (c *cache) commanded(r message.Record) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	run := c.of(r.Host)
	if run == nil || run.record.Seq != r.Run {
		return false
	}
	if r.Action == message.Prepare {
		return true
	}
	newest, some := run.toHost[r.Host]
	if !some {
		return false
	}
	command, err := message.DecodeCommand(newest.Body)
	return err != nil || command.Action == r.Action || command.Action == message.Reboot
}

// isNewest reports whether a run is the newest of the environment of a host; known is false
// while the cache has not come to that run.
func (c *cache) isNewest(host string, run uint64) (newest, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(host)
	return of != nil && of.record.Seq == run, run <= c.seen
}
