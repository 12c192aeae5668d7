package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/hostkey"
)

// Bounds of the requests for keys: one is small and rare. Beyond maxRotations that
// wait, they are dropped, and a host that means it asks again.
const maxRotation, maxRotations = 1024, 64

// takeRotations registers the keys that connected hosts ask for.
func (s *Server) takeRotations() error {
	lines := throttle.Log(s.o.Log, fewLines, time.Minute)
	conn, err := s.connectOwn("osupgrade-agent keys", nats.InProcessServer(receiver{server: s, log: lines}), nats.ReconnectWait(receiveAgain))
	if err != nil {
		return err
	}
	recent := recently{}
	sub, err := conn.Subscribe(log.Subjects{Tenant: "*"}.Rotate("*"), func(msg *nats.Msg) {
		if recent.asked(msg.Subject, time.Now()) {
			return
		}
		id, err := s.rotate(msg)
		if err != nil {
			lines.Warn("a key was not replaced", "tenant", id.Tenant, "host", id.Host, "error", err)
		} else {
			lines.Info("the host has another key; the one from before is withdrawn once the host has connected with the new one", "tenant", id.Tenant, "host", id.Host)
		}
	})
	if err == nil {
		err = sub.SetPendingLimits(maxRotations, maxRotations*maxRotation)
	}
	if err != nil {
		conn.Close()
		return fmt.Errorf("cannot receive requests for keys: %w", err)
	}
	s.keys = conn
	return nil
}

// recently is when a host has asked last, by subject: a host that asks all the time
// must not keep the server busy. Only hosts with a key can ask, so it has few.
type recently map[string]time.Time

// asked reports whether a host has asked within the last second, and takes note.
func (r recently) asked(subject string, now time.Time) bool {
	maps.DeleteFunc(r, func(_ string, last time.Time) bool { return now.Sub(last) >= time.Second || now.Before(last) })
	if _, within := r[subject]; within {
		return true
	}
	r[subject] = now
	return false
}

// rotate answers one request. The subject says whose it is: a host can publish on
// its own alone.
func (s *Server) rotate(msg *nats.Msg) (Identity, error) {
	parts := strings.Split(msg.Subject, ".")
	if len(parts) != 4 {
		return Identity{}, fmt.Errorf("subject %q is none of a host", short(msg.Subject))
	}
	host, valid := log.Host(parts[2])
	id := Identity{Tenant: parts[1], Host: host}
	err := errors.New("the name of the host is damaged")
	if valid {
		err = s.register(id, msg.Data)
	}
	// The server answers only to the host's own inbox: it may publish anywhere, and the
	// host may not.
	if !strings.HasPrefix(msg.Reply, log.Subjects{Tenant: id.Tenant}.Inbox(id.Host)+".") {
		return id, errors.Join(err, errors.New("it names no inbox of its own"))
	}
	var response hostkey.Rotated
	if err != nil {
		response.Error = err.Error()
	}
	body, encoding := json.Marshal(response)
	if encoding != nil {
		return id, errors.Join(err, encoding)
	}
	return id, errors.Join(err, msg.Respond(body))
}

func (s *Server) register(id Identity, body []byte) error {
	var r hostkey.Rotation
	if len(body) > maxRotation {
		return fmt.Errorf("the request has %d bytes, more than %d", len(body), maxRotation)
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("the request is no JSON: %w", err)
	}
	if err := hostkey.Proven(r.PublicKey, id.Host, r.Proof); err != nil {
		return err
	}
	register := func() error { return s.o.Hosts.Register(r.PublicKey, id, true) }
	if s.o.Rotated == nil {
		return register()
	}
	return s.o.Rotated(id, r.PublicKey, register)
}
