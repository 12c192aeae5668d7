package v1

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// FleetLock is the body of a request of the FleetLock protocol, by which hosts that reboot by
// themselves ask for that.
type FleetLock struct {
	ClientParams FleetLockClient `json:"client_params"`
}

// FleetLockClient is who asks.
type FleetLockClient struct {
	// ID is the label fleetlock-id of the host, or its name.
	ID string `json:"id"`
	// Group is default, or the environment of the host.
	Group string `json:"group"`
}

// FleetLockGroup is the group of the FleetLock protocol that means whatever environment a host is in.
const FleetLockGroup = "default"

// FleetLockLabel is the label of a host with its id of the FleetLock protocol.
const FleetLockLabel = "fleetlock-id"

// maxFleetLockID bounds the id of a host, in bytes.
const maxFleetLockID = 256

// FleetLockError is the answer to a request of the FleetLock protocol that fails.
type FleetLockError struct {
	// Kind identifies the kind of error, as one of a few words.
	Kind string `json:"kind"`
	// Value says what is wrong, for people.
	Value string `json:"value"`
}

// DecodeFleetLock reads the body of a request of the FleetLock protocol. Clients of the protocol name
// no content type, and members that are not known are ignored, as the protocol may get more.
func DecodeFleetLock(body []byte) (FleetLock, error) {
	var f FleetLock
	if err := json.Unmarshal(body, &f); err != nil {
		return FleetLock{}, Problems{{Message: fmt.Sprintf(`the body is not the JSON of a FleetLock request: %v; send {"client_params": {"id": ID, "group": GROUP}}`, err)}}
	}
	if found := f.validate(); len(found) > 0 {
		return FleetLock{}, found
	}
	return f, nil
}

// validate returns what is wrong with the values.
func (f FleetLock) validate() (found Problems) {
	switch id := f.ClientParams.ID; {
	case id == "":
		found = append(found, Problem{Field: "client_params.id", Message: "is missing; use the id of the host"})
	case len(id) > maxFleetLockID:
		found = append(found, document.Wrong("client_params.id", document.Clip(id), "is too long; use at most 256 bytes"))
	}
	if group := f.ClientParams.Group; !validGroup(group) {
		found = append(found, document.Wrong("client_params.group", document.Clip(group), "is not a group; use letters, digits, \".\" and \"-\""))
	}
	return found
}

// validGroup reports whether a text is a group by the protocol.
func validGroup(group string) bool {
	for _, c := range group {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return group != ""
}

// LockState is a host that reboots by itself and is locked.
type LockState struct {
	Host string `json:"host"`
	// Since is when it was locked.
	Since time.Time `json:"since"`
	// By is the token of whoever asked for the lock.
	By string `json:"by,omitempty"`
}
