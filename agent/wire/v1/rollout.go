package v1

import "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"

// Rollout is the policy of a tenant's runs, the object at
// /v1/config/tenants/{tenant}/os-upgrade/rollout. Package rollout has its members and
// their rules.
type Rollout = rollout.Rollout

// The parts of a rollout.
type (
	// Stage is a group of hosts, or a step.
	Stage = rollout.Stage
	// Step is something that is done once, in its place among the stages.
	Step = rollout.Step
	// Match chooses hosts.
	Match = rollout.Match
	// RolloutChecks are the checks of a rollout.
	RolloutChecks = rollout.Checks
	// Check is one check.
	Check = rollout.Check
	// StartCheck is a check before a run prepares any host.
	StartCheck = rollout.StartCheck
	// RolloutHooks are the hooks of a rollout.
	RolloutHooks = rollout.Hooks
	// Hook is one hook.
	Hook = rollout.Hook
	// CommandTimeouts bound the wait for the reply to each command.
	CommandTimeouts = rollout.Timeouts
)

// Kind is a type of check or of hook.
type Kind[T any] = rollout.Kind[T]

// CheckKinds and HookKinds are the types of checks and of hooks.
var (
	CheckKinds = rollout.CheckKinds
	HookKinds  = rollout.HookKinds
)

// DecodeRollout reads a body and validates it, as DecodeOSUpgrade does.
func DecodeRollout(contentType string, body []byte) (Rollout, error) {
	return decode(contentType, body, Rollout{}, Rollout.Validate)
}
