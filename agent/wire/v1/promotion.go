package v1

import "time"

// Promotion is how far an environment has come to a release, over all its runs and windows.
type Promotion struct {
	// Release is the name of the release to which its last run of all hosts went that touched any.
	Release string `json:"release"`
	// Was is the release to which the environment went before; absent if there is none.
	Was string `json:"was,omitempty"`
	// Since is the first run to the release, Last the newest one.
	Since uint64 `json:"since"`
	Last  uint64 `json:"last"`
	// Hosts counts the hosts that have the release.
	Hosts PromotionHosts `json:"hosts"`
	// StepsDone are the stages whose steps are done.
	StepsDone []string `json:"steps-done,omitempty"`
	// WayBack tells until which stage a rollback is possible; absent if the rollout has no point of no
	// return.
	WayBack *WayBack `json:"way-back,omitempty"`
	// RolledBack says that the release was rolled back; absent while it was not.
	RolledBack *PromotionRollback `json:"rolled-back,omitempty"`
}

// PromotionHosts counts hosts of an environment.
type PromotionHosts struct {
	// Has is how many have the release, Of how many there are that would take part now.
	Has int `json:"has"`
	Of  int `json:"of"`
}

// PromotionRollback is the last run that has rolled back a release.
type PromotionRollback struct {
	Run uint64    `json:"run"`
	At  time.Time `json:"at"`
	// By and Reason are who has started it, and why.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}
