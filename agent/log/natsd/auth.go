package natsd

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/hostkey"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// authenticator admits the agent itself and the known hosts, each with its own
// rights. A key is proven by a signature of the server's nonce, so no secret
// crosses the wire.
type authenticator struct {
	own   string
	hosts *Hosts
	waits func(public string) bool
	// refused is called for a host whose connection is refused.
	refused func(tenant, host string, kind message.WarningKind, why string)
	// log is throttled: whoever connects can cause a line.
	log *slog.Logger
	// open reports whether a connection is still open: the server does not report
	// its end. disconnect closes a connection.
	open       func(id uint64) bool
	disconnect func(id uint64)
	mu         sync.Mutex
	// byKey are the connections of each host key, byHost those of each host; some of them may
	// have ended.
	byKey  map[string][]uint64
	byHost map[Identity][]uint64
	// shut are the hosts that are not let in before a time, because of what they have sent.
	shut map[Identity]time.Time
}

func newAuthenticator(own string, o Options) *authenticator {
	refused := o.Refused
	if refused == nil {
		refused = func(string, string, message.WarningKind, string) {}
	}
	waits := o.Waits
	if waits == nil {
		waits = func(string) bool { return false }
	}
	return &authenticator{own: own, hosts: o.Hosts, waits: waits, refused: refused, log: throttle.Log(o.Log, fewLines, time.Minute), byKey: map[string][]uint64{}, byHost: map[Identity][]uint64{}, shut: map[Identity]time.Time{}}
}

// Check is called for each new connection.
func (a *authenticator) Check(c server.ClientAuthentication) bool {
	public := c.GetOpts().Nkey
	if !hostkey.Signed(public, c.GetOpts().Sig, c.GetNonce()) {
		return a.refuse(c, "connection refused: its key is not proven")
	}
	if public == a.own {
		c.RegisterUser(&server.User{Username: "agent"})
		return true
	}
	id, known, err := a.hosts.Find(public)
	claimed, claims := claim(c)
	if err == nil && !known && a.waits(public) {
		return a.refuse(c, "connection refused: its host waits for approval")
	}
	if err != nil || !known {
		if claims {
			a.refused(claimed.Tenant, claimed.Host, message.WarnKey, fmt.Sprintf("a worker at %s says that it is this host, and no host has its key: "+
				"if it is yours, make a key with osupgrade-agent credentials host --tenant %s --host %s", machine(c), claimed.Tenant, claimed.Host))
		}
		if err != nil {
			return a.refuse(c, "connection refused: cannot read whose key this is", "error", err)
		}
		return a.refuse(c, "connection refused: no host has this key")
	}
	if claims && claimed != id {
		// It is let in: its key has the rights of its own host alone.
		a.refused(claimed.Tenant, claimed.Host, message.WarnKey, fmt.Sprintf("a worker at %s says that it is this host, and has the key of host %s of tenant %s: "+
			"give it the key of its own", machine(c), id.Host, id.Tenant))
	}
	if a.isShut(id, time.Now()) {
		return a.refuse(c, "connection refused: its host has sent too many messages", "tenant", id.Tenant, "host", id.Host)
	}
	if !a.room(public, id, c.GetID()) {
		a.refused(id.Tenant, id.Host, message.WarnClone, "its key has too many connections: was it copied to other machines? Give each machine a key of its own")
		return a.refuse(c, "connection refused: its key has too many connections; was the key copied to other machines?",
			"tenant", id.Tenant, "host", id.Host, "most", maxPerKey)
	}
	if err := a.hosts.used(public); err != nil {
		a.log.Warn("the keys that this one replaces are not withdrawn yet; trying again at its next connection", "tenant", id.Tenant, "host", id.Host, "error", err)
	}
	c.RegisterUser(&server.User{Username: id.Tenant + "/" + id.Host, Permissions: rights(id)})
	return true
}

// refuse returns false, and tells why.
func (a *authenticator) refuse(c server.ClientAuthentication, why string, more ...any) bool {
	a.log.Warn(why, append([]any{"from", address(c), "key", short(c.GetOpts().Nkey)}, more...)...)
	return false
}

// room registers a connection of a key, unless the key has maxPerKey open ones.
func (a *authenticator) room(public string, host Identity, id uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ended := func(id uint64) bool { return !a.open(id) }
	open := slices.DeleteFunc(a.byKey[public], ended)
	if len(open) >= maxPerKey {
		a.byKey[public] = open
		return false
	}
	a.byKey[public] = append(open, id)
	a.byHost[host] = append(slices.DeleteFunc(a.byHost[host], ended), id)
	return true
}

// revoke ends the connections of keys that no host has any more.
func (a *authenticator) revoke() {
	// Most keys are there: one list spares a look at each file.
	present, err := a.hosts.keys.List()
	if err != nil {
		a.log.Warn("cannot list the keys of hosts; looking at each", "error", err)
	}
	a.mu.Lock()
	keys := maps.Clone(a.byKey)
	a.mu.Unlock()
	for _, key := range present {
		delete(keys, key.Name)
	}
	for public := range keys {
		// It may have been added after the list was made.
		if _, known, err := a.hosts.Find(public); known || err != nil {
			continue
		}
		a.mu.Lock()
		ids := a.byKey[public]
		delete(a.byKey, public)
		a.mu.Unlock()
		for _, id := range ids {
			if a.open(id) {
				a.log.Warn("connection ended: its key was removed", "key", public)
				a.disconnect(id)
			}
		}
	}
}

// claim returns the host that a connection says it is, by its name; false when it
// names none. A name proves nothing.
func claim(c server.ClientAuthentication) (Identity, bool) {
	tenant, host, named := strings.Cut(c.GetOpts().Name, "/")
	return Identity{tenant, host}, named && names.Valid(tenant) && names.ValidHost(host)
}

// machine is where a connection comes from, without its port.
func machine(c server.ClientAuthentication) string {
	from := address(c)
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return from
}

func address(c server.ClientAuthentication) string {
	if remote := c.RemoteAddress(); remote != nil {
		return remote.String()
	}
	return "this process"
}

// rights are the least that a host needs: to write to its own subject space,
// to hear what is for itself or for all hosts. A host reaches no subject
// of JetStream, which would answer to any reply subject that it is given.
func rights(id Identity) *server.Permissions {
	s := log.Subjects{Tenant: id.Tenant}
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{s.In(id.Host) + ".>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{
			s.Push(id.Host), s.PushAll(), s.Ping(), s.Task(id.Host), s.Inbox(id.Host) + ".>",
		}},
	}
}
