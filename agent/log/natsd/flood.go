package natsd

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const (
	// maxMessages is how many messages one host may send within floodTime. A worker has a few
	// calls open at a time and sends some messages a minute. What a host sends beyond that
	// queues up before the calls of all other hosts of its tenant.
	maxMessages, floodTime = 10_000, 5 * time.Second
	// floodPause is how long a host that has sent more is not let in.
	floodPause = time.Minute
)

// rate counts the messages of each host of a tenant since a time.
type rate struct {
	begun time.Time
	sent  map[string]int
}

// exceeded counts a message, and returns the host that has just sent one too many; false when
// none has. A subject is osu-in, the tenant, the host and more.
func (r *rate) exceeded(subject []byte, now time.Time) (host string, over bool) {
	parts := bytes.SplitN(subject, []byte("."), 4)
	if len(parts) < 4 {
		return "", false
	}
	// A clock that was set back must not have it count for long.
	if since := now.Sub(r.begun); since >= floodTime || since < 0 || r.sent == nil {
		r.begun, r.sent = now, map[string]int{}
	}
	r.sent[string(parts[2])]++
	if r.sent[string(parts[2])] != maxMessages+1 {
		return "", false
	}
	return log.Host(string(parts[2]))
}

// floods takes up that a host of a tenant has sent too many messages.
func (s *Server) floods(id Identity) {
	s.mu.RLock()
	auth := s.auth
	s.mu.RUnlock()
	auth.shutOut(id, time.Now())
}

// shutOut ends the connections of a host, and lets it in again after a while.
func (a *authenticator) shutOut(id Identity, now time.Time) {
	a.mu.Lock()
	a.shut[id] = now.Add(floodPause)
	ids := slices.Clone(a.byHost[id])
	a.mu.Unlock()
	a.log.Warn("connection ended: its host sends too many messages", "tenant", id.Tenant, "host", id.Host, "most", maxMessages, "within", floodTime)
	a.refused(id.Tenant, id.Host, message.WarnFlood, fmt.Sprintf("it sent more than %d messages within %s and is disconnected for %s: find the program that uses its key, or remove the key with osupgrade-agent credentials remove",
		maxMessages, floodTime, floodPause))
	for _, id := range ids {
		a.disconnect(id)
	}
}

// isShut reports whether a host is not let in because of what it sent.
func (a *authenticator) isShut(id Identity, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, shut := a.shut[id]
	if left := until.Sub(now); shut && (left <= 0 || left > floodPause) {
		delete(a.shut, id)
		return false
	}
	return shut
}
