package v1

import "github.com/osupgrade/terraform-provider-osupgrade/agent/policy"

// Rollout is the policy of a tenant's runs, the object at
// /v1/config/tenants/{tenant}/os-upgrade/rollout (design.md 7). Package policy
// has its members and their rules.
type Rollout = policy.Rollout

// The parts of a rollout.
type (
	// Stage is a group of hosts.
	Stage = policy.Stage
	// Match chooses hosts.
	Match = policy.Match
	// RolloutChecks are the checks of a rollout.
	RolloutChecks = policy.Checks
	// Check is one check.
	Check = policy.Check
	// RolloutHooks are the hooks of a rollout.
	RolloutHooks = policy.Hooks
	// Hook is one hook.
	Hook = policy.Hook
	// StepTimeouts bound the wait for the reply to each command.
	StepTimeouts = policy.Timeouts
)

// Kind is a type of check or of hook.
type Kind[T any] = policy.Kind[T]

// CheckKinds and HookKinds are the types of checks and of hooks.
var (
	CheckKinds = policy.CheckKinds
	HookKinds  = policy.HookKinds
)

// DecodeRollout reads a body and validates it, as DecodeOSUpgrade does.
func DecodeRollout(contentType string, body []byte) (Rollout, error) {
	return decode(contentType, body, Rollout{}, Rollout.Validate)
}
