package message

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/strict"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Command is what the controller tells hosts to do.
type Command struct {
	Action Action
	// Hosts are the members of the run; of prepare alone. A run of steps has none.
	Hosts []string
	// NotAfter is when the run ends at the latest; of prepare alone.
	NotAfter time.Time
	// Host is the one host that the command is for; of upgrade and reboot.
	Host string
}

// commandBody is the JSON form.
type commandBody struct {
	Action   Action   `json:"action"`
	Hosts    []string `json:"hosts,omitempty"`
	NotAfter string   `json:"not-after,omitempty"`
	Host     string   `json:"host,omitempty"`
}

// Encode returns the command's JSON body.
func (c Command) Encode() []byte {
	body := commandBody{Action: c.Action, Hosts: c.Hosts, Host: c.Host}
	if c.Action == Prepare {
		body.NotAfter = c.NotAfter.UTC().Format(time.RFC3339)
	}
	return encode(body)
}

// DecodeCommand reads a command's JSON body. The error names the member and
// what would be right.
func DecodeCommand(data []byte) (Command, error) {
	var body commandBody
	if err := strict.JSON(data, &body); err != nil {
		return Command{}, fmt.Errorf("cannot read command: %w", err)
	}
	switch body.Action {
	case Prepare:
		return decodePrepare(body)
	case Upgrade, Reboot:
		return decodeOne(body)
	}
	return Command{}, fmt.Errorf("cannot read command: action %q is none of prepare, upgrade, reboot", body.Action)
}

func decodePrepare(body commandBody) (Command, error) {
	if body.Host != "" {
		return Command{}, fmt.Errorf("cannot read prepare: host %q does not belong there; use hosts", body.Host)
	}
	for _, host := range body.Hosts {
		if !names.ValidHost(host) {
			return Command{}, fmt.Errorf("cannot read prepare: hosts names %q, which is not a host name", host)
		}
	}
	notAfter, err := time.Parse(time.RFC3339, body.NotAfter)
	if err != nil {
		return Command{}, fmt.Errorf("cannot read prepare: not-after %q is not an RFC 3339 time", body.NotAfter)
	}
	return Command{Action: Prepare, Hosts: body.Hosts, NotAfter: notAfter}, nil
}

func decodeOne(body commandBody) (Command, error) {
	if len(body.Hosts) > 0 || body.NotAfter != "" {
		return Command{}, fmt.Errorf("cannot read %s: hosts and not-after belong to prepare", body.Action)
	}
	if !names.ValidHost(body.Host) {
		return Command{}, fmt.Errorf("cannot read %s: host %q is not a host name", body.Action, body.Host)
	}
	return Command{Action: body.Action, Host: body.Host}, nil
}
