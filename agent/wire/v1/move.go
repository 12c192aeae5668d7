package v1

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Move is the body of PUT .../os-upgrade/hosts/{host}/environment: where a host belongs.
type Move struct {
	// Environment is the environment to which the host is assigned, whatever matches it. If it is
	// empty, the host goes to the environment that matches it, or else to default.
	Environment string `json:"environment"`
}

// HostEnvironment says in which environment a host is.
type HostEnvironment struct {
	Hostname string `json:"hostname"`
	// Environment is the environment whose runs upgrade the host; absent if Unplaced.
	Environment string `json:"environment,omitempty"`
	// Assigned means that somebody has moved the host there, whatever matches it.
	Assigned bool `json:"assigned,omitempty"`
	// Unplaced means that no run upgrades the host, because several environments match it.
	Unplaced bool `json:"unplaced,omitempty"`
	// Run is a run in progress of RunEnvironment that still has the host: the host moves when the run
	// has ended. Both are absent if there is none.
	Run            uint64 `json:"run,omitempty"`
	RunEnvironment string `json:"run-environment,omitempty"`
}

// DecodeMove reads a body and validates it; the error is that of DecodeOSUpgrade.
func DecodeMove(contentType string, body []byte) (m Move, err error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return m, err
	}
	var wrong Problems
	if !d.Root().Has("environment") {
		wrong = Problems{{Field: "environment", Message: `it is missing; give the name of an environment, or "" for the one that matches the host`}}
	}
	d.Root().Fill(&m)
	if m.Environment != "" && !names.Valid(m.Environment) {
		wrong = append(wrong, document.Wrong("environment", m.Environment, "is not the name of an environment; "+names.Form))
	}
	return m, d.Err(wrong...)
}
