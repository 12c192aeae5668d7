package log

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Subjects are those of one tenant.
type Subjects struct {
	Tenant string
}

// Stream is the name of the tenant's stream.
func (s Subjects) Stream() string { return "OSU_" + s.Tenant }

// All lists the subjects that the stream captures.
func (s Subjects) All() []string {
	return []string{s.Commands(), s.root() + ".reply.>"}
}

func (s Subjects) root() string { return "osu." + s.Tenant }

// Commands is the subject space that only a controller writes to. Each append of a
// command or event is conditional on this one filter: a cluster checks the appends
// under way by their filter, so two filters would not see each other.
func (s Subjects) Commands() string { return s.root() + ".cmd.>" }

// CommandAll is where the prepare of the default environment goes.
func (s Subjects) CommandAll() string { return s.root() + ".cmd.all" }

// Prepare is where the prepare of an environment goes: each has a subject of its own, so that
// the newest one of each can be asked for.
func (s Subjects) Prepare(environment string) string {
	if environment == "" {
		return s.CommandAll()
	}
	return s.PrepareNamed() + Token(environment)
}

// PrepareNamed is what the subjects of the prepares of all but the default environment begin
// with.
func (s Subjects) PrepareNamed() string { return s.CommandAll() + "." }

// CommandHost is where a command to one host goes; the record names the host. One
// subject per host would make each conditional append (ErrBehind) slower with each
// host.
func (s Subjects) CommandHost() string { return s.root() + ".cmd.host" }

// Event is where the facts of a run go.
func (s Subjects) Event() string { return s.root() + ".cmd.event" }

// Reply is where one host answers one command of one run.
func (s Subjects) Reply(run uint64, action message.Action, host string) string {
	return fmt.Sprintf("%s.reply.%d.%s.%s", s.root(), run, action, Token(host))
}

// In is the subject space of one host, the only one to which it may publish. No stream
// captures the space: JetStream would answer on any reply subject that a host names,
// with rights that the host does not have. The gate reads it.
func (s Subjects) In(host string) string { return "osu-in." + s.Tenant + "." + star(host) }

// Call is where a host calls the gate, one verb each.
func (s Subjects) Call(host, verb string) string { return s.In(host) + ".call." + verb }

// Alive is where a host sends its heartbeats. They are not on the log.
func (s Subjects) Alive(host string) string { return s.In(host) + ".telemetry.alive" }

// Progress is where a host reports its progress. It is not on the log, because only
// people read it and a record costs an fsync.
func (s Subjects) Progress(host string) string { return s.In(host) + ".telemetry.progress" }

// Outcome is where a host sends the outcome of a task. It is not on the log: the
// controller sends the task again until it has the outcome.
func (s Subjects) Outcome(host string) string { return s.In(host) + ".telemetry.outcome" }

// Rotate is where a host names its next key. The embedded server reads it, and no gate.
func (s Subjects) Rotate(host string) string { return s.In(host) + ".rotate-key" }

// PushAll is where a gate sends a push to all hosts.
func (s Subjects) PushAll() string { return "osu-push." + s.Tenant + ".all" }

// Push is where a gate sends pushes to the workers of one host. It is one subject, so
// that they arrive in order.
func (s Subjects) Push(host string) string { return "osu-push." + s.Tenant + ".host." + Token(host) }

// Task is where a controller sends a task to one host.
func (s Subjects) Task(host string) string { return "osu-push." + s.Tenant + ".task." + Token(host) }

// Ping is where a controller asks every host for a heartbeat.
func (s Subjects) Ping() string { return "osu-push." + s.Tenant + ".ping" }

// Inbox is the prefix of a host's own inboxes.
func (s Subjects) Inbox(host string) string { return "_INBOX." + s.Tenant + "." + Token(host) }

func star(host string) string {
	if host == "*" {
		return host
	}
	return Token(host)
}

// Token makes any host name a single subject token: letters, digits, "-" and
// "_" stand for themselves, each other byte is "=" and two hex digits.
func Token(host string) string {
	var b strings.Builder
	for i := range len(host) {
		if c := host[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// Host returns the host name of a token; false when Token never returns this token.
func Host(token string) (string, bool) {
	parts := strings.Split(token, "=")
	var b strings.Builder
	b.WriteString(parts[0])
	for _, part := range parts[1:] {
		if len(part) < 2 {
			return "", false
		}
		c, err := hex.DecodeString(part[:2])
		if err != nil {
			return "", false
		}
		b.Write(c)
		b.WriteString(part[2:])
	}
	host := b.String()
	return host, Token(host) == token && host != ""
}

// Parse reads a subject of the stream into the envelope of a record.
func (s Subjects) Parse(subject string) (message.Record, error) {
	rest, ours := strings.CutPrefix(subject, s.root()+".")
	parts := strings.Split(rest, ".")
	unknown := fmt.Errorf("subject %q is none of tenant %s", subject, s.Tenant)
	if !ours {
		return message.Record{}, unknown
	}
	switch {
	case rest == "cmd.all":
		return message.Record{Kind: message.CommandAll}, nil
	case len(parts) == 3 && parts[0] == "cmd" && parts[1] == "all":
		environment, ok := Host(parts[2])
		if !ok {
			return message.Record{}, unknown
		}
		return message.Record{Kind: message.CommandAll, Environment: environment}, nil
	case rest == "cmd.host":
		return message.Record{Kind: message.CommandHost}, nil
	case rest == "cmd.event":
		return message.Record{Kind: message.EventRecord}, nil
	case len(parts) == 4 && parts[0] == "reply":
		run, err := strconv.ParseUint(parts[1], 10, 64)
		if err != nil {
			return message.Record{}, unknown
		}
		return withHost(message.Record{Kind: message.ReplyRecord, Run: run, Action: message.Action(parts[2])}, parts[3], unknown)
	}
	return message.Record{}, unknown
}

func withHost(r message.Record, token string, otherwise error) (message.Record, error) {
	host, ok := Host(token)
	if !ok {
		return message.Record{}, otherwise
	}
	r.Host = host
	return r, nil
}
