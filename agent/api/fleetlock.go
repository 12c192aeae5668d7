package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The FleetLock protocol (https://coreos.github.io/zincati/development/fleetlock/protocol/): hosts
// that reboot by themselves, such as those with Zincati, ask for a lock before they reboot and give
// it back afterwards. It has errors of its own form, and its clients know only a base URL.

// fleetLockPath is the base URL of its clients, without the host.
const fleetLockPath = statePath + "/fleetlock"

// fleetLockHeader has to be "true" in each request of the protocol, so that nobody is redirected
// there by accident.
const fleetLockHeader = "fleet-lock-protocol"

// isFleetLock reports whether a route is one of the protocol.
func (r route) isFleetLock() bool {
	_, is := r.failure.(v1.FleetLockError)
	return is
}

func fleetLockRoutes() []route {
	post := func(operation, summary, about, action string, ask func(Controller) lockFunc) route {
		return route{
			method: http.MethodPost, path: fleetLockPath + "/v1/" + operation, own: true, group: groupHosts, handle: postFleetLock(ask), summary: summary, about: about,
			action: action, object: "host", takes: v1.FleetLock{}, query: []parameter{siteParameter},
			headers: []parameter{{name: fleetLockHeader, about: "Must be true.", schema: schema{"type": "string", "enum": []string{"true"}}}},
			returns: []response{{status: http.StatusOK, about: "The body is empty."}}, errors: []int{http.StatusNotFound, http.StatusConflict},
			failure: v1.FleetLockError{},
		}
	}
	const basic = " The token may also be the password of HTTP basic authentication, if its only role is fleetlock."
	return []route{
		post("pre-reboot", "Lock a host that reboots by itself", "The FleetLock protocol. A host that is locked stays so. An answer of 409 means that no further host may be out of service now; ask again later."+basic, "lock",
			func(c Controller) lockFunc { return c.Lock }),
		post("steady-state", "Unlock a host that has rebooted by itself", "The FleetLock protocol. A host that is not locked stays so."+basic, "unlock",
			func(c Controller) lockFunc { return c.Unlock }),
	}
}

// lockFunc locks or unlocks a host, and returns its name.
type lockFunc func(ctx context.Context, by string, who v1.FleetLock) (host string, err error)

// postFleetLock carries a request of the protocol out.
func postFleetLock(ask func(Controller) lockFunc) func(*server, *call) error {
	return func(_ *server, c *call) error {
		if c.Header.Get(fleetLockHeader) != "true" {
			return badRequest(fleetLockHeader, c.Header.Get(fleetLockHeader), `has to be "true" in the header of each request of the FleetLock protocol`)
		}
		body, err := c.body()
		if err != nil {
			return err
		}
		who, err := v1.DecodeFleetLock(body)
		if err != nil {
			return err
		}
		host, err := ask(c.controller)(c.Context(), c.who.Name, who)
		if host != "" {
			c.audit.Object = "host/" + host
		}
		if err != nil {
			return lockFailure(err)
		}
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
}

// lockFailure returns the answer to an error of a lock.
func lockFailure(err error) error {
	var refused *run.Refused
	var never *run.LockError
	switch {
	case errors.As(err, &refused):
		return &answer{status: http.StatusConflict, kind: "failed_lock", body: v1.ErrorBody{Errors: []v1.Error{{Message: refused.Message, Info: v1.ErrorInfo{Run: refused.Run}}}}}
	case errors.As(err, &never):
		status := http.StatusNotFound
		if never.Kind == run.LockGroup {
			status = http.StatusBadRequest
		}
		return &answer{status: status, kind: never.Kind, body: v1.ErrorBody{Errors: []v1.Error{{Message: never.Message}}}}
	}
	return err
}

// kinds are what the protocol calls errors that are not of a lock. Clients count errors by their
// kind, so there are few.
var kinds = map[int]string{
	http.StatusBadRequest: "bad_request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden", http.StatusNotFound: "not_found",
	http.StatusServiceUnavailable: "not_ready",
}

// sendFleetLock answers a request of the protocol with an error, in the form of the protocol.
func (s *server) sendFleetLock(w http.ResponseWriter, a *answer) {
	kind := a.kind
	if kind == "" {
		kind = kinds[a.status]
	}
	if kind == "" {
		kind = "failed"
	}
	texts := make([]string, len(a.body.Errors))
	for i, e := range a.body.Errors {
		texts[i] = e.Message
	}
	w.Header().Set("Content-Type", document.JSON)
	w.WriteHeader(a.status)
	if err := json.NewEncoder(w).Encode(v1.FleetLockError{Kind: kind, Value: strings.Join(texts, "; ")}); err != nil {
		s.Log.Debug("the client is gone", "error", err)
	}
}
